import { abortError, throwIfAborted } from './errors.ts';

/** Runs over all items, at most `limit` at a time; results are in the order of the items. The first failure ends it. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  limit: number,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  let failed = false;
  async function work(): Promise<void> {
    for (const [index, item] of queue) {
      if (failed) return;
      try {
        results[index] = await run(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  }
  const workers = Array.from({ length: Math.min(limit, items.length) }, work);
  // every worker is waited for, so that nothing goes on behind a call that has failed
  const settled = await Promise.allSettled(workers);
  for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason;
  return results;
}

/** Lets callers of one key through one at a time, in the order they came. */
export function createQueue() {
  const last = new Map<string, Promise<void>>();
  return {
    /** Resolves when it is this caller's turn; the result ends the turn. Rejects when the signal is aborted while waiting. */
    async enter(key: string, signal: AbortSignal, onWait?: () => void) {
      throwIfAborted(signal);
      const before = last.get(key);
      const { promise: turn, resolve: end } = Promise.withResolvers<void>();
      const mine = (before ?? Promise.resolve()).then(() => turn);
      last.set(key, mine);
      const leave = () => {
        end();
        if (last.get(key) === mine) last.delete(key);
      };
      if (before) {
        onWait?.();
        try {
          await orAborted(before, signal);
        } catch (error) {
          leave();
          throw error;
        }
      }
      return leave;
    },
  };
}

async function orAborted(turn: Promise<void>, signal: AbortSignal): Promise<void> {
  throwIfAborted(signal);
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(abortError(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([turn, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** The promise, unless the signal comes first; then it rejects at once, whether the promise reacts or not. */
export const orAbort = <T>(promise: PromiseLike<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    promise.then(
      value => {
        signal.removeEventListener('abort', onAbort);
        resolve(value);
      },
      error => {
        signal.removeEventListener('abort', onAbort);
        reject(error);
      },
    );
  });
