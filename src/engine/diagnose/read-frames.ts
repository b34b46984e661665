/** A place that an error message names. */
export interface Frame {
  /** As the message has it: absolute, relative, or a bare file name. */
  path: string;
  line: number;
  /** Folders above a bare file name, as its language tells them: `com/acme/shop` of a Java class. */
  folder?: string;
}

const mostFrames = 200;
/** Of one kind; what comes after so many is no news. */
const mostMatches = 2_000;
const longestPath = 1_000;
// Each begins with what is rare, and the path is read backwards from there: the work grows with the text and no faster.
/** Python puts the line into words. */
const python = /File "([^"\n]{1,1000})", line (\d{1,7})/g;
/** The JVM names a class and a bare file. */
const java = /\(([\w$]{1,200}\.(?:java|kt|scala|groovy)):(\d{1,7})\)/g;
/** .NET. */
const dotnet = /:line (\d{1,7})/g;
/** Everybody else, such as Node, Go, Rust, Ruby and compilers: `a.ts:3`, `a.ts(3,5)`. */
const usual = /\.[A-Za-z]\w{0,9}(?::(\d{1,7})|\((\d{1,7})(?:,\d{1,7})?\))/g;

/** The places in an error message, in their order, each once. */
export function readFrames(text: string): Frame[] {
  const found: { at: number; frame: Frame }[] = [];
  const add = (at: number, path = '', line = '', folder = '') => {
    const frame = { path, line: Number(line), ...(folder !== '' && { folder }) };
    if (frame.line > 0 && path !== '') found.push({ at, frame });
  };
  for (const { index, 1: path, 2: line } of matches(text, python)) add(index, path, line);
  for (const { index, 1: file, 2: line } of matches(text, java)) add(index, file, line, folderOf(before(text, index)));
  for (const { index, 1: line } of matches(text, dotnet)) {
    const lead = before(text, index);
    const from = lead.lastIndexOf(' in ');
    if (from !== -1) add(index, lead.slice(from + 4).trim(), line);
  }
  for (const { index, 0: whole, 1: colon, 2: bracket } of matches(text, usual)) {
    const lead = before(text, index);
    const path = pathEnding(lead) + (/^\.\w+/.exec(whole)?.[0] ?? '');
    // The JVM's were read above, with their classes.
    const isJava = /\.(?:java|kt|scala|groovy)$/.test(path) && /\([\w$]+$/.test(lead);
    if (!isJava && !path.includes('://')) add(index, path, colon ?? bracket);
  }
  found.sort((a, b) => a.at - b.at);
  const unique = new Map(found.map(({ frame }) => [`${frame.folder ?? ''} ${frame.path} ${frame.line}`, frame]));
  return [...unique.values()].slice(0, mostFrames);
}

function* matches(text: string, pattern: RegExp): Generator<RegExpExecArray> {
  let count = 0;
  for (const match of text.matchAll(pattern)) {
    if (++count > mostMatches) return;
    yield match;
  }
}

/** What stands on the same line before a place. */
function before(text: string, index: number): string {
  const from = Math.max(0, index - longestPath);
  const lead = text.slice(from, index);
  return lead.slice(lead.lastIndexOf('\n') + 1);
}

/** `shop/billing` of `at shop.billing.Invoice.gross`. */
function folderOf(lead: string): string {
  const name = lead.slice(lead.lastIndexOf(' ') + 1);
  const owner = name.slice(name.lastIndexOf('/') + 1).replace(/<init>$/, 'init');
  return owner.split('.').slice(0, -2).join('/');
}

/** The path, without its extension, that ends where a text does. */
function pathEnding(lead: string): string {
  let from = lead.length;
  while (from > 0 && !' \t"\'`()<>|*?[]{},;='.includes(lead.charAt(from - 1))) from--;
  const path = lead.slice(from);
  return decoded(path.startsWith('file://') ? path.slice('file://'.length) : path);
}

/** Of a `file://` address; a name that only looks encoded stays. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
