import { type Message, type SaidPart, type ToolResult, textOf } from '../../../core/message.ts';
import type { ModelInfo } from '../../../core/model.ts';
import { cutMiddle } from '../../../core/text.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../../core/tokens.ts';
import { asMessage } from '../../../threads/transcript.ts';
import { headed, refreshHeading } from './agent.ts';

/** One round: what the model said, and what came of its calls, in their order. */
export interface Exchange {
  said: readonly SaidPart[];
  /** What the model saw at first; later rounds have less of it. */
  results: readonly ToolResult[];
}

/** A run as its next question needs it. It edits its own past: that is what keeps it short. */
export interface Conversation {
  preamble: readonly Message[];
  /** Borne by our own blocks. */
  mark: string;
  /** Earlier turns; may lose their oldest. */
  history: readonly Message[];
  /** What stands before the task in its message: material that other tasks may share. Absent: nothing. */
  context?: Message;
  task: Message;
  exchanges: readonly Exchange[];
  /** What changed in files, told with the results of the newest exchange that it was found at. */
  refresh?: { after: Exchange; text: string } | undefined;
}

/**
 * The messages of the next question. Outputs of older rounds are cut to `truncLimit` characters; the newest block of changed
 * files stands behind the last result of its round, and no other does. Marked for the vendor's cache, which takes four with that of
 * the tools: the ends of the preamble, of the context (else the task), and of all there is.
 */
export function messagesOf(conversation: Conversation, truncLimit: number, closing?: string): Message[] {
  const { preamble, mark, history, context, task, exchanges, refresh } = conversation;
  const newest = exchanges.at(-1);
  const rounds = exchanges.flatMap(exchange => {
    const keep = exchange === newest ? Number.POSITIVE_INFINITY : truncLimit;
    const block = refresh?.after === exchange ? `\n\n${headed(refreshHeading, mark)}\n${refresh.text}` : '';
    return messagesOfRound(exchange, keep, block);
  });
  const end = { ...task, ...((rounds.length === 0 || !context) && { cacheMark: true }) };
  const before = [...history, ...(context ? [{ ...context, cacheMark: true }] : []), end];
  const order = closing === undefined ? [] : [asMessage('user', 'turn', closing)];
  return [...markedAtEnd(preamble), ...before, ...markedAtEnd(rounds), ...order];
}

const markedAtEnd = (messages: readonly Message[]): Message[] =>
  messages.map((message, at) => (at === messages.length - 1 ? { ...message, cacheMark: true } : message));

export function messagesOfRound({ said: parts, results }: Exchange, keep: number, block: string): Message[] {
  const content = results.map((result, index) => ({
    ...result,
    text: cutMiddle(result.text, keep) + (index === results.length - 1 ? block : ''),
  }));
  return [
    { role: 'assistant', section: 'turn', parts: [], said: parts },
    { role: 'user', section: 'turn', parts: [], results: content },
  ];
}

/** When a conversation loses its oldest entries, and by how much at least: tokens, and the entries that stay in any case. */
interface TrimRule {
  above: number;
  downTo: number;
  least: number;
}

/** Vendors with a window that gets dearer or duller long before it is full; the others by what fits. */
const rules: Readonly<Record<string, TrimRule>> = {
  anthropic: { above: 180_000, downTo: 135_000, least: 1 },
  minimax: { above: 180_000, downTo: 135_000, least: 1 },
  google: { above: 360_000, downTo: 270_000, least: 4 },
};

export function trimRule({ provider, window }: ModelInfo, answer: number): TrimRule {
  const fits = Math.max(1, Math.floor((window - answer) * 0.95));
  const rule = rules[provider] ?? { above: fits, downTo: Math.floor(fits * 0.75), least: 1 };
  const above = Math.min(rule.above, fits);
  return { above, downTo: Math.min(rule.downTo, Math.floor(above * 0.75)), least: rule.least };
}

/**
 * The conversation without its oldest entries where it is too long: a stale block of changed files first, then earlier turns,
 * then rounds, each call with its result. The task and the newest entries stay. What goes is a multiple of what the rule takes
 * at once, so that a conversation that grows keeps its beginning, and its vendor's cache, for many requests. Answers how many entries went.
 */
export function trimConversation(whole: Conversation, model: ModelInfo, room: { answer: number; truncLimit: number }) {
  const { answer, truncLimit } = room;
  const { above, downTo, least } = trimRule(model, answer);
  const factor = tokenFactor(model.id);
  const count = (each: Conversation) => tokensOf(messagesOf(each, truncLimit), factor);
  let tokens = count(whole);
  if (tokens <= above) return { conversation: whole, entries: 0, fits: true };
  let left = whole;
  if (left.refresh && left.refresh.after !== left.exchanges.at(-1)) {
    left = { ...left, refresh: undefined };
    tokens = count(left);
  }
  const step = above - downTo;
  const goal = tokens - Math.ceil(Math.max(0, tokens - above) / step) * step;
  let entries = 0;
  while (tokens > goal) {
    const shorter = withoutOldest(left, least);
    if (!shorter) break;
    tokens -= tokensOf(shorter.gone(truncLimit), factor);
    left = shorter.left;
    entries++;
  }
  return { conversation: left, entries, fits: tokens <= above };
}

/** An entry is what was said from one message of the user to the next, with its calls and results, or a round. */
function withoutOldest(conversation: Conversation, least: number) {
  const { history, exchanges, refresh } = conversation;
  if (history.length > 0 && history.length + exchanges.length > least) {
    const next = history.findIndex(({ role, results }, index) => index > 0 && role === 'user' && !results);
    const end = next === -1 ? history.length : next;
    return { left: { ...conversation, history: history.slice(end) }, gone: () => history.slice(0, end) };
  }
  const [oldest, ...rest] = exchanges;
  if (!oldest || exchanges.length <= Math.max(1, least)) return undefined;
  const left = { ...conversation, exchanges: rest, ...(refresh?.after === oldest && { refresh: undefined }) };
  return { left, gone: (truncLimit: number) => messagesOfRound(oldest, truncLimit, '') };
}

const tokensOf = (messages: readonly Message[], factor: number): number =>
  messages.reduce((sum, message) => sum + estimateTokens(textOf(message)) + tokensPerMessage, 0) * factor;
