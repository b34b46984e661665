import type { EvidencePiece } from '../../calls/tool.ts';
import { printablePath, safeCut } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';

export interface FittedEvidence {
  /** Empty when there is none. */
  text: string;
  /** Titles of what is not there, or not whole. */
  leftOut: string[];
}

/** A beginning is only worth showing from this many lines on. */
const leastLines = 20;
/** Room for the list of what is missing. */
const listTokens = 200;
const listed = 20;
const listChars = 400;

/** What fits whole comes whole, in its order; the others share what is then left, each cut at a line. */
export function fitEvidence(pieces: readonly EvidencePiece[], tokens: number): FittedEvidence {
  const named = pieces.map(({ title, text }) => ({ name: printablePath(title), text, shown: '' }));
  let left = tokens - listTokens;
  const show = (piece: (typeof named)[number], shown: string | undefined) => {
    const cost = shown === undefined ? Number.POSITIVE_INFINITY : estimateTokens(shown);
    if (shown === undefined || cost > left) return false;
    piece.shown = shown;
    left -= cost;
    return true;
  };
  const large = named.filter(piece => !show(piece, enclosed(piece.name, piece.text)));
  for (const piece of large) show(piece, beginning(piece.name, piece.text, left));
  const leftOut = large.map(({ name }) => name);
  const shown = named.map(piece => piece.shown).filter(Boolean);
  if (leftOut.length > 0) shown.push(`Left out or cut for want of room: ${listOf(leftOut)}`);
  return { text: shown.join('\n\n'), leftOut };
}

function listOf(names: readonly string[]): string {
  const list = safeCut(names.slice(0, listed).join(', '), listChars);
  return names.length > listed ? `${list} and ${names.length - listed} more` : list;
}

/** No line within can look like a mark of ours. */
function enclosed(name: string, text: string, extent = ''): string {
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).replace(/^===/gm, ' ===');
  return `=== BEGIN EVIDENCE: ${name}${extent} ===\n${lines}\n=== END EVIDENCE: ${name} ===`;
}

function beginning(name: string, text: string, tokens: number): string | undefined {
  const lines = text.split('\n');
  const cut = (count: number) =>
    enclosed(name, lines.slice(0, count).join('\n'), ` (the first ${count} of ${lines.length} lines)`);
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (estimateTokens(cut(middle)) <= tokens) low = middle;
    else high = middle - 1;
  }
  return low >= leastLines ? cut(low) : undefined;
}
