import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createQueue } from '../core/concurrency.ts';
import { bugError } from '../core/errors.ts';
import type { Clock, KeptTexts, Random, SharedState } from '../core/ports.ts';
import { refuseContended } from './records.ts';
import type { Fact, Store } from './store.ts';

const namePattern = /^[a-z0-9][a-z0-9._-]{0,99}$/;

/** Nothing that is kept here comes near it; a file that does is not ours. */
const maxBytes = 32 * 1_048_576;

/** Texts as files of one folder, which is made with the first of them. Only the operator may read them. */
export function createKeptTexts({ folder, random }: { folder: string; random: Random }): KeptTexts {
  const pathOf = (name: string) => {
    if (!namePattern.test(name)) throw bugError(`"${name}" is no name for a kept text.`);
    return join(folder, name);
  };
  return {
    async read(name) {
      const path = pathOf(name);
      try {
        const { size } = await stat(path);
        return size > maxBytes ? undefined : await readFile(path, 'utf8');
      } catch {
        // Not there, or not readable: it can be had again.
        return undefined;
      }
    },
    async write(name, text) {
      const path = pathOf(name);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      // Another process may read or write it now: it sees the old text or the new one, never half of one.
      const draft = `${path}.${random.uuid()}.tmp`;
      try {
        await writeFile(draft, text, { mode: 0o600 });
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
  };
}

const maxTries = 200;

/**
 * Shared state of all processes on one store, or of this one alone where the store is. Nothing is held here: each read sees what the last change of any process
 * left, and a change takes effect only on the value that it was made from.
 */
export function createStoredState(store: Pick<Store, 'fact' | 'facts' | 'swapFact'>, clock: Clock): SharedState {
  // Changes of one process to one key wait here instead of making each other try again.
  const queue = createQueue();
  const never = new AbortController().signal;

  const changed: SharedState['change'] = async (key, ttlMs, change) => {
    for (let tries = 0; tries < maxTries; tries++) {
      const now = clock.now();
      const before: Fact | undefined = await store.fact(key, now);
      const value = change(before && structuredClone(before.value));
      if (value === undefined && before === undefined) return undefined;
      const swap = { key, version: before?.version ?? 0, value, expiresAt: now + ttlMs, now };
      if (await store.swapFact(swap)) return value;
    }
    refuseContended(`The shared value ${key}`);
  };

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
