import { cutMiddle, safeCut } from '../core/text.ts';
import type { Compaction, StoredTurn, Thread, Trim } from '../core/thread.ts';
import { estimateTokens, tokensPerMessage } from '../core/tokens.ts';
import { extract, filesLine } from '../memory/extract.ts';
import { renderTurn, type Selection } from './transcript.ts';

/** A compaction cuts to this part of the budget at once, so that the prompt's beginning stays put for long afterwards. */
const cutTo = 0.6;
/** Of what is kept: the most that the summary, first request included, may take. */
const summaryShare = 0.25;
const pinnedShare = 0.3;

export interface CompactionRequest {
  thread: Thread;
  /** What stands in the prompt now. */
  selection: Selection;
  windowClass: number;
  /** Tokens (o200k) that history may take. */
  historyBudget: number;
  /** Turns that may stand in a prompt. */
  maxTurns: number;
  now: number;
}

/** Tokens (o200k) of the turns of a selection, summary included. */
export function selectionTokens({ compaction, turns }: Selection): number {
  let total = compaction ? estimateTokens(compaction.summary) + tokensPerMessage : 0;
  for (const turn of turns) {
    const trim = compaction?.trims.find(candidate => candidate.seq === turn.seq);
    total += (trim ? trimmedTokens(turn, trim) : turn.tokens) + tokensPerMessage;
  }
  return total;
}

/** Whether a prompt of these turns has outgrown its share of the window or the number of turns. */
export function outgrown(selection: Selection, historyBudget: number, maxTurns: number): boolean {
  return selection.turns.length > maxTurns || selectionTokens(selection) > historyBudget;
}

/**
 * Decides how the thread is shown from now on: the newest exchanges whole, one that is too long cut in its middle, all
 * before them as a summary that begins with the first request. The originals stay in the store.
 */
export function compact(request: CompactionRequest): Compaction {
  const { thread, selection, windowClass, historyBudget, maxTurns, now } = request;
  const target = Math.max(0, Math.floor(historyBudget * cutTo));
  const summaryBudget = Math.floor(target * summaryShare);
  const kept = keepNewest(
    exchangesOf(selection.turns),
    target - summaryBudget,
    Math.max(2, Math.floor(maxTurns * cutTo)),
  );
  const upToSeq = (kept.firstSeq ?? thread.seq + 1) - 1;
  const compaction = { window: windowClass, upToSeq, summary: '', trims: kept.trims, createdAt: now };
  return { ...compaction, summary: summarise(droppedTurns(thread, compaction), summaryBudget) };
}

function exchangesOf(turns: readonly StoredTurn[]): StoredTurn[][] {
  const exchanges: StoredTurn[][] = [];
  for (const turn of turns) {
    const last = exchanges.at(-1);
    if (last?.[0]?.exchange === turn.exchange) last.push(turn);
    else exchanges.push([turn]);
  }
  return exchanges;
}

interface Kept {
  firstSeq?: number;
  trims: Trim[];
}

function keepNewest(exchanges: StoredTurn[][], budget: number, maxTurns: number): Kept {
  const kept: Kept = { trims: [] };
  let left = budget;
  let turnsLeft = maxTurns;
  for (const exchange of exchanges.toReversed()) {
    const cost = exchange.reduce((sum, turn) => sum + turn.tokens + tokensPerMessage, 0);
    const oversized = cost > budget / 2;
    const allowance = oversized ? Math.min(left, Math.floor(budget / 2)) : left;
    const first = kept.firstSeq === undefined;
    if (exchange.length > turnsLeft || (!first && (oversized ? allowance < 200 : cost > left))) break;
    if (cost > allowance || oversized) {
      const trims = trimExchange(exchange, allowance);
      kept.trims.push(...trims);
      left -= exchange.reduce((sum, turn) => sum + costWith(turn, trims) + tokensPerMessage, 0);
    } else {
      left -= cost;
    }
    turnsLeft -= exchange.length;
    kept.firstSeq = exchange[0]?.seq;
  }
  return kept;
}

function costWith(turn: StoredTurn, trims: readonly Trim[]): number {
  const trim = trims.find(candidate => candidate.seq === turn.seq);
  return trim ? trimmedTokens(turn, trim) : turn.tokens;
}

/** Each turn of the exchange gets an equal part; what a short one leaves goes to the later ones. */
function trimExchange(exchange: readonly StoredTurn[], budget: number): Trim[] {
  let left = budget - exchange.length * tokensPerMessage;
  return exchange.flatMap((turn, index) => {
    const share = Math.max(0, Math.floor(left / (exchange.length - index)));
    if (turn.tokens <= share) {
      left -= turn.tokens;
      return [];
    }
    const trim = fittingTrim(turn, share);
    left -= trimmedTokens(turn, trim);
    return [trim];
  });
}

function fittingTrim(turn: StoredTurn, budget: number): Trim {
  const whole: Trim = { seq: turn.seq };
  if (trimmedTokens(turn, whole) <= budget) return whole;
  let chars = Math.min(turn.content.length, budget * 4);
  while (chars > 0 && trimmedTokens(turn, { seq: turn.seq, chars }) > budget) chars = Math.floor(chars * 0.8);
  return { seq: turn.seq, chars };
}

function trimmedTokens(turn: StoredTurn, trim: Trim): number {
  return estimateTokens(renderTurn(turn, undefined, new Map(), trim)) + (turn.role === 'user' ? 20 : 0);
}

/** The turns that a compaction stands for. */
export function droppedTurns({ turns }: Pick<Thread, 'turns'>, { upToSeq }: Compaction): StoredTurn[] {
  return turns.filter(turn => turn.status === 'done' && turn.seq <= upToSeq);
}

/** Tokens (o200k) that somebody else's words may take in place of the extract, beside the first request and the files. */
export function summaryRoom({ summary }: Compaction, dropped: readonly StoredTurn[]): number {
  const budget = estimateTokens(summary);
  return budget - estimateTokens(`${headOf(dropped, budget)}${filesLine(dropped)}`);
}

/** The compaction with other words in place of the extract, cut after a line when they take more room than that did. */
export function reworded(compaction: Compaction, dropped: readonly StoredTurn[], words: string): Compaction {
  const budget = estimateTokens(compaction.summary);
  const lines = words.trim().split('\n');
  const made = () => `${headOf(dropped, budget)}${lines.join('\n')}${filesLine(dropped)}`;
  while (lines.length > 0 && estimateTokens(made()) > budget) lines.length = Math.floor(lines.length * 0.9);
  return lines.length === 0 ? compaction : { ...compaction, summary: made() };
}

function summarise(dropped: readonly StoredTurn[], budget: number): string {
  const head = headOf(dropped, budget);
  if (dropped.length === 0) return head;
  return `${head}${extract(dropped, budget - estimateTokens(head))}`;
}

function headOf(dropped: readonly StoredTurn[], budget: number): string {
  const first = dropped.find(turn => turn.role === 'user');
  if (!first) return 'This conversation was shortened to fit: the turn below is cut in its middle.';
  const request = fitted(first.content, Math.floor(budget * pinnedShare));
  return `This conversation was shortened to fit. The first request was:\n\n${request}\n\nWhat followed, summarised:\n`;
}

/** The text cut in its middle until it costs at most `tokens`. */
function fitted(text: string, tokens: number): string {
  let chars = text.length;
  let candidate = text;
  while (chars > 16 && estimateTokens(candidate) > tokens) {
    chars = Math.floor(chars * 0.75);
    candidate = cutMiddle(text, chars);
  }
  return candidate.length <= text.length ? candidate : safeCut(text, chars);
}
