import { createTwoFilesPatch, diffArrays, FILE_HEADERS_ONLY } from 'diff';
import { printablePath } from '../core/text.ts';

/** Lines that may be added and removed in all; the work grows with the square of it. */
export const maxChangedLines = 4_000;
const maxMs = 500;

/** What changed, with three lines of context: '' for nothing, undefined for too much (the file is sent instead). */
export function unifiedDiff(path: string, before: string, after: string): string | undefined {
  if (before === after) return '';
  const name = printablePath(path);
  return createTwoFilesPatch(name, name, before, after, undefined, undefined, {
    context: 3,
    headerOptions: FILE_HEADERS_ONLY,
    maxEditLength: maxChangedLines,
    timeout: maxMs,
  });
}

/** Lines in stretches: the same in both texts, removed, or added. Texts that are too far apart are one change. */
export const changedLines = (before: string[], after: string[]) =>
  diffArrays(before, after, { maxEditLength: maxChangedLines, timeout: maxMs }) ?? [
    { value: before, removed: true, added: false },
    { value: after, removed: false, added: true },
  ];
