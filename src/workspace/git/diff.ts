import type { Mask, MaskedPlace } from '../../core/ports.ts';

/** A secret that a patch brings in. */
export interface AddedSecret {
  kind: string;
  /** Of the file after the change, from 1. */
  line: number;
}

interface PatchLine {
  /** ` `, `+`, `-`, or what a line of a header has. */
  mark: string;
  text: string;
  /** Which line of the file after the change, or of the one before for a removed line; absent for headers. */
  at?: number;
  /** What of it is a secret on either side, and what stands in its place. */
  cuts: { start: number; end: number; placeholder: string }[];
}

/**
 * Masks the two sides of a patch each by itself, as the file reads before and after: a key of several lines is found also
 * where marks stand between its lines. With the same change around the whole file (`whole`), what a hunk shows is judged
 * by all of its file. Tells which of the finds the change brings in.
 */
export async function maskPatch(
  patch: string,
  mask: Mask,
  scope: string,
  whole?: string,
): Promise<{ patch: string; secrets: AddedSecret[] }> {
  const hunks = linesOf(patch);
  const lines = whole === undefined ? hunks : linesOf(whole);
  const secrets = await findInSides(lines, mask, scope);
  const byPlace = new Map(lines.map(line => [placeOf(line), line]));
  const shown = hunks.map(line => (line.at === undefined ? line : byPlace.get(placeOf(line))));
  // The file changed between the two readings, or one of them was cut off.
  if (hunks.some((line, index) => shown[index]?.text !== line.text)) return maskPatch(patch, mask, scope);
  const texts = shown.flatMap(async line => {
    if (line === undefined) return [];
    const [, place, heading] = line.at === undefined ? (/^(@@ \S+ \S+ @@) (.+)$/.exec(line.text) ?? []) : [];
    if (place === undefined || heading === undefined) return line.mark + masked(line);
    // Behind its place a hunk names a line above it, which may be of a key.
    const isSecret = lines.some(({ text, cuts }) => cuts.length > 0 && text.startsWith(heading));
    return isSecret || (await mask(heading, scope)).places !== undefined ? place : line.text;
  });
  return { patch: (await Promise.all(texts)).join('\n'), secrets };
}

/** Where a line of a file stands: on which side, and which. */
const placeOf = ({ mark, at }: PatchLine): string => `${mark}${at ?? ''}`;

function masked({ text, cuts }: PatchLine): string {
  let done = -1;
  let shown = '';
  for (const { start, end, placeholder } of cuts.toSorted((a, b) => a.start - b.start)) {
    if (start >= done) shown += text.slice(Math.max(0, done), start) + placeholder;
    done = Math.max(done, end, start + 1);
  }
  return shown + text.slice(Math.max(0, done));
}

async function findInSides(lines: PatchLine[], mask: Mask, scope: string): Promise<AddedSecret[]> {
  const secrets: AddedSecret[] = [];
  for (const removed of ['-', '+']) {
    const side = lines.filter(({ mark }) => mark !== removed);
    const { places = [] } = await mask(side.map(({ text }) => text).join('\n'), scope);
    for (const { kind, touched } of cover(side, places)) {
      const first = touched.find(({ mark }) => mark === '+');
      if (removed === '-' && first?.at !== undefined) secrets.push({ kind, line: first.at });
    }
  }
  return secrets;
}

function linesOf(patch: string): PatchLine[] {
  let inHunk = false;
  let before = 0;
  let after = 0;
  return patch.split('\n').map((whole): PatchLine => {
    const hunk = /^@@ -(\d+)\S* \+(\d+)(?:,\d+)? @@/.exec(whole);
    if (hunk) {
      inHunk = true;
      before = Number(hunk[1]);
      after = Number(hunk[2]);
    }
    if (whole.startsWith('diff --git ')) inHunk = false;
    const mark = whole.charAt(0);
    if (hunk || !inHunk || !' +-'.includes(mark) || mark === '') return { mark: '', text: whole, cuts: [] };
    const text = whole.slice(1);
    const at = mark === '-' ? before : after;
    if (mark !== '+') before++;
    if (mark !== '-') after++;
    return { mark, text, at, cuts: [] };
  });
}

/** Puts the placeholders, in the order of their places, into the lines that they touch. */
function cover(side: readonly PatchLine[], places: readonly MaskedPlace[]): { kind: string; touched: PatchLine[] }[] {
  let length = 0;
  const spans = side.map(line => {
    const from = length;
    length += line.text.length + 1;
    return { line, from };
  });
  let first = 0;
  return places.map(({ start, end, kind, placeholder }) => {
    while ((spans[first + 1]?.from ?? length) <= start) first++;
    let behind = first + 1;
    while ((spans[behind]?.from ?? end) < end) behind++;
    const touched = spans.slice(first, behind).map(({ line, from }) => {
      line.cuts.push({ start: Math.max(0, start - from), end: Math.min(line.text.length, end - from), placeholder });
      return line;
    });
    return { kind, touched };
  });
}

export type ChangeStatus = 'added' | 'modified' | 'deleted' | 'renamed' | 'copied' | 'type_changed' | 'conflicted';

/** One line of `git diff --raw --numstat -z`. */
export interface DiffEntry {
  path: string;
  /** The name it had. */
  from?: string;
  status: ChangeStatus;
  /** Lines; absent for what has none. */
  added?: number;
  removed?: number;
  binary: boolean;
  submodule: boolean;
}

const statuses: Readonly<Record<string, ChangeStatus>> = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  R: 'renamed',
  C: 'copied',
  T: 'type_changed',
  U: 'conflicted',
};

const submoduleMode = '160000';

export function parseEntries(output: string): DiffEntry[] {
  const entries = new Map<string, DiffEntry>();
  const fields = output.split('\0')[Symbol.iterator]();
  const next = () => String(fields.next().value ?? '');
  for (const field of fields) {
    if (field.startsWith(':')) {
      const entry = rawEntry(field, next);
      // A conflicted file comes once as that and once as modified; what it is first is what matters.
      if (!entries.has(entry.path)) entries.set(entry.path, entry);
    } else if (field !== '') count(entries, field, next);
  }
  return [...entries.values()];
}

function rawEntry(field: string, next: () => string): DiffEntry {
  const [before = '', after = '', , , word = ''] = field.replace(/^:+/, '').split(' ');
  // One that begins with two colons has several states before.
  const status = field.startsWith('::') ? 'conflicted' : (statuses[word.charAt(0)] ?? 'modified');
  const first = next();
  const moved = status === 'renamed' || status === 'copied';
  const submodule = before === submoduleMode || after === submoduleMode;
  return { path: moved ? next() : first, ...(moved && { from: first }), status, binary: false, submodule };
}

/** `added TAB removed TAB path`, or two names after an empty one. */
function count(entries: Map<string, DiffEntry>, field: string, next: () => string): void {
  const [added = '', removed = '', ...names] = field.split('\t');
  let path = names.join('\t');
  if (path === '') {
    next();
    path = next();
  }
  const entry = entries.get(path);
  if (!entry) return;
  if (added === '-') entry.binary = true;
  else Object.assign(entry, { added: Number(added), removed: Number(removed) });
}

/** The patches of `git diff`, by the path of the file. What was cut off in the middle is left out. */
export function splitPatches(output: string, complete: boolean): Map<string, string> {
  // Within a patch every line has a mark of its own in front, so nothing in a file can look like this.
  const texts = output.split(/(?<=\n)(?=diff --git )/).filter(text => text.startsWith('diff --git '));
  if (!complete) texts.pop();
  // A file that became a link, or the other way round, comes as two.
  return new Map([...Map.groupBy(texts, pathOf)].map(([path, parts]) => [path, parts.join('')]));
}

/** The name that a moved file had. */
export const movedFrom = (patch: string): string | undefined => nameIn(headerOf(patch), '(?:rename|copy) from ');

const headerOf = (patch: string): string => patch.replace(/^@@ .*/ms, '');

function nameIn(header: string, mark: string): string | undefined {
  const line = new RegExp(`^${mark}(.+)$`, 'm').exec(header)?.[1];
  return line === undefined || line === '/dev/null' ? undefined : unquoted(line.replace(/\t$/, ''));
}

function pathOf(patch: string): string {
  const header = headerOf(patch);
  const named = (mark: string) => nameIn(header, mark);
  const moved = named('(?:rename|copy) to ');
  if (moved !== undefined) return moved;
  // `diff --git a/X b/X`: there is no other line with the name where only the mode changed or the content is binary.
  const line = header.slice('diff --git '.length, header.indexOf('\n'));
  return (named('\\+\\+\\+ ') ?? named('--- ') ?? unquoted(line.slice(line.length / 2 + 1))).slice(2);
}

const escapes: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Git writes a name with unusual characters like a string of C, byte by byte. */
function unquoted(name: string): string {
  if (!name.startsWith('"') || !name.endsWith('"')) return name;
  const pieces = name.slice(1, -1).match(/\\[0-7]{3}|\\.|[^\\]+/gs) ?? [];
  const bytes = pieces.map(piece => {
    if (!piece.startsWith('\\')) return Buffer.from(piece);
    if (/^\\[0-7]/.test(piece)) return Buffer.from([Number.parseInt(piece.slice(1), 8)]);
    return Buffer.from([escapes[piece.charAt(1)] ?? piece.charCodeAt(1)]);
  });
  return Buffer.concat(bytes).toString('utf8');
}
