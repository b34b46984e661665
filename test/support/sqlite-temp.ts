import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ThreadId } from '../../src/core/ids.ts';
import type { Clock } from '../../src/core/ports.ts';
import type { Thread } from '../../src/core/thread.ts';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import type { Store } from '../../src/storage/store.ts';
import { start } from '../contracts/store-fixtures.ts';
import { manualClock, realClock } from './clock.ts';
import { forgetWriters, keepWriters } from './kept-writers.ts';

export interface SqlitePlace {
  directory: string;
  file: string;
  /** What the stores warned of. */
  warnings: string[];
  open(options?: { program?: string; clock?: Clock }): Store;
  dispose(): Promise<void>;
}

/** A directory for one SQLite file, and stores on it that are closed with it. */
export async function sqlitePlace(): Promise<SqlitePlace> {
  const directory = await mkdtemp(join(tmpdir(), 'polylogue-store-'));
  keepWriters(directory);
  const file = join(directory, 'threads.sqlite');
  const warnings: string[] = [];
  const stores: Store[] = [];
  // What is set aside is named after the time, so that stands still; waiting needs the real one.
  const clock = { ...realClock(), now: manualClock(start).now };
  return {
    directory,
    file,
    warnings,
    open(options = {}) {
      const store = createSqliteStore({ file, clock, onWarning: message => warnings.push(message), ...options });
      stores.push(store);
      return store;
    },
    async dispose() {
      await Promise.all(stores.map(store => store.close()));
      forgetWriters(directory);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export async function liveThread(store: Store, id: ThreadId): Promise<Thread> {
  const found = await store.read(id, start);
  if (found.state !== 'live') throw new Error(`the thread is ${found.state}`);
  return found.value;
}

/** Threads, and channels to them, that keep this process alive now. */
export const activeThreads = (): number =>
  process.getActiveResourcesInfo().filter(name => /MessagePort|Worker/.test(name)).length;
