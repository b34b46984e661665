import type { FileRecord, LineRange } from '../core/file.ts';
import type { Sha256 } from '../core/ids.ts';
import type { Selection } from '../threads/transcript.ts';

/** A file whose text stands in the prompt that is about to be sent. */
export interface StandingFile {
  path: string;
  size: number;
  mtimeMs: number;
  /** Of the file on disk when it was last sent. */
  sha256: Sha256;
  /** Blob with the text that the prompt, read to its end, amounts to. */
  base: Sha256;
  /** The lines that stand there; absent: all of them. */
  range?: LineRange;
  /** Its text was read out of a document. */
  document?: boolean;
}

/**
 * The files that need not be sent again, by path: those whose text (or text and diffs) stands in the selected turns. One
 * that a compaction or a trim took out is not among them, so it is embedded again when it is needed.
 */
export function standingFiles({ compaction, turns }: Selection): Map<string, StandingFile> {
  const standing = new Map<string, StandingFile>();
  const trimmed = new Set(compaction?.trims.map(trim => trim.seq));
  for (const turn of turns) {
    if (trimmed.has(turn.seq)) continue;
    for (const file of turn.files) apply(standing, file);
  }
  return standing;
}

function apply(standing: Map<string, StandingFile>, file: FileRecord): void {
  const { path, size, mtimeMs, sha256, base, range, document } = file;
  switch (file.form) {
    case 'full':
      if (base) standing.set(path, { path, size, mtimeMs, sha256, base, ...(document && { document }) });
      return;
    case 'range':
      if (base)
        standing.set(
          path,
          merged(standing.get(path), { path, size, mtimeMs, sha256, base, range, ...(document && { document }) }),
        );
      return;
    case 'diff': {
      const before = standing.get(path);
      // A diff whose base was compacted away says nothing by itself.
      if (before && base) standing.set(path, { ...before, size, mtimeMs, sha256, base });
      return;
    }
    case 'deleted':
      standing.delete(path);
      return;
    // The file itself was not shown: it is embedded as soon as there is room.
    case 'outline':
    case 'summary':
    case 'unchanged':
    case 'changed':
      return;
  }
}

/** The texts that stand in the selected turns in place of files: diffs, outlines, summaries. */
export function shownTexts({ compaction, turns }: Selection): Set<Sha256> {
  const trimmed = new Set(compaction?.trims.map(trim => trim.seq));
  const files = turns.filter(turn => !trimmed.has(turn.seq)).flatMap(turn => turn.files);
  return new Set(files.flatMap(({ shown }) => (shown ? [shown] : [])));
}

/** Two ranges of one text stand together only when they touch; else the newer one is what counts. */
function merged(before: StandingFile | undefined, now: StandingFile): StandingFile {
  if (!before || before.sha256 !== now.sha256) return now;
  if (!before.range || !now.range) return { ...now, range: undefined };
  const touch = now.range.from <= before.range.to + 1 && before.range.from <= now.range.to + 1;
  if (!touch) return now;
  return {
    ...now,
    range: { from: Math.min(before.range.from, now.range.from), to: Math.max(before.range.to, now.range.to) },
  };
}

/** Whether all the lines that are asked for stand in the prompt already. */
export function covers(standing: StandingFile, wanted: LineRange | undefined): boolean {
  if (!standing.range) return true;
  return wanted !== undefined && standing.range.from <= wanted.from && standing.range.to >= wanted.to;
}
