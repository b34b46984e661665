import { type Message, textOf } from '../../core/message.ts';
import type { ModelInfo } from '../../core/model.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../core/tokens.ts';
import { type Conversation, messagesOf } from './conversation.ts';

/** When a conversation loses its oldest entries, and how many: tokens, and the entries that stay in any case. */
export interface TrimRule {
  above: number;
  downTo: number;
  least: number;
}

/** Vendors with a window that gets dearer or duller long before it is full; the others by what fits. */
const rules: Readonly<Record<string, TrimRule>> = {
  anthropic: { above: 180_000, downTo: 180_000, least: 1 },
  minimax: { above: 180_000, downTo: 180_000, least: 1 },
  google: { above: 360_000, downTo: 270_000, least: 4 },
};

export function trimRule({ provider, window }: ModelInfo, answer: number): TrimRule {
  const fits = Math.max(1, Math.floor((window - answer) * 0.95));
  const { above, downTo, least } = rules[provider] ?? { above: fits, downTo: fits, least: 1 };
  return { above: Math.min(above, fits), downTo: Math.min(downTo, fits), least };
}

/**
 * The conversation without its oldest entries where it is too long: a stale block of changed files first, then earlier turns,
 * then rounds, each call with its result. The task and the newest entries stay. Answers how many entries went.
 */
export function trimmed(
  conversation: Conversation,
  model: ModelInfo,
  { answer, truncLimit }: { answer: number; truncLimit: number },
): { conversation: Conversation; entries: number } {
  const rule = trimRule(model, answer);
  const factor = tokenFactor(model.id);
  const count = (each: Conversation) => tokensOf(messagesOf(each, truncLimit), factor);
  if (count(conversation) <= rule.above) return { conversation, entries: 0 };
  let left = conversation;
  if (left.refresh && left.refresh.after !== left.exchanges.at(-1)) left = { ...left, refresh: undefined };
  let entries = 0;
  while (count(left) > rule.downTo) {
    const shorter = withoutOldest(left, rule.least);
    if (!shorter) break;
    left = shorter;
    entries++;
  }
  return { conversation: left, entries };
}

/** An entry is an earlier message, with its results where it called tools, or a round. */
function withoutOldest(conversation: Conversation, least: number): Conversation | undefined {
  const { history, exchanges, refresh } = conversation;
  if (history.length > 0 && history.length + exchanges.length > least) {
    return { ...conversation, history: history.slice(history[1]?.results ? 2 : 1) };
  }
  if (exchanges.length <= Math.max(1, least)) return undefined;
  const [oldest, ...rest] = exchanges;
  return { ...conversation, exchanges: rest, ...(refresh?.after === oldest && { refresh: undefined }) };
}

function tokensOf(messages: readonly Message[], factor: number): number {
  return Math.ceil(
    messages.reduce((sum, message) => sum + estimateTokens(textOf(message)) + tokensPerMessage, 0) * factor,
  );
}
