import type { JsonObject } from '../../core/json.ts';
import type { Clock, SharedState } from '../../core/ports.ts';

interface Kept {
  value: JsonObject;
  /** Epoch milliseconds. */
  expiresAt: number;
}

/** Shared state of one process alone: for stores that no other process sees. Values are copied in and out. */
export function createLocalState(clock: Clock): SharedState {
  const values = new Map<string, Kept>();
  const live = (key: string): JsonObject | undefined => {
    const kept = values.get(key);
    if (kept && kept.expiresAt <= clock.now()) values.delete(key);
    return kept && kept.expiresAt > clock.now() ? structuredClone(kept.value) : undefined;
  };
  return {
    get: async key => live(key),
    async list(prefix) {
      const found = [...values.keys()].filter(key => key.startsWith(prefix)).map(key => [key, live(key)] as const);
      return new Map(found.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])));
    },
    async change(key, ttlMs, change) {
      const value = change(live(key));
      if (value === undefined) values.delete(key);
      else values.set(key, { value: structuredClone(value), expiresAt: clock.now() + ttlMs });
      return value;
    },
  };
}
