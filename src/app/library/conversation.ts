import type { Message } from '../../core/message.ts';
import { addUsage, noUsage, type Usage } from '../../core/usage.ts';
import { type SendIn, withDefaults } from '../../library/create-send.ts';
import type { SendDefaults, SendRequest, SendResult } from './options.ts';

/** A conversation in this program's memory. Requests of one run one after the other; those of several never wait for each other. */
export interface Conversation {
  readonly id: string;
  /** Everything said so far. */
  readonly turns: readonly Message[];
  /** Of all its requests. */
  readonly usage: Usage;
  /** Sends the next message; a text is `{ message: text }`. What fails leaves the conversation as it was. */
  send(request: string | Omit<SendRequest, 'history'>): Promise<SendResult>;
  /** Forgets what was said; requests under way end without a trace in it. */
  reset(): void;
}

export interface ConversationOptions extends SendDefaults {
  /** Turns that were said before, such as those of a conversation that was kept. */
  history?: readonly Message[];
}

export function createConversation(send: SendIn, uuid: () => string, options: ConversationOptions): Conversation {
  const { history = [], ...defaults } = options;
  let id = uuid();
  let turns: readonly Message[] = history;
  let usage = noUsage;
  let age = 0;
  let last: Promise<unknown> = Promise.resolve();

  async function next(request: string | Omit<SendRequest, 'history'>): Promise<SendResult> {
    const began = age;
    const wanted = withDefaults(defaults, typeof request === 'string' ? { message: request } : request);
    const result = await send(id, { ...wanted, history: turns });
    if (began === age) {
      turns = [...turns, ...result.turns];
      usage = addUsage(usage, result.usage);
    }
    return result;
  }

  return {
    get id() {
      return id;
    },
    get turns() {
      return turns;
    },
    get usage() {
      return usage;
    },
    send(request) {
      const answer = last.then(() => next(request));
      // The next request does not depend on how this one ends.
      last = answer.catch(() => undefined);
      return answer;
    },
    reset() {
      age++;
      id = uuid();
      turns = [];
      usage = noUsage;
      last = Promise.resolve();
    },
  };
}
