import { isAppError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';

/** A store that takes longer than this is not there, for a client. */
const storeMs = 2_000;
/** Whoever asks more often gets what was found a moment ago. */
const lookMs = 1_000;

/** Why nothing can be done now, as one sentence: a look at the store answers in time, or not. Undefined: all is well. */
export function createReadiness(
  lookAtStore: () => Promise<unknown>,
  clock: Pick<Clock, 'after' | 'monotonic'>,
): () => Promise<string | undefined> {
  let last: { at: number; found: Promise<string | undefined> } | undefined;

  async function look(): Promise<string | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<string>();
    const stop = clock.after(storeMs, () => resolve('The store does not answer.'));
    try {
      return await Promise.race([lookAtStore().then(() => undefined), late]);
    } catch (error) {
      return isAppError(error) ? error.message : 'The store failed.';
    } finally {
      stop();
    }
  }

  return () => {
    const now = clock.monotonic();
    if (!last || now - last.at >= lookMs) last = { at: now, found: look() };
    return last.found;
  };
}
