import { safeCut } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';

/** Says in about `tokens` tokens what a text says. A model stands behind it; it throws when there is no answer. */
export type WriteSummary = (text: string, tokens: number) => Promise<string>;

export interface CondenseRequest {
  /** What is to be shortened, in order. */
  parts: readonly string[];
  /** Tokens (o200k) that the summary should take. */
  tokens: number;
  /** Tokens (o200k) of text that whoever writes can read at once. */
  room: number;
  write: WriteSummary;
}

/** Written at the same time. */
const atOnce = 4;
/** A text that takes more pieces than this is worth neither the time nor the money. */
const mostPieces = 24;
/** Least that a piece's own summary gets. */
const leastPiece = 200;

/**
 * A summary of the parts. What is too long to be read at once is summed up piece by piece, and the summaries again, until
 * they are short enough. Undefined when that would take too many pieces.
 */
export async function condense({ parts, tokens, room, write }: CondenseRequest): Promise<string | undefined> {
  for (let left = parts; ; ) {
    const pieces = inPieces(left, room);
    const [only, ...others] = pieces;
    if (only === undefined || pieces.length > mostPieces) return undefined;
    if (others.length === 0) return write(only, tokens);
    // Two pieces become one at the least, so that each round is shorter than the one before.
    const each = Math.max(leastPiece, Math.floor(room / Math.max(3, pieces.length)));
    if (each * 2 > room) return undefined;
    left = (await written(pieces, each, write)).map(text => cutTo(text, each));
  }
}

async function written(pieces: readonly string[], tokens: number, write: WriteSummary): Promise<string[]> {
  const done: string[] = [];
  for (let at = 0; at < pieces.length; at += atOnce) {
    done.push(...(await Promise.all(pieces.slice(at, at + atOnce).map(piece => write(piece, tokens)))));
  }
  return done;
}

/** Neighbours together as long as they can be read at once; what is too long alone is cut. */
function inPieces(parts: readonly string[], room: number): string[] {
  const pieces: string[] = [];
  let open: string[] = [];
  let used = 0;
  const close = () => {
    if (open.length > 0) pieces.push(open.join('\n\n'));
    open = [];
    used = 0;
  };
  for (const part of parts.flatMap(each => slices(each, room))) {
    const cost = estimateTokens(part) + 2;
    if (used + cost > room) close();
    open.push(part);
    used += cost;
  }
  close();
  return pieces;
}

function slices(text: string, room: number): string[] {
  const found: string[] = [];
  for (let rest = text; rest !== ''; rest = rest.slice(found.at(-1)?.length)) found.push(cutTo(rest, room - 2));
  return found;
}

/** The beginning that costs at most `tokens`; some of it in any case, so that cutting comes to an end. */
function cutTo(text: string, tokens: number): string {
  let chars = Math.min(text.length, Math.max(16, tokens * 5));
  while (chars > 16 && estimateTokens(safeCut(text, chars)) > tokens) chars = Math.floor(chars * 0.85);
  return safeCut(text, chars) || text.slice(0, 2);
}
