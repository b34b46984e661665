/** A file as a prompt shows it. */
export interface ShownFile {
  path: string;
  form: 'full' | 'range' | 'diff' | 'deleted' | 'unchanged';
  /** Lines between its markers; 0 where nothing is shown. */
  lines: number;
}

interface Marker {
  pattern: RegExp;
  form: ShownFile['form'];
  /** The line that ends what is shown; absent for markers that stand alone. */
  end?: (path: string) => string;
}

const endOfFile = (path: string) => `--- END FILE: ${path} ---`;
const endOfDocument = (path: string) => `--- END DOCUMENT: ${path} ---`;
const endOfDiff = (path: string) => `--- END DIFF: ${path} ---`;

const markers: readonly Marker[] = [
  { pattern: /^--- BEGIN FILE: (.+) \(lines \d+-\d+ of \d+\) ---$/, form: 'range', end: endOfFile },
  { pattern: /^--- BEGIN FILE: (.+) \(\d+ lines?\) ---$/, form: 'full', end: endOfFile },
  { pattern: /^--- BEGIN DOCUMENT: (.+) \(lines \d+-\d+ of \d+\) ---$/, form: 'range', end: endOfDocument },
  { pattern: /^--- BEGIN DOCUMENT: (.+) \(\d+ lines?\) ---$/, form: 'full', end: endOfDocument },
  { pattern: /^--- BEGIN DIFF: (.+) ---$/, form: 'diff', end: endOfDiff },
  { pattern: /^--- FILE DELETED: (.+) ---$/, form: 'deleted' },
  { pattern: /^--- FILE UNCHANGED: (.+) ---$/, form: 'unchanged' },
];

/** The files that a text shows, in order. Markers inside of a shown file belong to that file. */
export function shownFiles(text: string): ShownFile[] {
  const found: ShownFile[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const opened = openedBy(lines[at] ?? '');
    if (!opened) continue;
    const { path, form, end } = opened;
    const close = end === undefined ? -1 : lines.indexOf(end, at + 1);
    found.push({ path, form, lines: close < 0 ? 0 : close - at - 1 });
    if (close >= 0) at = close;
  }
  return found;
}

function openedBy(line: string): { path: string; form: ShownFile['form']; end?: string } | undefined {
  if (!line.startsWith('--- ')) return undefined;
  for (const { pattern, form, end } of markers) {
    const path = pattern.exec(line)?.[1];
    if (path !== undefined) return { path, form, end: end?.(path) };
  }
  return undefined;
}
