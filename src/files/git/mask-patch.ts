import type { Mask, MaskedPlace } from '../../core/ports.ts';

/** A secret that a patch brings in. */
export interface AddedSecret {
  kind: string;
  /** Of the file after the change, from 1. */
  line: number;
}

export interface MaskedPatch {
  patch: string;
  secrets: AddedSecret[];
}

interface PatchLine {
  /** ` `, `+`, `-`, or what a line of a header has. */
  mark: string;
  text: string;
  /** In the file after the change; absent for headers and removed lines. */
  line?: number;
}

/**
 * Masks the two sides of a patch each by itself, as the file reads before and after: a key of several lines is found also
 * where marks stand between its lines. Tells which of the finds the change brings in.
 */
export async function maskPatch(patch: string, mask: Mask, scope: string): Promise<MaskedPatch> {
  const lines = linesOf(patch);
  const secrets: AddedSecret[] = [];
  for (const removed of ['-', '+']) {
    const side = lines.filter(({ mark }) => mark !== removed);
    const text = side.map(line => line.text).join('\n');
    const { places = [] } = await mask(text, scope);
    for (const { kind, touched } of cover(side, places)) {
      const first = touched.find(({ mark }) => mark === '+');
      if (removed === '-' && first?.line !== undefined) secrets.push({ kind, line: first.line });
    }
  }
  return { patch: lines.map(({ mark, text }) => mark + text).join('\n'), secrets };
}

function linesOf(patch: string): PatchLine[] {
  let inHunk = false;
  let at = 0;
  return patch.split('\n').map((whole): PatchLine => {
    const hunk = /^@@ -\S+ \+(\d+)(?:,\d+)? @@/.exec(whole);
    if (hunk) {
      inHunk = true;
      at = Number(hunk[1]);
      return { mark: '', text: whole };
    }
    if (whole.startsWith('diff --git ')) inHunk = false;
    const mark = whole.charAt(0);
    if (!inHunk || !' +-'.includes(mark) || mark === '') return { mark: '', text: whole };
    return { mark, text: whole.slice(1), ...(mark !== '-' && { line: at++ }) };
  });
}

/** Puts the placeholders into the lines, the later ones first so that the places of the others stay right. */
function cover(side: readonly PatchLine[], places: readonly MaskedPlace[]): { kind: string; touched: PatchLine[] }[] {
  const starts: number[] = [];
  let length = 0;
  for (const { text } of side) {
    starts.push(length);
    length += text.length + 1;
  }
  let last = side.length - 1;
  return places
    .toReversed()
    .map(({ start, end, kind, placeholder }) => {
      while (last > 0 && (starts[last] ?? 0) >= end) last--;
      const touched: PatchLine[] = [];
      for (let index = last; index >= 0; index--) {
        const line = side[index];
        const from = starts[index] ?? 0;
        if (!line) continue;
        const begins = start >= from;
        const head = line.text.slice(0, Math.max(0, start - from));
        line.text = head + placeholder + line.text.slice(Math.max(0, end - from));
        touched.unshift(line);
        if (begins) break;
      }
      return { kind, touched };
    })
    .toReversed();
}
