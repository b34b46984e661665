import { structuredPatch } from 'diff';
import { printablePath, textBetween } from '../../core/text.ts';
import { maxChangedLines } from '../diff.ts';
import { type MaskContext, maskFile, placeholdersIn } from '../restore-secrets.ts';

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
  /** As written, without `b/`; of a file that is deleted its old path. */
  newPath: string;
  isDeleted?: true;
  hunks: Hunk[];
}

/** Why a patch is not taken: the message is a clause that goes on from "it was withheld:". */
export class UnfitPatch extends Error {}

const maxFiles = 50;

const hunkHead = /^@@(?: -(\d{1,9})(?:,\d+)? \+\d+(?:,\d+)? @@| .*@@|$)/;

/** What comes between the name of a file and its hunks, and changes more than text. */
const refusedHeader =
  /^(?!new file mode 100(?:644|755)$)(?:(?:old|new|deleted file|new file) mode |index \S+ (?!100(?:644|755)$)|similarity index |rename |copy |GIT binary patch|Binary files )/;

/**
 * Reads a unified diff as people and models write one: in a fence or between prose, with wrong counts, without `a/` and `b/`.
 * Throws `UnfitPatch` for what does more to a file than change its lines, make it, or where it may, delete it.
 */
export function parsePatch(text: string, { deletes = false }: { deletes?: boolean } = {}): PatchedFile[] {
  const lines = (textBetween(text, /```(?:diff|patch)?[^\S\n]*\n/, '\n```') ?? text).split(/\r?\n/);
  const files: PatchedFile[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (isFileHead(lines, at)) {
      const read = readFile(lines, at, deletes);
      files.push(read.file);
      at = read.end;
    } else if (refusedHeader.test(line) && !(deletes && /^deleted file mode 100(?:644|755)$/.test(line))) {
      throw new UnfitPatch(`it does more than change lines of text ("${line.slice(0, 60)}")`);
    } else at++;
  }
  if (files.length === 0) throw new UnfitPatch('it is no unified diff');
  if (files.length > maxFiles) throw new UnfitPatch(`it changes more than ${maxFiles} files`);
  const names = files.map(({ newPath }) => newPath);
  if (new Set(names).size < names.length) throw new UnfitPatch('it changes a file in two places of the patch');
  return files;
}

const isFileHead = (lines: readonly string[], at: number): boolean =>
  (lines[at] ?? '').startsWith('--- ') && (lines[at + 1] ?? '').startsWith('+++ ');

function readFile(lines: readonly string[], start: number, deletes: boolean): { file: PatchedFile; end: number } {
  const oldName = nameIn(lines[start] ?? '');
  const newName = nameIn(lines[start + 1] ?? '');
  if (oldName === undefined || newName === undefined)
    throw new UnfitPatch('the name of a file in it is quoted or empty');
  const isDeleted = newName === none;
  if (isDeleted && !deletes) throw new UnfitPatch(`it deletes ${oldName}`);
  const marked = (oldName === none || oldName.startsWith('a/')) && (isDeleted || newName.startsWith('b/'));
  const plain = (name: string) => (marked ? name.slice(2) : name);
  const newPath = plain(isDeleted ? oldName : newName);
  const oldPath = oldName === none ? undefined : plain(oldName);
  if (oldPath !== undefined && oldPath !== newPath) throw new UnfitPatch(`it renames ${oldPath}`);
  const hunks: Hunk[] = [];
  let at = start + 2;
  while (hunkHead.test(lines[at] ?? '')) {
    const [, from] = hunkHead.exec(lines[at] ?? '') ?? [];
    const body = readHunk(lines, at + 1);
    hunks.push({ ...(from !== undefined && { from: Number(from) }), lines: body.lines });
    at = body.end;
  }
  if (!hunks.some(hunk => hunk.lines.some(line => /^[-+]/.test(line))))
    throw new UnfitPatch(`it changes nothing in ${newPath}`);
  return { file: { oldPath, newPath, ...(isDeleted && { isDeleted }), hunks }, end: at };
}

/** Stands for the file that is not there. */
const none = '/dev/null';

function nameIn(header: string): string | undefined {
  const name = header.slice(4).split('\t', 1)[0]?.trim() ?? '';
  return name === '' || name.startsWith('"') ? undefined : name;
}

function readHunk(lines: readonly string[], start: number): { lines: string[]; end: number } {
  const body: string[] = [];
  let at = start;
  for (; at < lines.length; at++) {
    const line = lines[at] ?? '';
    // A removed line that begins with `-- ` looks like the head of a file, but no hunk follows it.
    const isNextFile = isFileHead(lines, at) && hunkHead.test(lines[at + 2] ?? '');
    if (hunkHead.test(line) || line.startsWith('diff --git ') || isNextFile) break;
    if (line !== '' && !' +-\\'.includes(line.charAt(0))) break;
    // Editors and models drop the blank that stands before an empty line.
    body.push(line === '' ? ' ' : line);
  }
  // What is left of the text behind the last hunk is no context.
  while (at - start > 0 && body.at(-1) === ' ' && (lines[start + body.length - 1] ?? '') === '') body.pop();
  return { lines: body, end: at };
}

const maxMs = 2_000;

/**
 * What the hunks of one file make of its text, whose line ends are plain. A hunk whose old lines stand nowhere, or at several
 * places of which its head names none, does not fit.
 */
function patchedText(hunks: readonly Hunk[], text: string): string {
  const lines = text.split('\n');
  const endsWhole = lines.at(-1) === '';
  if (endsWhole) lines.pop();
  const after: string[] = [];
  let behind = 0;
  for (const hunk of hunks) {
    const marked = hunk.lines.filter(line => !line.startsWith('\\'));
    const old = marked.filter(line => !line.startsWith('+')).map(line => line.slice(1));
    const place = placeOf(old, lines, hunk.from, behind);
    const fresh = marked.filter(line => !line.startsWith('-')).map(line => line.slice(1));
    after.push(...lines.slice(behind, place), ...fresh);
    behind = place + old.length;
  }
  const [last, note] = hunks.at(-1)?.lines.slice(-2) ?? [];
  const isBare = note?.startsWith('\\') && !last?.startsWith('-');
  const ends = behind === lines.length ? !isBare : endsWhole;
  after.push(...lines.slice(behind));
  return `${after.join('\n')}${ends && after.length > 0 ? '\n' : ''}`;
}

/** What stands at the beginning of some files, and is not shown to models. */
const byteOrderMark = '\uFEFF';

/** A file's text as models see it, and how a text of theirs is written there: with its byte-order mark and line ends. */
export function formOf(before = '') {
  const lead = before.startsWith(byteOrderMark) ? byteOrderMark : '';
  const crlf = before.includes('\r\n') && !/(?:^|[^\r])\n/.test(before);
  const whole = before.slice(lead.length);
  const written = (text: string) => (crlf ? text.replace(/\r?\n/g, '\r\n') : text);
  return {
    plain: crlf ? whole.replaceAll('\r\n', '\n') : whole,
    written: (text: string) => (text.startsWith(lead) ? '' : lead) + written(text),
  };
}

/** What a patch makes of a file, with its line ends and its secrets; `before` is undefined for a file that is to be made. */
export async function patchedFile(context: MaskContext | undefined, path: string, file: PatchedFile, before?: string) {
  const { newPath, hunks } = file;
  const { plain, written } = formOf(before);
  const masked = context && (await maskFile(context, path, plain));
  const canonical = hunks.map(hunk => ({ ...hunk, lines: hunk.lines.map(masked?.canonical ?? String) }));
  // Without a placeholder it may also be made from what the model itself wrote, or saw in another place.
  const touched = hunks.some(({ lines }) => lines.some(line => placeholdersIn(line).size > 0));
  const made = inFile(newPath, () => patchedText(canonical, touched && masked ? masked.text : plain));
  const { text, secrets } = (await masked?.restore(made)) ?? { text: made, secrets: [] };
  return { after: written(text), secrets: secrets.filter(({ kept }) => !kept) };
}

/** A change of one file as git wants it: with right numbers and three lines around it. */
export function fittedHunks({ newPath, hunks, oldPath }: PatchedFile, before: string, after: string) {
  const lines = inFile(newPath, () => (oldPath === undefined ? newFileHunk(hunks) : changedHunks(before, after)));
  const count = (mark: string) => lines.filter(line => line.startsWith(mark)).length;
  return { lines, added: count('+'), removed: count('-') };
}

/** The only hunk that a new file has. */
function newFileHunk(hunks: readonly Hunk[]): string[] {
  const lines = hunks.flatMap(hunk => hunk.lines).filter(line => !line.startsWith('\\'));
  if (lines.some(line => !line.startsWith('+'))) throw new UnfitPatch('a new file has lines that are not new');
  return [`@@ -0,0 +1,${lines.length} @@`, ...lines];
}

function changedHunks(before: string, after: string): string[] {
  const limits = { context: 3, maxEditLength: maxChangedLines, timeout: maxMs };
  const patch = structuredPatch('a', 'b', before, after, '', '', limits);
  if (!patch) throw new UnfitPatch(`it changes more than ${maxChangedLines} lines`);
  return patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
    ...lines,
  ]);
}

/** Names the file in what is unfit about its change. */
function inFile<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof UnfitPatch ? new UnfitPatch(`${printablePath(path)}: ${error.message}`) : error;
  }
}

/** The index at which the old lines stand. */
function placeOf(old: readonly string[], lines: readonly string[], stated: number | undefined, behind: number): number {
  if (old.length === 0) {
    // Without a line around it, only an empty file says where it belongs.
    if (lines.length === 0) return 0;
    throw new UnfitPatch('a hunk has no line of the file around what it adds');
  }
  const places: number[] = [];
  for (let at = behind; at + old.length <= lines.length; at++) {
    if (old.every((line, index) => lines[at + index] === line)) places.push(at);
  }
  const [first] = places;
  if (first === undefined) throw new UnfitPatch(`the lines it changes are not there (near line ${stated ?? '?'})`);
  if (stated !== undefined && places.includes(stated - 1)) return stated - 1;
  if (places.length === 1) return first;
  throw new UnfitPatch(`the lines it changes occur at ${places.length} places`);
}
