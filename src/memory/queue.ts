import { throwIfAborted } from '../core/errors.ts';

/** Lets callers of one key through one at a time, in the order they came. */
export interface Queue {
  /** Resolves when it is this caller's turn; the result ends the turn. Rejects when the signal is aborted while waiting. */
  enter(key: string, signal: AbortSignal, onWait?: () => void): Promise<() => void>;
}

export function createQueue(): Queue {
  const last = new Map<string, Promise<void>>();
  return {
    async enter(key, signal, onWait) {
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
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => {
    try {
      throwIfAborted(signal);
    } catch (error) {
      reject(error);
    }
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([turn, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
