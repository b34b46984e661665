import { securityError } from '../core/errors.ts';
import type { Mask } from '../core/ports.ts';
import { isSkip } from './paths.ts';
import { readFile } from './read-file.ts';
import type { Sandbox } from './sandbox.ts';

/** What placeholders stand for. */
export type SecretsByPlaceholder = ReadonlyMap<string, string>;

export interface SecretsRequest {
  /** The placeholders that are looked for. */
  wanted: ReadonlySet<string>;
  /** Files that were masked, the likeliest first; absolute. */
  paths: readonly string[];
  /** What they were masked under: thread ids. */
  scopes: readonly string[];
  sandbox: Sandbox;
  mask: Mask;
  maxBytes: number;
  signal?: AbortSignal;
}

/** With the flag `g`: for matching and replacing all. */
export const placeholder = /\[masked:\w{1,40}:[0-9a-f]{8}\]/g;

export function placeholdersIn(text: string): Set<string> {
  return new Set(text.match(placeholder));
}

/**
 * Finds what placeholders stand for by masking the files again, as they are now: nobody keeps a secret for this. What is not in
 * those files any more, or what two secrets share, is not found. Nothing outside the roots is looked at.
 */
export async function findSecrets(request: SecretsRequest): Promise<SecretsByPlaceholder> {
  const { sandbox, mask, maxBytes, signal } = request;
  const found = new Map<string, string>();
  const shared = new Set<string>();
  if (request.wanted.size === 0) return found;
  for (const path of request.paths) {
    const file = await readFile(sandbox, path, { maxBytes, signal });
    if (isSkip(file)) continue;
    for (const scope of request.scopes) {
      const { places = [] } = await mask(file.text, scope);
      for (const { start, end, placeholder: name } of places) {
        if (!request.wanted.has(name)) continue;
        const original = file.text.slice(start, end);
        if ((found.get(name) ?? original) !== original) shared.add(name);
        found.set(name, original);
      }
    }
  }
  for (const name of shared) found.delete(name);
  return found;
}

/** A text with its secrets in their places again. */
export interface RestoredText {
  text: string;
  /** How many placeholders were replaced. */
  count: number;
  /** Those that stay, with the line of the text that they stand on, from 1. */
  left: { placeholder: string; line: number }[];
}

const hunkHead = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** A hunk of a patch, while its lines are read. */
interface Hunk {
  /** Where its head stands in the lines that come out. */
  at: number;
  oldFrom: number;
  oldLines: number;
  newFrom: number;
  newLines: number;
  oldLeft: number;
  newLeft: number;
}

/**
 * Replaces placeholders by what they stand for. A secret of several lines was one line to whoever wrote the text: within a
 * patch each of its lines gets the line's mark, and the numbers of the hunks say so.
 */
export function restoreSecrets(text: string, originals: SecretsByPlaceholder): RestoredText {
  const out: string[] = [];
  const left: RestoredText['left'] = [];
  let count = 0;
  let hunk: Hunk | undefined;
  let shift = { old: 0, new: 0 };

  const restored = (line: string, number: number): string => {
    const missed = new Set<string>();
    const result = line.replace(placeholder, found => {
      const original = originals.get(found);
      if (original === undefined) missed.add(found);
      else count++;
      return original ?? found;
    });
    for (const found of missed) left.push({ placeholder: found, line: number });
    return result;
  };

  for (const [index, line] of text.split('\n').entries()) {
    if (hunk && hunk.oldLeft <= 0 && hunk.newLeft <= 0) hunk = undefined;
    const head = hunk ? undefined : hunkHead.exec(line);
    if (line.startsWith('--- ') && !hunk) shift = { old: 0, new: 0 };
    const mark = line.charAt(0);
    if (head) {
      hunk = hunkOf(head, out.length, shift);
      out.push(restored(line, index + 1));
    } else if (hunk && (mark === ' ' || mark === '+' || mark === '-' || line === '')) {
      const lines = restored(line.slice(1), index + 1).split('\n');
      out.push(...(line === '' ? [''] : lines.map(each => mark + each)));
      grow(hunk, mark, lines.length - 1, shift);
    } else {
      if (hunk && mark !== '\\') hunk = undefined;
      out.push(...restored(line, index + 1).split('\n'));
    }
    if (hunk) out[hunk.at] = headOf(hunk, out[hunk.at] ?? '');
  }
  return { text: out.join('\n'), count, left };
}

function hunkOf([, oldFrom, oldLines = '1', newFrom, newLines = '1']: RegExpExecArray, at: number, shift: Shift): Hunk {
  return {
    at,
    oldFrom: Number(oldFrom) + shift.old,
    oldLines: Number(oldLines),
    newFrom: Number(newFrom) + shift.new,
    newLines: Number(newLines),
    oldLeft: Number(oldLines),
    newLeft: Number(newLines),
  };
}

interface Shift {
  old: number;
  new: number;
}

/** Counts a line off, and what it has become longer by on. */
function grow(hunk: Hunk, mark: string, more: number, shift: Shift): void {
  if (mark !== '+') {
    hunk.oldLeft--;
    hunk.oldLines += more;
    shift.old += more;
  }
  if (mark !== '-') {
    hunk.newLeft--;
    hunk.newLines += more;
    shift.new += more;
  }
}

function headOf({ oldFrom, oldLines, newFrom, newLines }: Hunk, line: string): string {
  return line.replace(hunkHead, `@@ -${oldFrom},${oldLines} +${newFrom},${newLines} @@`);
}

/** A patch that may be applied: every masked secret in it is the real one again. Throws SECURITY where one can't be found. */
export function restoreSecretsInPatch(patch: string, originals: SecretsByPlaceholder): Omit<RestoredText, 'left'> {
  const { text, count, left } = restoreSecrets(patch, originals);
  const [first] = left;
  if (!first) return { text, count };
  const lines = [...new Set(left.map(({ line }) => line))].slice(0, 10).join(', ');
  throw securityError(`The patch has ${first.placeholder} in place of a secret that is in no file of this thread.`, {
    class: 'masked',
    next: `Leave the masked lines out of the patch (lines ${lines} of it), or name the file that holds the secret and ask again.`,
    data: { lines: left.map(({ line }) => line).slice(0, 50) },
  });
}
