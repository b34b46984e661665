import { DatabaseSync } from 'node:sqlite';
import { storageError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { type SqliteReads, sqliteReads } from '../../memory/stores/sqlite-reads.ts';
import type { SqliteClient } from './client.ts';
import { isDamage, passesSoon, sqliteFailure } from './failure.ts';
import { inodeOf, lockWaitMs } from './open.ts';

const retryMs = 10;

export interface SqliteReader {
  /** Runs a read once the file is ready; where it is damaged, once more after it was replaced. */
  read<Result>(run: (reads: SqliteReads) => Result): Promise<Result>;
  /** Another text after each change of the file, or when it became another file. */
  mark(): Promise<string>;
  close(): Promise<void>;
}

export interface SqliteReaderOptions {
  file: string;
  clock: Clock;
  onWarning: (message: string) => void;
  writer: SqliteClient;
}

export function closedStore(): Error {
  return storageError('unavailable', 'The store of the threads is closed.', {
    next: 'Start the program again: a closed store is not opened a second time.',
  });
}

interface Held {
  reads: SqliteReads;
  inode: number;
}

/** The connection on which a process reads: it cannot write, and waits without stopping anything. */
export function sqliteReader({ file, clock, onWarning, writer }: SqliteReaderOptions): SqliteReader {
  let held: Held | undefined;
  let opening: Promise<Held> | undefined;
  let connections = 0;
  let closed = false;
  const told = new Set<string>();

  function tellOnce(thread: string): void {
    if (told.has(thread)) return;
    told.add(thread);
    onWarning(`Thread ${thread} is damaged on the disk; lists and searches leave it out.`);
  }

  function connect(): Held {
    if (closed) throw closedStore();
    const inode = inodeOf(file) ?? -1;
    const db = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    connections++;
    try {
      held = { inode, reads: sqliteReads(db, tellOnce) };
      return held;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  async function open(): Promise<Held> {
    if (writer.opened()) {
      try {
        // Need not wait for what the writer is busy with: it made the file ready before.
        return connect();
      } catch {
        // Unless that was another file, which is gone by now: then the writer makes a new one.
      }
    }
    await writer.send({ op: 'open' });
    return connect();
  }

  /** The path may lead to another file since the last read: a damaged one is replaced, by whichever process sees it. */
  async function current(): Promise<Held> {
    if (held && held.inode === inodeOf(file)) return held;
    drop();
    opening ??= open().finally(() => {
      opening = undefined;
    });
    return opening;
  }

  function drop(): void {
    held?.reads.close();
    held = undefined;
  }

  async function read<Result>(run: (reads: SqliteReads) => Result): Promise<Result> {
    const deadline = clock.monotonic() + lockWaitMs;
    for (let healed = false; ; ) {
      if (closed) throw closedStore();
      try {
        const { reads } = await current();
        // Another read may have found the file damaged just now, and closed this connection.
        if (held?.reads !== reads) continue;
        return run(reads);
      } catch (error) {
        if (closed) throw closedStore();
        if (passesSoon(error) && clock.monotonic() < deadline) {
          await clock.sleep(retryMs);
        } else if (isDamage(error) && !healed) {
          healed = true;
          drop();
          await writer.send({ op: 'inspect' });
        } else {
          throw sqliteFailure(error, file);
        }
      }
    }
  }

  return {
    read,
    mark: () => read(reads => `${connections} ${reads.version()}`),

    async close() {
      closed = true;
      await opening?.catch(() => {
        // Whoever asked for it was told.
      });
      drop();
    },
  };
}
