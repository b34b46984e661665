import { throwIfAborted } from '../../core/errors.ts';
import type { Message } from '../../core/message.ts';
import type { Candidate } from '../../core/model.ts';
import type { Emit } from '../../core/ports.ts';
import { orAbort } from '../call/attempt.ts';
import { toPrompt } from '../call/messages.ts';
import type { Connection } from '../provider.ts';

/** A call waits no longer for a count that may as well be estimated. */
const patienceMs = 5_000;

/** A prompt as it would be sent. */
export interface PromptToCount {
  reqId: string;
  candidate: Candidate;
  messages: readonly Message[];
  maxOutputTokens: number;
  signal: AbortSignal;
}

/** The vendor's own count of a prompt's tokens; undefined where the vendor has none to tell, or does not tell it in time. */
export type CountPrompt = (prompt: PromptToCount) => Promise<number | undefined>;

/** Asks the vendor of the candidate. Throws only when the caller gave up. */
export function createCountPrompt(connection: (id: string) => Promise<Connection>, emit: Emit): CountPrompt {
  return async ({ reqId, candidate, messages, maxOutputTokens, signal }) => {
    const { model, effort, thinkingBudget } = candidate;
    const within = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
    try {
      const open = await orAbort(connection(model.provider), within);
      if (!open.countTokens) return undefined;
      const { prompt } = toPrompt(messages, open, model);
      const providerOptions = open.providerOptions({ model, effort, thinkingBudget, maxOutputTokens });
      const call = { prompt, maxOutputTokens, providerOptions, abortSignal: within };
      return await orAbort(open.countTokens(model, call), within);
    } catch (error) {
      throwIfAborted(signal);
      const message = `${model.id} was not counted by its vendor, so that its tokens are estimated: ${error instanceof Error ? error.message : error}`;
      emit({ type: 'warning', reqId, where: `tokens of ${model.provider}`, message });
      return undefined;
    }
  };
}
