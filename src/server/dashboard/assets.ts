import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Asset {
  /** Another one for other content, so that a browser may keep it for good. */
  path: string;
  type: string;
  text: string;
}

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="#4357d6" d="M3 4h11a3 3 0 0 1 3 3v4a3 3 0 0 1-3 3H9l-4 4v-4H3z"/><path fill="#8b97e8" d="M19 9h2v10h-2v3l-3-3h-5l2-3h3a3 3 0 0 0 3-3z"/></svg>`;

const read = (name: string) => readFileSync(new URL(`./${name}`, import.meta.url), 'utf8');

/** What pages load, all of it from here. Pages work without the script, which only follows what happens. */
export const assets = {
  style: asset('style', 'css', 'text/css', read('dashboard.css')),
  script: asset('script', 'js', 'text/javascript', read('dashboard.js')),
  icon: asset('icon', 'svg', 'image/svg+xml', icon),
} as const;

function asset(name: string, ending: string, type: string, text: string): Asset {
  return { path: `/assets/${name}-${hash('sha256', text).slice(0, 12)}.${ending}`, type, text };
}
