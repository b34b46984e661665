/** A statement of a TOML text: one line, or as many as its value takes. */
export interface TomlLine {
  /** Offsets, the line end included. */
  start: number;
  end: number;
  header: boolean;
  /** Nothing but space or a comment. */
  blank: boolean;
  /** The table that it opens or stands in. */
  table: readonly string[];
  /** What it sets, within the table. */
  key?: readonly string[];
}

const bare = String.raw`[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'`;
const dotted = String.raw`(?:${bare})(?:[ \t]*\.[ \t]*(?:${bare}))*`;
const headerPattern = new RegExp(String.raw`^[ \t]*\[\[?[ \t]*(${dotted})[ \t]*\]\]?`);
const keyPattern = new RegExp(String.raw`^[ \t]*(${dotted})[ \t]*=`);

/** Cuts a TOML text into its statements, so that one can be replaced without touching the others. */
export function tomlLines(text: string): TomlLine[] {
  const lines: TomlLine[] = [];
  let table: readonly string[] = [];
  for (let start = 0; start < text.length; ) {
    const rest = text.slice(start, lineEnd(text, start));
    const header = headerPattern.exec(rest);
    const key = header ? undefined : keyPattern.exec(rest);
    const valueAt = key ? start + key[0].length : start;
    const end = key ? valueEnd(text, valueAt) : lineEnd(text, start);
    if (header) table = partsOf(header[1] ?? '');
    const blank = /^\s*(?:#.*\s*)?$/.test(rest);
    lines.push({ start, end, header: header !== null, blank, table, ...(key && { key: partsOf(key[1] ?? '') }) });
    start = end;
  }
  return lines;
}

function partsOf(text: string): string[] {
  return [...text.matchAll(new RegExp(bare, 'g'))].map(([part]) => {
    if (part.startsWith("'")) return part.slice(1, -1);
    if (!part.startsWith('"')) return part;
    try {
      return String(JSON.parse(part));
    } catch {
      // An escape that JSON does not know: then it is not a name that we look for.
      return part;
    }
  });
}

function lineEnd(text: string, from: number): number {
  const at = text.indexOf('\n', from);
  return at < 0 ? text.length : at + 1;
}

const quotes = ['"""', "'''", '"', "'"];

/** The end of the line on which a value ends: strings and lists may go over several. */
function valueEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const quote = quotes.find(candidate => text.startsWith(candidate, at));
    if (quote) {
      at = stringEnd(text, at + quote.length, quote) - 1;
      continue;
    }
    const char = text[at];
    if (char === '#') at = lineEnd(text, at) - (text[lineEnd(text, at) - 1] === '\n' ? 2 : 1);
    else if (char === '[' || char === '{') depth++;
    else if (char === ']' || char === '}') depth--;
    else if (char === '\n' && depth <= 0) return at + 1;
  }
  return text.length;
}

function stringEnd(text: string, from: number, quote: string): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\' && quote.startsWith('"')) at++;
    else if (text.startsWith(quote, at)) return at + quote.length;
    else if (text[at] === '\n' && quote.length === 1) return at;
  }
  return text.length;
}
