const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: ' ', '#39': "'" };
const unseen: readonly string[] = ['script', 'style', 'noscript', 'template'];
const blocks = /^\/(?:p|div|li|tr|h\d|section|article|pre)$|^br$/;

/** Roughly what a reader sees; scripts and styles are none of it. Every page, also one made to be slow, is gone through once. */
export function textOfHtml(html: string): string {
  return shownOf(html)
    .replace(/&(#?\w{1,8});/g, (whole, name: string) => entities[name] ?? whole)
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n\s*/g, '\n')
    .trim();
}

function shownOf(html: string): string {
  const out: string[] = [];
  // What is looked for in vain from one place is not there from a later one either.
  const missing = new Set<string>();
  // Letter by letter: some others become two.
  const folded = html.replace(/[A-Z]+/g, letters => letters.toLowerCase());
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf('<', at);
    const close = open === -1 ? -1 : html.indexOf('>', open);
    if (close === -1) break;
    out.push(html.slice(at, open));
    const name = /^\/?[a-z][a-z0-9]{0,15}/.exec(folded.slice(open + 1, open + 18))?.[0] ?? '';
    out.push(blocks.test(name) ? '\n' : ' ');
    at = close + 1;
    if (!unseen.includes(name) || missing.has(name)) continue;
    const end = folded.indexOf(`</${name}`, at);
    if (end === -1) missing.add(name);
    else at = end;
  }
  return out.join('') + html.slice(at);
}
