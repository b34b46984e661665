import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { withTimeout } from '../../core/concurrency.ts';
import { isAppError, storageError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { closedStore } from '../records.ts';
import { lastingTimeoutHours, type Store } from '../store.ts';
import { sqliteClient, type WriteRequest, type WriterOptions } from './client.ts';
import { sqliteFailure } from './failure.ts';
import { lockWaitMs } from './open.ts';
import { type SqliteReads, sqliteReader } from './reader.ts';
import { openDatabase } from './tables.ts';
import type { IndexName } from './thread-index.ts';
import { pruneStep } from './writes.ts';

export interface SqliteStoreOptions extends WriterOptions {
  clock: Clock;
  /** Told when a damaged file was set aside or a damaged thread was left out: for the log, one sentence each. */
  onWarning: (message: string) => void;
}

/** One step of bringing an index up to date takes a small part of this. */
const indexWaitMs = 2_000;

/** How the methods of a store come to the database: a reading connection, one brought up to date first, and changes. */
export interface SqliteAccess {
  read<Result>(run: (reads: SqliteReads) => Result): Promise<Result>;
  indexed<Result>(names: readonly IndexName[], run: (reads: SqliteReads) => Result): Promise<Result>;
  /** `unhurried`: may wait a moment for others. */
  write(request: WriteRequest, unhurried?: boolean): Promise<number>;
}

/** What every store of SQLite does alike, wherever its database is. */
export function sqliteMethods({ read, indexed, write }: SqliteAccess) {
  // Each awaits the same: what is asked for in one go is answered in that order.
  const done = async (request: WriteRequest, unhurried?: boolean) => void (await write(request, unhurried));
  const yes = async (request: WriteRequest, unhurried?: boolean) => (await write(request, unhurried)) === 1;
  const count = async (request: WriteRequest) => await write(request);

  return {
    read: (id, now) => read(reads => reads.read(id, now)),
    head: (id, now) => read(reads => reads.head(id, now)),
    blobs: hashes => read(reads => reads.blobs(hashes)),
    list: query => indexed(['threads'], reads => reads.list(query)),
    search: query => indexed(['threads', 'words'], reads => reads.search(query)),

    create: (head, over) => done({ op: 'create', args: [head, over] }),
    commit: (id, change) => count({ op: 'commit', args: [id, change] }),
    remove: (id, now) => yes({ op: 'remove', args: [id, now] }),
    async prune(now, unused) {
      // In steps of its own, so that the first step of the prune does not hold the lock for all that came in since.
      await indexed(['threads'], () => undefined);
      let total = 0;
      for (;;) {
        const gone = await count({ op: 'prune', args: [now, unused] });
        total += gone;
        if (gone < pruneStep) return total;
      }
    },
    prunable: (now, unused) => indexed(['threads'], reads => reads.prunable(now, unused)),
    createJob: job => done({ op: 'createJob', args: [job] }),
    job: (id, now) => read(reads => reads.job(id, now)),
    jobs: query => read(reads => reads.jobs(query)),
    endJob: (id, end) => yes({ op: 'endJob', args: [id, end] }),
    lease: (id, holder, ttlMs, now, unhurried) => yes({ op: 'lease', args: [id, holder, ttlMs, now] }, unhurried),
    release: (id, holder, unhurried) => done({ op: 'release', args: [id, holder] }, unhurried),
    fact: (key, now) => read(reads => reads.fact(key, now)),
    facts: (prefix, now) => read(reads => reads.facts(prefix, now)),
    swapFact: swap => yes({ op: 'swapFact', args: [swap] }, swap.unhurried),

    spend: {
      add: (entry, hold, unhurried) => done({ op: 'addSpend', args: [entry, hold] }, unhurried),
      hold: hold => yes({ op: 'holdSpend', args: [hold] }),
      used: scope => read(reads => reads.spendUsed(scope)),
      rows: query => read(reads => reads.spendRows(query)),
    },
  } satisfies Partial<Store>;
}

/** Threads in a file of any number of processes, opened on first use: reads never wait and cannot write; a thread of its own writes. */
export function createSqliteStore({ file, clock, onWarning, program }: SqliteStoreOptions): Store {
  let heard: string[] = [];
  const hear = (message: string) => {
    heard.push(message);
    onWarning(message);
  };
  const writer = sqliteClient({ file, program }, clock, hear);
  const reader = sqliteReader({ file, clock, onWarning, writer });
  let closing: Promise<void> | undefined;

  async function writing(request: WriteRequest, unhurried = false): Promise<number> {
    if (closing) throw closedStore();
    return writer.send(request, unhurried);
  }

  /** A read by indexes, once they are up to date. Where they can't be written (full disk, lock), a search may miss what came last. */
  const indexed: SqliteAccess['indexed'] = async (names, run) => {
    for (let isFirst = true; ; isFirst = false) {
      for (const name of names) await follow(name);
      const before = await reader.read(reads => reads);
      const [found, by] = await reader.read(reads => [run(reads), reads] as const);
      // A file that turned out to be damaged is another one now, whose indexes have to follow first.
      if (!isFirst || by === before) return found;
    }
  };

  async function follow(name: IndexName): Promise<void> {
    let lags = await reader.read(reads => reads.lags(name));
    try {
      while (lags) {
        const more = await withTimeout(clock, indexWaitMs, writing({ op: 'index', args: [name] }));
        if (more === undefined) throw storageError('unavailable', 'another process holds its lock.');
        lags = more === 1;
      }
    } catch (error) {
      if (!isAppError(error) || error.kind !== 'storage' || error.details.class === 'corrupt') throw error;
      // A list looks through what came in since; a search finds by its index alone.
      if (name === 'words')
        onWarning(`The index of words is not up to date, so that a search may miss the newest turns: ${error.message}`);
    }
  }

  return {
    kind: 'sqlite',
    defaultTimeoutHours: lastingTimeoutHours,

    ...sqliteMethods({ read: reader.read, indexed, write: writing }),
    async mark() {
      // A list that follows then changes nothing.
      await indexed(['threads'], () => undefined);
      return reader.mark();
    },

    warm: writer.warm,
    open: () => void reader.read(() => undefined).catch(() => undefined),

    async inspect() {
      // A look at a place where nothing is yet leaves nothing there.
      if (!existsSync(dirname(file))) return { text: 'nothing is stored yet', warnings: [] };
      const now = clock.now();
      await writing({ op: 'lease', args: ['inspection', 'inspection', 0, now] });
      await indexed(['threads'], reads => reads.list({ owner: 'local', limit: 1, now }));
      return { text: `threads can be read and written in ${file}`, warnings: [] };
    },

    async repair() {
      if (closing) throw closedStore();
      heard = [];
      const isReplaced = (await writer.send({ op: 'inspect' })) === 1;
      return { isReplaced, text: isReplaced ? heard.join(' ') : `${file} is intact, with every record in it.` };
    },

    async backUp(target) {
      await reader.read(() => undefined);
      const { backup } = await import('node:sqlite');
      const source = openDatabase(file, { readOnly: true, timeout: lockWaitMs });
      try {
        // All of it in one step: else it begins anew with each change that comes in between.
        await backup(source, target, { rate: 2 ** 30 });
      } catch (error) {
        throw sqliteFailure(error, target);
      } finally {
        source.close();
      }
    },

    close() {
      closing ??= reader.close().then(writer.end);
      return closing;
    },
  };
}
