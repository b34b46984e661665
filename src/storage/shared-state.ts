import { storageError } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import type { Clock, SharedState } from '../core/ports.ts';
import { createQueue } from '../memory/queue.ts';
import type { Fact, Store } from './store.ts';

/** Each try that fails is a success of another process: so many in a row mean that something is wrong. */
const maxTries = 200;

/**
 * Shared state of all processes on one store. Nothing is held here: each read sees what the last change of any process
 * left, and a change takes effect only on the value that it was made from.
 */
export function createStoredState(store: Pick<Store, 'fact' | 'facts' | 'swapFact'>, clock: Clock): SharedState {
  // Changes of one process to one key wait here instead of making each other try again.
  const queue = createQueue();
  const never = new AbortController().signal;

  async function changed(
    key: string,
    ttlMs: number,
    change: (before: JsonObject | undefined) => JsonObject | undefined,
  ): Promise<JsonObject | undefined> {
    for (let tries = 0; tries < maxTries; tries++) {
      const now = clock.now();
      const before: Fact | undefined = await store.fact(key, now);
      const value = change(before && structuredClone(before.value));
      if (value === undefined && before === undefined) return undefined;
      const swap = { key, version: before?.version ?? 0, value, expiresAt: now + ttlMs, now };
      if (await store.swapFact(swap)) return value;
    }
    throw storageError('unavailable', `The shared value ${key} is changed by others without a pause.`, {
      retryable: true,
      next: 'Try again.',
    });
  }

  return {
    get: async key => (await store.fact(key, clock.now()))?.value,
    async list(prefix) {
      const found = await store.facts(prefix, clock.now());
      return new Map([...found].map(([key, { value }]) => [key, value]));
    },
    async change(key, ttlMs, change) {
      const leave = await queue.enter(key, never);
      try {
        return await changed(key, ttlMs, change);
      } finally {
        leave();
      }
    },
  };
}
