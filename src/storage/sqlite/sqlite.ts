import { scheduler } from 'node:timers/promises';
import { isAppError, storageError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { closedStore } from '../records.ts';
import { lastingTimeoutHours, type Store } from '../store.ts';
import { sqliteClient, type WriteRequest, type WriterOptions } from './client.ts';
import { type SqliteReads, sqliteReader } from './reader.ts';
import type { IndexName } from './thread-index.ts';
import { pruneStep } from './writes.ts';

export interface SqliteStoreOptions extends WriterOptions {
  clock: Clock;
  /** Told when a damaged file was set aside or a damaged thread was left out: for the log, one sentence each. */
  onWarning: (message: string) => void;
}

/** One step of bringing an index up to date takes a small part of this. */
const indexWaitMs = 2_000;

/**
 * Threads in one SQLite file that any number of processes share. Reads happen here, on a connection that cannot write and
 * never waits; writes happen in a thread of their own. Nothing is opened before the first use.
 */
export function createSqliteStore({ file, clock, onWarning, maxBytes, program }: SqliteStoreOptions): Store {
  const writer = sqliteClient({ file, maxBytes, program }, clock, onWarning);
  const reader = sqliteReader({ file, clock, onWarning, writer });
  let closing: Promise<void> | undefined;

  async function writing(request: WriteRequest, unhurried = false): Promise<number> {
    if (closing) throw closedStore();
    return writer.send(request, unhurried);
  }

  /**
   * A read that goes by an index, once that knows all that was written until now. Where it can't be written, on a full disk or
   * behind a lock, it is read as it is: what came last may be missing then.
   */
  async function indexed<Result>(name: IndexName, run: (reads: SqliteReads) => Result): Promise<Result> {
    for (let lags = await reader.read(reads => reads.lags(name)); lags; ) {
      const timer = new AbortController();
      const late = scheduler.wait(indexWaitMs, { signal: timer.signal }).then(
        () => storageError('unavailable', 'another process holds its lock.'),
        () => false,
      );
      const step = writing({ op: 'index', args: [name] }).then(more => more === 1);
      const outcome = await Promise.race([step.catch((error: unknown) => error), late]);
      timer.abort();
      lags = outcome === true;
      if (typeof outcome !== 'boolean') warnUnwritten(name, outcome);
    }
    return reader.read(run);
  }

  function warnUnwritten(name: IndexName, error: unknown): void {
    if (!isAppError(error) || error.kind !== 'storage' || error.details.class === 'corrupt') throw error;
    onWarning(`The index of ${name} is not up to date, so that the newest may be missing: ${error.message}`);
  }

  async function close(): Promise<void> {
    await reader.close();
    await writer.end();
  }

  return {
    kind: 'sqlite',
    defaultTimeoutHours: lastingTimeoutHours,

    read: (id, now) => reader.read(reads => reads.read(id, now)),
    head: (id, now) => reader.read(reads => reads.head(id, now)),
    blobs: hashes => reader.read(reads => reads.blobs(hashes)),
    list: query => indexed('threads', reads => reads.list(query)),
    async search(query) {
      await indexed('threads', () => undefined);
      return indexed('words', reads => reads.search(query));
    },

    create: async (head, over) => void (await writing({ op: 'create', args: [head, over] })),
    commit: (id, change) => writing({ op: 'commit', args: [id, change] }),
    remove: async (id, now) => (await writing({ op: 'remove', args: [id, now] })) === 1,
    async prune(now, unused) {
      let total = 0;
      for (;;) {
        const gone = await writing({ op: 'prune', args: [now, unused] });
        total += gone;
        if (gone < pruneStep) return total;
      }
    },
    prunable: (now, unused) => indexed('threads', reads => reads.prunable(now, unused)),
    createJob: async job => void (await writing({ op: 'createJob', args: [job] })),
    job: (id, now) => reader.read(reads => reads.job(id, now)),
    jobs: query => reader.read(reads => reads.jobs(query)),
    endJob: async (id, end) => (await writing({ op: 'endJob', args: [id, end] })) === 1,
    lease: async (id, holder, ttlMs, now) => (await writing({ op: 'lease', args: [id, holder, ttlMs, now] })) === 1,
    release: async (id, holder) => void (await writing({ op: 'release', args: [id, holder] })),
    fact: (key, now) => reader.read(reads => reads.fact(key, now)),
    facts: (prefix, now) => reader.read(reads => reads.facts(prefix, now)),
    swapFact: async swap => (await writing({ op: 'swapFact', args: [swap] }, swap.unhurried)) === 1,

    async mark() {
      // A list that follows then changes nothing.
      await indexed('threads', () => undefined);
      return reader.mark();
    },
    spend: {
      add: async (entry, hold, unhurried) => void (await writing({ op: 'addSpend', args: [entry, hold] }, unhurried)),
      hold: async hold => (await writing({ op: 'holdSpend', args: [hold] })) === 1,
      used: scope => reader.read(reads => reads.spendUsed(scope)),
      rows: query => reader.read(reads => reads.spendRows(query)),
    },

    close() {
      closing ??= close();
      return closing;
    },
  };
}
