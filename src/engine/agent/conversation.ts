import { type Message, type SaidPart, type ToolResult, textOf } from '../../core/message.ts';
import { cutMiddle } from '../../core/text.ts';
import { headed, refreshHeading } from './own-blocks.ts';

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
  task: Message;
  exchanges: readonly Exchange[];
  /** What changed in files, told with the results of the newest exchange that it was found at. */
  refresh?: { after: Exchange; text: string };
}

/** A text of the user's, or of whoever speaks for him. */
export function said(role: Message['role'], section: Message['section'], text: string): Message {
  return { role, section, parts: [{ type: 'text', text }] };
}

/**
 * The messages of the next question. Outputs of older rounds are cut to `truncLimit` characters; the newest block of changed
 * files stands behind the last result of its round, and no other does.
 */
export function messagesOf(conversation: Conversation, truncLimit: number, closing?: string): Message[] {
  const { preamble, mark, history, task, exchanges, refresh } = conversation;
  const newest = exchanges.at(-1);
  const rounds = exchanges.flatMap(exchange => {
    const keep = exchange === newest ? Number.POSITIVE_INFINITY : truncLimit;
    const block = refresh?.after === exchange ? `\n\n${headed(refreshHeading, mark)}\n${refresh.text}` : '';
    return messagesOfRound(exchange, keep, block);
  });
  const marked = rounds.map((message, index) =>
    index === rounds.length - 1 ? { ...message, cacheMark: true } : message,
  );
  const before = [...history, { ...task, cacheMark: true }];
  return [...preamble, ...before, ...marked, ...(closing === undefined ? [] : [said('user', 'turn', closing)])];
}

function messagesOfRound({ said: parts, results }: Exchange, keep: number, block: string): Message[] {
  const told = results.map((result, index) => ({
    ...result,
    text: cutMiddle(result.text, keep) + (index === results.length - 1 ? block : ''),
  }));
  return [
    { role: 'assistant', section: 'turn', parts: [], said: parts },
    { role: 'user', section: 'turn', parts: [], results: told },
  ];
}

/** What the run adds to a conversation that goes on after it. */
export function turnsOf({ task, exchanges }: Conversation, truncLimit: number, last: Message): Message[] {
  return [task, ...exchanges.flatMap(exchange => messagesOfRound(exchange, truncLimit, '')), last];
}

export function bytesOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + Buffer.byteLength(textOf(message)), 0);
}
