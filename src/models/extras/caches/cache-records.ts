import type { Clock, SharedState } from '../../../core/ports.ts';
import { type CachedContents, isCacheName } from '../../../providers/google/cached-contents.ts';
import { cacheKey, readVendorCache, type VendorCache } from '../../vendor-services.ts';
import type { PromptOfThread } from './prompt-of-thread.ts';

const provider = 'google';
/** One that ends within this time might be gone before the request arrives. */
const graceMs = 15_000;
/** How long the record of a cache that is gone is kept at the most, beyond its own time. */
const recordGraceMs = 60_000;
const partingMs = 3_000;

export interface CacheRecords {
  /** The cache of a thread and model, while it lives. */
  find(prompt: PromptOfThread): Promise<VendorCache | undefined>;
  /** Says that this process made, renewed or used it: it goes when this process does. */
  keep(cache: VendorCache): Promise<void>;
  use(cache: VendorCache): void;
  forget(prompt: Pick<PromptOfThread, 'model' | 'thread'>, name: string): Promise<void>;
  /** Removes it at the vendor, without waiting for it. */
  part(name: string): void;
  /** Removes those that this process kept or used, record and all. */
  close(): Promise<void>;
}

export interface CacheRecordsOptions {
  vendor: Pick<CachedContents, 'remove'>;
  state: SharedState;
  clock: Clock;
}

export function keyOf({ model, thread }: Pick<PromptOfThread, 'model' | 'thread'>): string {
  return cacheKey({ provider, model, thread });
}

/** Which caches there are, told to all processes on the store, and which of them are this process's to remove. */
export function cacheRecords({ vendor, state, clock }: CacheRecordsOptions): CacheRecords {
  const own = new Map<string, VendorCache>();
  const parting = new Set<Promise<void>>();

  async function drop(key: string, name: string): Promise<void> {
    await state
      // Another process may have made a new one meanwhile.
      .change(key, recordGraceMs, before => (before?.name === name ? undefined : before))
      // A record that stays leads to one more "not found" at the most.
      .catch(() => undefined);
  }

  function part(name: string): void {
    // A vendor that does not answer drops it by itself when its time is over.
    const gone = within(clock, partingMs, signal => vendor.remove(name, signal)).catch(() => undefined);
    parting.add(gone);
    void gone.finally(() => parting.delete(gone));
  }

  return {
    async find(prompt) {
      const cache = readVendorCache(await state.get(keyOf(prompt)));
      return cache && isCacheName(cache.name) && clock.now() < cache.expires - graceMs ? cache : undefined;
    },
    async keep(cache) {
      for (const [key, { expires }] of own) if (expires <= clock.now()) own.delete(key);
      own.set(cacheKey(cache), cache);
      await state.change(cacheKey(cache), cache.expires - clock.now() + recordGraceMs, () => ({ ...cache }));
    },
    use: cache => void own.set(cacheKey(cache), cache),
    async forget(prompt, name) {
      const key = keyOf(prompt);
      if (own.get(key)?.name === name) own.delete(key);
      await drop(key, name);
    },
    part,
    async close() {
      const mine = [...own];
      own.clear();
      for (const [, { name, expires }] of mine) if (expires > clock.now()) part(name);
      await Promise.all(parting);
      await Promise.all(mine.map(([key, { name }]) => drop(key, name)));
    },
  };
}

/** Gives up after `ms`, or when one of the signals is aborted. */
export async function within<Result>(
  clock: Clock,
  ms: number,
  run: (signal: AbortSignal) => Promise<Result>,
  parent?: AbortSignal,
): Promise<Result> {
  const late = new AbortController();
  const stop = clock.after(ms, () => late.abort());
  try {
    return await run(parent ? AbortSignal.any([parent, late.signal]) : late.signal);
  } finally {
    stop();
  }
}
