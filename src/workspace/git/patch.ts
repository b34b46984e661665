/** One hunk as it was written; the numbers of its head are not believed. */
export interface Hunk {
  /** Line of the old file at which it begins, as its head says; absent where the head says nothing. */
  from?: number;
  /** Each with its mark: ` `, `-`, `+`, or `\` for the note about a missing line end. */
  lines: string[];
}

/** What a patch does to one file. */
export interface PatchedFile {
  /** As written, without `a/`; undefined for a new file. */
  oldPath?: string;
  /** As written, without `b/`. */
  newPath: string;
  hunks: Hunk[];
}

export type ParsedPatch = { ok: true; files: PatchedFile[] } | { ok: false; reason: string };

const mostFiles = 50;
const hunkHead = /^@@(?: -(\d{1,9})(?:,\d+)? \+\d+(?:,\d+)? @@| .*@@|$)/;
/** What comes between the name of a file and its hunks, and changes nothing but text. */
const plainHeader = /^(?:index [0-9a-f]|new file mode 100(?:644|755)$)/;

/**
 * Reads a unified diff as people and models write one: in a fence or between prose, with wrong counts, without `a/` and `b/`.
 * What does more to a file than change its lines or make it is refused.
 */
export function parsePatch(text: string): ParsedPatch {
  const lines = unfenced(text).split(/\r?\n/);
  const files: PatchedFile[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (isFileHead(lines, at)) {
      const read = readFile(lines, at);
      if ('reason' in read) return { ok: false, reason: read.reason };
      files.push(read.file);
      at = read.end;
    } else if (refusedHeader(line)) {
      return { ok: false, reason: `it does more than change lines of text ("${line.slice(0, 60)}")` };
    } else at++;
  }
  if (files.length === 0) return { ok: false, reason: 'it is no unified diff' };
  if (files.length > mostFiles) return { ok: false, reason: `it changes more than ${mostFiles} files` };
  const names = files.map(({ newPath }) => newPath);
  if (new Set(names).size < names.length) return { ok: false, reason: 'it changes a file in two places of the patch' };
  return { ok: true, files };
}

function unfenced(text: string): string {
  return /```(?:diff|patch)?[^\S\n]*\n([\s\S]*?)\n```/.exec(text)?.[1] ?? text;
}

function isFileHead(lines: readonly string[], at: number): boolean {
  return (lines[at] ?? '').startsWith('--- ') && (lines[at + 1] ?? '').startsWith('+++ ');
}

function refusedHeader(line: string): boolean {
  if (plainHeader.test(line) || line.startsWith('diff --git ')) return false;
  return /^(?:(?:old|new|deleted file|new file) mode |similarity index |rename |copy |GIT binary patch|Binary files )/.test(
    line,
  );
}

function readFile(lines: readonly string[], start: number): { file: PatchedFile; end: number } | { reason: string } {
  const oldName = nameIn(lines[start] ?? '');
  const newName = nameIn(lines[start + 1] ?? '');
  if (oldName === undefined || newName === undefined) return { reason: 'the name of a file in it is quoted or empty' };
  if (newName === '/dev/null') return { reason: `it deletes ${oldName}` };
  const marked = (oldName === '/dev/null' || oldName.startsWith('a/')) && newName.startsWith('b/');
  const plain = (name: string) => (marked ? name.slice(2) : name);
  const newPath = plain(newName);
  const oldPath = oldName === '/dev/null' ? undefined : plain(oldName);
  if (oldPath !== undefined && oldPath !== newPath) return { reason: `it renames ${oldPath}` };
  const hunks: Hunk[] = [];
  let at = start + 2;
  while (hunkHead.test(lines[at] ?? '')) {
    const [, from] = hunkHead.exec(lines[at] ?? '') ?? [];
    const body = readHunk(lines, at + 1);
    hunks.push({ ...(from !== undefined && { from: Number(from) }), lines: body.lines });
    at = body.end;
  }
  if (!hunks.some(hunk => hunk.lines.some(line => /^[-+]/.test(line))))
    return { reason: `it changes nothing in ${newPath}` };
  return { file: { ...(oldPath !== undefined && { oldPath }), newPath, hunks }, end: at };
}

function nameIn(header: string): string | undefined {
  const name = header.slice(4).split('\t', 1)[0]?.trim() ?? '';
  return name === '' || name.startsWith('"') ? undefined : name;
}

function readHunk(lines: readonly string[], start: number): { lines: string[]; end: number } {
  const body: string[] = [];
  let at = start;
  for (; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (hunkHead.test(line) || line.startsWith('diff --git ') || isNextFile(lines, at)) break;
    if (line !== '' && !' +-\\'.includes(line.charAt(0))) break;
    // Editors and models drop the blank that stands before an empty line.
    body.push(line === '' ? ' ' : line);
  }
  // What is left of the text behind the last hunk is no context.
  while (at - start > 0 && body.at(-1) === ' ' && (lines[start + body.length - 1] ?? '') === '') body.pop();
  return { lines: body, end: at };
}

/** A removed line that begins with `-- ` looks like the head of a file, but no hunk follows it. */
function isNextFile(lines: readonly string[], at: number): boolean {
  return isFileHead(lines, at) && hunkHead.test(lines[at + 2] ?? '');
}
