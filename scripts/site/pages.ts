import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { readDocument, slug } from '../doc-links/read-document.ts';
import { walk } from '../walk.ts';
import { type Area, areas, otherPages, type Section, splitPages } from './contents.ts';
import { hostPages } from './host-pages.ts';

/** A page before its links are led to other pages: its text, and the file of the repository that its links start from. */
interface Draft {
  text: string;
  from: string;
}

/** What a site is made of. */
export interface Site {
  /** Path below the site → Markdown. */
  pages: Map<string, string>;
  /** Path below the site → file of the repository. */
  images: Map<string, string>;
  sidebar: Record<string, SidebarGroup[]>;
}

interface SidebarGroup {
  text: string;
  items: { text: string; link: string }[];
}

/** `file` or `file#anchor` of the repository → address in the site. */
type Addresses = ReadonlyMap<string, string>;

export function readSite(root: string): Site {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8').replace(/<!--[\s\S]*?-->\n*/g, '');
  const files = walk(root, 'docs');
  const drafts = new Map<string, Draft>(hostPages().map(([path, text]) => [path, { text, from: `docs/${path}` }]));
  const addresses = new Map([...drafts].map(([path, { from }]) => [from, addressOf(path)]));
  const sources = [...files.filter(path => path.endsWith('.md')), ...Object.keys(otherPages)];
  for (const from of sources) {
    const path = otherPages[from] ?? from.slice('docs/'.length);
    const folder = splitPages[from];
    const parts = folder ? split(read(from), folder) : [{ path, text: read(from), anchors: [] }];
    addresses.set(from, addressOf(path));
    for (const part of parts) {
      drafts.set(part.path ?? path, { text: part.text, from });
      for (const [anchor, own] of part.anchors) addresses.set(`${from}#${anchor}`, addressOf(part.path ?? path) + own);
    }
  }
  const isImage = (path: string): boolean => /^docs\/images\//.test(path);
  const pages = new Map([...drafts].map(([path, draft]) => [path, withSiteLinks(draft, addresses)]));
  // A page without parts needs no list of them at its side, and gives its tables that room.
  for (const [path, text] of pages)
    if (!/^##+ /m.test(text) && !text.startsWith('---')) pages.set(path, `---\naside: false\n---\n\n${text}`);
  return {
    pages,
    images: new Map(files.filter(isImage).map(path => [path.slice('docs/'.length), path])),
    sidebar: sidebarOf(pages),
  };
}

function addressOf(path: string): string {
  return `/${path.replace(/(?:^|(?<=\/))index\.md$|\.md$/, '')}`;
}

interface Part {
  /** Absent: the page that the others were split from. */
  path?: string;
  text: string;
  /** Anchor in the page that was split → what it is in the part. */
  anchors: [string, string][];
}

/** A page of its own for each `##` heading, and what is left with a list of them. */
function split(text: string, folder: string): Part[] {
  const [start = '', ...sections] = text.split(/^## /m);
  const parts = sections.map(section => {
    const [heading = '', ...lines] = section.split('\n');
    const path = `${folder}/${slug(heading)}.md`;
    const body = lines.join('\n').replace(/^##(#+ )/gm, '#$1');
    const anchors = [...readDocument(`## ${section}`).anchors];
    const own = anchors.map((anchor): [string, string] => [anchor, anchor === slug(heading) ? '' : `#${anchor}`]);
    return { path, heading, text: `# ${heading}\n${body}`, anchors: own };
  });
  const related = /\n(Related: [\s\S]*)$/.exec(parts.at(-1)?.text ?? '')?.[1] ?? '';
  const rows = parts.map(({ path, heading, text }) => {
    const [, first = ''] = text.split(/\n\n+/);
    const purpose = first.startsWith('|') ? '' : `: ${first.replaceAll('\n', ' ').replace(/(\.)\s.*$/, '$1')}`;
    return `- [${heading}](/${path.replace(/\.md$/, '')})${purpose}`;
  });
  return [{ text: `${start.trim()}\n\n${rows.join('\n')}\n\n${related}\n`, anchors: [] }, ...parts];
}

/** Leads links to other files of the repository to their pages, and leaves the words of those that are on none. */
function withSiteLinks({ text, from }: Draft, addresses: Addresses): string {
  const lead = (whole: string, words: string, target: string): string => {
    if (/^(?:[a-z]+:|\/|#)/i.test(target)) return whole;
    const [file = '', anchor] = target.split('#', 2);
    const path = posix.normalize(posix.join(posix.dirname(from), file)).replace(/\/$/, '');
    if (path.startsWith('docs/images/')) return `[${words}](/${path.slice('docs/'.length)})`;
    const exact = anchor === undefined ? undefined : addresses.get(`${path}#${anchor}`);
    const page = addresses.get(path);
    if (exact !== undefined) return `[${words}](${exact})`;
    return page === undefined ? words : `[${words}](${page}${anchor === undefined ? '' : `#${anchor}`})`;
  };
  const link = /\[((?:[^\][]|\[[^\][]*\])*)\]\(([^()\s]+)\)/g;
  return text
    .split(/^( *(`{3,})[\s\S]*?^ *\2\n)/m)
    .filter((_, at) => at % 3 !== 2)
    .map((part, at) => (at % 2 === 0 ? part.replace(link, lead) : part))
    .join('');
}

/** The sidebars, from the table of contents; fails for a page that is in none, and for one that is not there. */
function sidebarOf(pages: ReadonlyMap<string, string>): Site['sidebar'] {
  const left = new Set([...pages.keys()].map(path => path.replace(/\.md$/, '')));
  left.delete('index');
  const take = (entry: string): string[] => {
    const names = entry.endsWith('/*')
      ? [...left].filter(path => posix.dirname(path) === entry.slice(0, -2)).toSorted()
      : [entry];
    for (const name of names)
      if (!left.delete(name))
        throw new Error(`scripts/site/contents.ts lists "${name}", which is no page or listed twice`);
    return names;
  };
  const titleOf = (path: string): string => {
    const title = /^# (.*)$/m.exec(pages.get(`${path}.md`) ?? '')?.[1];
    if (title === undefined) throw new Error(`the page "${path}" has no heading`);
    return title.replaceAll('`', '');
  };
  const groupOf = ({ title, pages: listed }: Section): SidebarGroup => ({
    text: title,
    items: listed.flatMap(take).map(path => ({ text: titleOf(path), link: `/${path}` })),
  });
  // VitePress takes the first key with which an address begins: the area with the rest comes last.
  const sidebar = Object.fromEntries(areas.toReversed().flatMap(area => sidebarsOf(area, groupOf)));
  if (left.size > 0) throw new Error(`scripts/site/contents.ts lists no section for: ${[...left].join(', ')}`);
  return sidebar;
}

/** The sidebar of an area, and for each section with a folder one that shows its pages too. */
function sidebarsOf(area: Area, groupOf: (section: Section) => SidebarGroup): [string, SidebarGroup[]][] {
  const groups = area.sections.map(section => ({ section, group: groupOf(section) }));
  const [large, small] = [
    groups.filter(({ section }) => section.folder),
    groups.filter(({ section }) => !section.folder),
  ];
  const more = large.flatMap(({ group }) => group.items.slice(0, 1).map(({ link }) => ({ text: group.text, link })));
  const base = [...small.map(({ group }) => group), ...(more.length > 0 ? [{ text: 'More', items: more }] : [])];
  return [
    // The first key that an address begins with is taken.
    ...large.map(({ section, group }): [string, SidebarGroup[]] => [`/${section.folder}`, [...base, group]]),
    ...area.prefixes.map((prefix): [string, SidebarGroup[]] => [prefix, base]),
  ];
}
