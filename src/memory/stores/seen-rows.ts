/** What was read of rows that never change, so that it need not be read and checked again. */
export interface SeenRows<Value> {
  get(key: string): Value | undefined;
  /** `size` is what it takes in memory, about, in characters. One that is larger than the whole is not kept. */
  keep(key: string, value: Value, size: number): void;
  drop(key: string): void;
}

/** Keeps as much as fits, and gives up what was not asked for the longest. */
export function seenRows<Value>(capacity: number): SeenRows<Value> {
  const kept = new Map<string, { value: Value; size: number }>();
  let total = 0;
  const drop = (key: string) => {
    total -= kept.get(key)?.size ?? 0;
    kept.delete(key);
  };
  return {
    get(key) {
      const found = kept.get(key);
      if (!found) return undefined;
      kept.delete(key);
      kept.set(key, found);
      return found.value;
    },
    keep(key, value, size) {
      drop(key);
      if (size > capacity) return;
      kept.set(key, { value, size });
      total += size;
      for (const oldest of kept.keys()) {
        if (total <= capacity) break;
        drop(oldest);
      }
    },
    drop,
  };
}
