import { limitError } from '../core/errors.ts';
import type { FileRecord } from '../core/file.ts';
import { answerTokens, type Candidate, hasWideWindow, type ModelInfo } from '../core/model.ts';
import { cutMiddle, printablePath, safeCut } from '../core/text.ts';
import type { Compaction, StoredTurn, Thread, Trim } from '../core/thread.ts';
import { estimateTokens, tokensPerMessage } from '../core/tokens.ts';
import { renderTurn, type Selection } from './transcript.ts';

interface BudgetRequest extends Pick<ModelInfo, 'window' | 'maxOutput'>, Pick<Candidate, 'maxPrompt'> {
  /** Tokens that can't be left out: preamble, question, tail. */
  reserved: number;
}

/** How one prompt's window is divided. All figures are tokens; `answer + reserved + rest` is never more than `window`. */
export type Budget = ReturnType<typeof planBudget>;

/** Divides a window. Throws LIMIT with the numbers when the reserved parts alone are too much. */
export function planBudget({ window, maxOutput, reserved, maxPrompt = window }: BudgetRequest) {
  const answer = answerTokens({ window, maxOutput });
  const room = window - answer - reserved;
  if (room < 0)
    throw limitError(
      'tokens',
      `The request needs about ${reserved} tokens; the model has room for ${window - answer}.`,
      {
        next: 'Shorten the text, move it to a file and name that file, or choose a model with a larger context window (see "listmodels").',
        data: { window, answer, reserved },
      },
    );
  /** For history and files together. */
  const rest = Math.max(0, Math.min(room, maxPrompt - reserved));
  /** The most that history may take where new files need the rest; above it the thread is compacted. */
  const history = Math.floor(rest * (hasWideWindow(window) ? 0.4 : 0.5));
  return { window, answer, reserved, rest, history };
}

/** The largest power of two that is not above the window: models of one class share a thread's compactions. */
export const windowClass = (window: number): number => 2 ** Math.floor(Math.log2(Math.max(1, window)));

/** What a reader must not miss: decisions, causes, constraints, failures, open questions. */
const weighty =
  /\b(?:decid\w*|decision|agree\w*|chos\w*|must|never|always|only|because|cause\w*|root|fix\w*|bug|fail\w*|error|exception|fatal|panic|timeout|warn\w*|risk\w*|constraint\w*|limit\w*|require\w*|default|deprecated|breaking|result\w*|conclu\w*|recommend\w*|open question|unknown|next)\b/i;

const pathLike = /[\w./-]+\.[a-z]{1,5}\b(:\d+)?/;

const weightOf = (line: string): number =>
  (weighty.test(line) ? 3 : 0) + (pathLike.test(line) ? 1 : 0) + (/\d/.test(line) ? 1 : 0);

/** What stands between two lines. */
const seamTokens = 2;

/** Of these lines those that weigh most and together take no more than `tokens`, in their order; `bonus`: what one weighs besides. */
export function weightiest(lines: readonly string[], tokens: number, bonus: (line: string, index: number) => number) {
  let left = tokens;
  const byWeight = lines
    .map((line, index) => ({ line, index, weight: weightOf(line) + bonus(line, index) }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight);
  const picked = byWeight.filter(({ line }) => {
    const rest = left - estimateTokens(line) - seamTokens;
    if (rest >= 0) left = rest;
    return rest >= 0;
  });
  return picked.sort((a, b) => a.index - b.index).map(({ line }) => line);
}

/** In `budget` tokens, without a model: turns' first lines, and decisions, causes, paths and numbers; the newest ones in more detail. */
export function extractiveSummary(turns: readonly StoredTurn[], budget: number): string {
  const files = filesLine(turns);
  let left = budget - estimateTokens(files);
  const lines: string[] = [];
  // Newest first gets its share first; each turn gets half of what is left at the most, so the oldest still get a line.
  for (const turn of turns.toReversed()) {
    const allowance = Math.max(24, Math.min(Math.floor(left / 2), Math.floor((budget / turns.length) * 2)));
    const line = `- ${turn.role === 'user' ? `turn ${turn.seq}, ${turn.toolName}` : `answer by ${turn.modelName ?? 'a model'}`}: ${digest(turn.content, allowance)}`;
    const cost = estimateTokens(line) + 1;
    if (cost > left) break;
    left -= cost;
    lines.push(line);
  }
  const leftOut = turns.length - lines.length;
  const note = leftOut > 0 ? `- (${leftOut} earlier turns are not summarised; they are in the store)\n` : '';
  return `${note}${lines.toReversed().join('\n')}${files}`;
}

/** The files that turns brought along, as the last line of a summary; empty where there were none. */
export function filesLine(turns: readonly StoredTurn[]): string {
  const shown = (file: FileRecord) => file.form !== 'deleted';
  const paths = [...new Set(turns.flatMap(turn => turn.files.filter(shown).map(file => file.path)))];
  return paths.length === 0 ? '' : `\nFiles discussed: ${paths.slice(-40).map(printablePath).join(', ')}`;
}

function digest(content: string, tokens: number): string {
  const [first = '', ...others] = content
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('```'));
  const text = [first, ...weightiest(others, tokens - estimateTokens(first), () => 0)].join(' ');
  return estimateTokens(text) <= tokens ? text : `${safeCut(text, Math.floor(tokens * 2.5))}…`;
}

/** A compaction cuts to this part of the budget at once: each loses the vendor's cache, so that there are to be few. */
const cutTo = 0.3;

/** Of what is kept: the most that the summary, first request included, may take. */
const summaryShare = 0.25;

const pinnedShare = 0.3;

export interface CompactionRequest {
  thread: Thread;
  selection: Selection;
  windowClass: number;
  /** Tokens (o200k) that history may take. */
  historyBudget: number;
  /** Turns that may stand in a prompt. */
  maxTurns: number;
  now: number;
}

/** Tokens (o200k) of the turns of a selection, summary included. */
export const selectionTokens = ({ compaction, turns }: Selection): number =>
  (compaction ? estimateTokens(compaction.summary) + tokensPerMessage : 0) + costOf(turns, compaction?.trims);

/** Whether a prompt of these turns has outgrown its share of the window or the number of turns. */
export const exceedsHistoryBudget = (selection: Selection, historyBudget: number, maxTurns: number): boolean =>
  selection.turns.length > maxTurns || selectionTokens(selection) > historyBudget;

/**
 * Decides how the thread is shown from now on: the newest exchanges whole, one that is too long cut in its middle, all
 * before them as a summary that begins with the first request. The originals stay in the store.
 */
export function compact(request: CompactionRequest): Compaction {
  const { thread, selection, windowClass, historyBudget, maxTurns, now } = request;
  const target = Math.max(0, Math.floor(historyBudget * cutTo));
  const summaryBudget = Math.floor(target * summaryShare);
  const { firstSeq = thread.seq + 1, trims } = keepNewest(
    [...Map.groupBy(selection.turns, ({ exchange }) => exchange).values()],
    target - summaryBudget,
    Math.max(2, Math.floor(maxTurns * cutTo)),
  );
  const compaction = { window: windowClass, upToSeq: firstSeq - 1, summary: '', trims, createdAt: now };
  const dropped = droppedTurns(thread, compaction);
  const head = headOf(dropped, summaryBudget);
  const rest = dropped.length === 0 ? '' : extractiveSummary(dropped, summaryBudget - estimateTokens(head));
  return { ...compaction, summary: head + rest };
}

function keepNewest(exchanges: StoredTurn[][], budget: number, maxTurns: number) {
  const trims: Trim[] = [];
  let firstSeq: number | undefined;
  let left = budget;
  let turnsLeft = maxTurns;
  for (const exchange of exchanges.toReversed()) {
    const cost = costOf(exchange);
    const oversized = cost > budget / 2;
    const allowance = oversized ? Math.min(left, Math.floor(budget / 2)) : left;
    const first = firstSeq === undefined;
    if (exchange.length > turnsLeft || (!first && (oversized ? allowance < 200 : cost > left))) break;
    const own = cost > allowance || oversized ? trimExchange(exchange, allowance) : [];
    trims.push(...own);
    left -= costOf(exchange, own);
    turnsLeft -= exchange.length;
    firstSeq = exchange[0]?.seq;
  }
  return { firstSeq, trims };
}

/** Tokens (o200k) of turns in a prompt. */
const costOf = (turns: readonly StoredTurn[], trims: readonly Trim[] = []): number =>
  turns.reduce((sum, turn) => {
    const trim = trims.find(({ seq }) => seq === turn.seq);
    return sum + (trim ? trimmedTokens(turn, trim) : turn.tokens) + tokensPerMessage;
  }, 0);

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

const trimmedTokens = (turn: StoredTurn, trim: Trim): number =>
  estimateTokens(renderTurn(turn, undefined, new Map(), trim)) + (turn.role === 'user' ? 20 : 0);

/** The turns that a compaction stands for. */
export const droppedTurns = ({ turns }: Pick<Thread, 'turns'>, { upToSeq }: Compaction): StoredTurn[] =>
  turns.filter(turn => turn.status === 'done' && turn.seq <= upToSeq);

/** Tokens (o200k) that somebody else's words may take in place of the extract, beside the first request and the files. */
export function summaryRoom({ summary }: Compaction, dropped: readonly StoredTurn[]): number {
  const budget = estimateTokens(summary);
  return budget - estimateTokens(`${headOf(dropped, budget)}${filesLine(dropped)}`);
}

/** The compaction with other words in place of the extract, cut after a line when they take more room than that did. */
export function withSummary(compaction: Compaction, dropped: readonly StoredTurn[], words: string): Compaction {
  const budget = estimateTokens(compaction.summary);
  const lines = words.trim().split('\n');
  const made = () => `${headOf(dropped, budget)}${lines.join('\n')}${filesLine(dropped)}`;
  while (lines.length > 0 && estimateTokens(made()) > budget) lines.length = Math.floor(lines.length * 0.9);
  return lines.length === 0 ? compaction : { ...compaction, summary: made() };
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
