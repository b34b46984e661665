import { storedJson } from '../../storage/records.ts';
import type { Fact, FactSwap } from '../../storage/store.ts';

interface Kept {
  body: string;
  version: number;
  expiresAt: number;
}

/** Facts of one process, gone with it. */
export interface MemoryFacts {
  fact(key: string, now: number): Fact | undefined;
  facts(prefix: string, now: number): Map<string, Fact>;
  swapFact(swap: FactSwap): boolean;
  dropExpiredFacts(now: number): void;
}

export function memoryFacts(): MemoryFacts {
  const kept = new Map<string, Kept>();
  let lastVersion = 0;
  const live = (key: string, now: number) => {
    const found = kept.get(key);
    return found && found.expiresAt > now ? found : undefined;
  };
  const factOf = ({ body, version }: Kept): Fact => ({ value: JSON.parse(body), version });
  return {
    fact(key, now) {
      const found = live(key, now);
      return found && factOf(found);
    },
    facts(prefix, now) {
      const found = [...kept].filter(([key, { expiresAt }]) => key.startsWith(prefix) && expiresAt > now);
      return new Map(found.map(([key, each]) => [key, factOf(each)]));
    },
    swapFact({ key, version, value, expiresAt, now }) {
      if ((live(key, now)?.version ?? 0) !== version) return false;
      if (value === undefined) kept.delete(key);
      else kept.set(key, { body: storedJson(value), version: ++lastVersion, expiresAt });
      return true;
    },
    dropExpiredFacts(now) {
      for (const [key, { expiresAt }] of kept) if (expiresAt <= now) kept.delete(key);
    },
  };
}
