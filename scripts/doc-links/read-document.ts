/** Something that a document points at, with the line where it does. */
export interface Pointer {
  target: string;
  line: number;
}

/** What a Markdown document says that can be checked. */
export interface MarkdownDocument {
  /** Targets of links and images, as they are written. */
  links: Pointer[];
  /** The contents of `code` in running text. */
  codes: Pointer[];
  /** The text without code, as long as the source. */
  prose: string;
  /** Fragments that links may end in. */
  anchors: ReadonlySet<string>;
}

const link = /\]\(\s*(?:<([^<>\n]*)>|((?:[^()\s<>]|\([^()\s]*\))+))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/g;
const definition = /^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?/gm;
const tag = /<(?:a|img|source)\s[^>]*?\b(?:href|src)\s*=\s*["']([^"']+)["']/g;
const namedAnchor = /<[a-z][a-z0-9]*\s[^>]*?\b(?:id|name)\s*=\s*["']([^"']+)["']/g;
const span = /(?<!`)(`+)(?!`)([^\n]*?[^`\n])\1(?!`)/g;

function blanked(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}

/** Blanks fenced code: lines between a fence and the next one of its kind that is at least as long. */
function withoutFences(text: string): string {
  let fence: string | undefined;
  return text
    .split('\n')
    .map(line => {
      const mark = /^\s*(?:>\s*)*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})([^`]*)$/.exec(line);
      const marks = mark?.[1];
      if (fence === undefined) {
        if (!marks) return line;
        fence = marks;
      } else if (marks?.startsWith(fence) && !mark?.[2]?.trim()) {
        fence = undefined;
      }
      return blanked(line);
    })
    .join('\n');
}

/** A heading as GitHub makes a fragment of it. */
export function slug(heading: string): string {
  return heading
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]*>/g, '')
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(text: string): Set<string> {
  const anchors = new Set([...text.matchAll(namedAnchor)].map(match => match[1] ?? ''));
  const seen = new Map<string, number>();
  for (const match of text.matchAll(
    /^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$|^ {0,3}(\S.*)\n {0,3}(?:=+|-+)[ \t]*$/gm,
  )) {
    const name = slug(match[1] ?? match[2] ?? '');
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    anchors.add(times === 0 ? name : `${name}-${times}`);
  }
  return anchors;
}

/** Reads the links, the code words and the anchors of a Markdown text; what stands in code blocks and comments is no link. */
export function readDocument(source: string): MarkdownDocument {
  const text = withoutFences(source.replaceAll('\r\n', '\n').replace(/<!--[\s\S]*?-->/g, blanked));
  const lineOf = (index: number): number => text.slice(0, index).split('\n').length;
  const pointers = (from: string, pattern: RegExp): Pointer[] =>
    [...from.matchAll(pattern)].map(match => ({ target: match[1] ?? match[2] ?? '', line: lineOf(match.index) }));

  const prose = text.replace(span, blanked);
  const codes = [...text.matchAll(span)].map(match => ({ target: (match[2] ?? '').trim(), line: lineOf(match.index) }));
  const links = [link, definition, tag].flatMap(pattern => pointers(prose, pattern));
  return { links, codes, prose, anchors: anchorsOf(text) };
}
