import { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { storageError } from '../../core/errors.ts';
import { lockHolder } from '../process-mark.ts';
import { perform, type WriteRequest, type WriterAnswer, type WriterOptions, type WriterRequest } from './client.ts';
import { isDamage, passesSoon, sqliteFailure } from './failure.ts';
import { type Connect, lockWaitMs, sqliteOpen } from './open.ts';
import { inodeOf } from './tables.ts';
import { type SqliteWrites, sqliteWrites } from './writes.ts';

export type Outcome = { value: number } | { error: unknown };

export interface Transaction {
  db: DatabaseSync;
  writes: SqliteWrites;
}

/**
 * Runs the requests of one moment in one transaction, so that all of them share one wait for the disk. Nothing counts before the
 * COMMIT. When that fails, since together they are too big, or when one of them is refused, each half is tried alone, down to single
 * requests: one that fails takes no other with it.
 */
export function sqliteBatch(begin: () => Transaction, requests: readonly WriteRequest[]): Outcome[] {
  let open: Transaction;
  try {
    open = begin();
  } catch (error) {
    return requests.map(() => ({ error }));
  }
  try {
    const outcomes = requests.map(request => ({ value: perform(open.writes, request) }));
    open.db.exec('COMMIT');
    return outcomes;
  } catch (error) {
    if (open.db.isTransaction) open.db.exec('ROLLBACK');
    if (requests.length === 1) return [{ error }];
    const half = Math.ceil(requests.length / 2);
    return [requests.slice(0, half), requests.slice(half)].flatMap(part => sqliteBatch(begin, part));
  }
}

/** The most requests that share one transaction: the first of them waits for the last. */
const batchSize = 256;

/** How long a writer waits for a lock for which it has waited in vain just before. */
const nextWaitMs = 200;

/** Where writers lock the shared-memory file of a database. */
const writeLockByte = 120;

/** How often the file may be replaced under one batch before that counts as a failure. */
const maxReopens = 3;

const inspectedForMs = 60_000;

const isDamaged = (outcome: Outcome): boolean => 'error' in outcome && isDamage(outcome.error);

interface Held extends Transaction {
  inode: number;
  /** The file was damaged when it was opened. */
  repaired: boolean;
}

/** The one writer of a process, in its own thread: waiting for a lock or the disk stops nothing else. It answers what is durable. */
class Writer {
  readonly #options: WriterOptions;
  readonly #connect: Connect;
  readonly #port: MessagePort;
  #queue: WriterRequest[] = [];
  #answers: WriterAnswer[] = [];
  #held: Held | undefined;
  /** When a full check found nothing, in epoch milliseconds: damage that it does not find is not looked for again at once. */
  #inspectedAt = Number.NEGATIVE_INFINITY;
  /** The lock was waited for in vain. */
  #isShort = false;

  constructor(options: WriterOptions, connect: Connect, port: MessagePort) {
    this.#options = options;
    this.#connect = connect;
    this.#port = port;
  }

  take(requests: readonly WriterRequest[]): void {
    // After the messages that are waiting at this moment: they go into the same transaction.
    if (this.#queue.length === 0) setImmediate(() => this.#drain());
    this.#queue.push(...requests);
  }

  #drain(): void {
    const queue = this.#queue;
    this.#queue = [];
    let batch: { id: number; now: number; request: WriteRequest }[] = [];
    for (const { id, now, request } of queue) {
      if (request.op !== 'open' && request.op !== 'inspect' && request.op !== 'close') {
        batch.push({ id, now, request });
        if (batch.length < batchSize) continue;
      }
      this.#write(batch);
      batch = [];
      if (request.op === 'open') this.#control(id, () => this.#open(now, false));
      if (request.op === 'inspect') this.#control(id, () => this.#inspect(now));
      if (request.op === 'close') this.#close(id);
    }
    this.#write(batch);
    this.#tell();
  }

  #tell(): void {
    if (this.#answers.length > 0) this.#port.postMessage(this.#answers);
    this.#answers = [];
  }

  #write(batch: readonly { id: number; now: number; request: WriteRequest }[]): void {
    const [first] = batch;
    if (!first) return;
    const requests = batch.map(({ request }) => request);
    const outcomes = sqliteBatch(() => this.#begin(first.now), requests);
    const isRepaired = outcomes.some(isDamaged) && this.#heal(first.now);
    for (const [index, { id, request }] of batch.entries()) {
      const outcome = outcomes[index] ?? { error: new Error('the writer lost a request') };
      const again =
        isRepaired && isDamaged(outcome) ? sqliteBatch(() => this.#begin(first.now), [request])[0] : undefined;
      this.#answer(id, again ?? outcome);
    }
    this.#tell();
  }

  /** Opens a transaction on the file that the path leads to at this moment. */
  #begin(now: number): Held {
    for (let tries = 0; tries < maxReopens; tries++) {
      const held = this.#held ?? this.#open(now, false);
      this.#lock(held.db);
      // Somebody replaced the file, or deleted it: what went into the old one would be lost.
      if (inodeOf(this.#options.file) === held.inode) return held;
      held.db.exec('ROLLBACK');
      this.#open(now, false);
    }
    throw new Error(`${this.#options.file} is replaced again and again`);
  }

  /** One long wait for whoever holds the lock: the next ones are short until it is free. */
  #lock(db: DatabaseSync): void {
    try {
      db.exec('BEGIN IMMEDIATE');
      if (this.#isShort) db.exec(`PRAGMA busy_timeout = ${lockWaitMs}`);
      this.#isShort = false;
    } catch (error) {
      const { file } = this.#options;
      if (!passesSoon(error)) throw error;
      this.#isShort = true;
      db.exec(`PRAGMA busy_timeout = ${nextWaitMs}`);
      const holder = lockHolder(`${file}-shm`, writeLockByte);
      if (!holder) throw error;
      const { pid, isStopped } = holder;
      const seconds = lockWaitMs / 1_000;
      throw storageError(
        'unavailable',
        `Process ${pid}${isStopped ? ', which is stopped,' : ''} has held the lock of ${file} for over ${seconds} s.`,
        {
          cause: error,
          retryable: true,
          next: `${isStopped ? `Continue it with "kill -CONT ${pid}", or end` : 'Wait for it, or end'} it; then resend the call.`,
          data: { pid: Number(pid), isStopped },
        },
      );
    }
  }

  #open(now: number, thorough: boolean): Held {
    const held = this.#held;
    const isSame = held?.inode === inodeOf(this.#options.file);
    if (held && isSame && !thorough) return held;
    this.#drop();
    const onWarning = (warning: string) => void this.#answers.push({ warning });
    const opened = sqliteOpen({ ...this.#options, connect: this.#connect, now, thorough, onWarning });
    this.#held = { ...opened, writes: sqliteWrites(opened.db) };
    return this.#held;
  }

  #inspect(now: number): { repaired: boolean } {
    if (Math.abs(now - this.#inspectedAt) < inspectedForMs) return { repaired: false };
    const { repaired } = this.#open(now, true);
    if (!repaired) this.#inspectedAt = now;
    return { repaired };
  }

  #heal(now: number): boolean {
    try {
      return this.#inspect(now).repaired;
    } catch (error) {
      // The requests have their answers; the next one opens the file again and is told.
      this.#answers.push({ warning: sqliteFailure(error, this.#options.file).message });
      return false;
    }
  }

  #drop(): void {
    this.#held?.db.close();
    this.#held = undefined;
  }

  #control(id: number, run: () => { repaired: boolean }): void {
    try {
      this.#answer(id, { value: run().repaired ? 1 : 0 });
    } catch (error) {
      this.#answer(id, { error });
    }
  }

  #close(id: number): void {
    this.#control(id, () => {
      // Other processes may be reading: what cannot be moved now is moved by the last of them.
      this.#held?.db.exec('PRAGMA busy_timeout = 200; PRAGMA wal_checkpoint(TRUNCATE)');
      this.#drop();
      return { repaired: false };
    });
    this.#tell();
    this.#port.close();
  }

  #answer(id: number, outcome: Outcome): void {
    if ('value' in outcome) return void this.#answers.push({ id, value: outcome.value });
    const { kind, message, details } = sqliteFailure(outcome.error, this.#options.file);
    this.#answers.push({ id, failure: [kind, message, { ...details, cause: undefined }] });
  }
}

/** Serves the thread that started this one. */
export function startWriter(connect: Connect): void {
  const port = parentPort;
  if (!port) return;
  const writer = new Writer(workerData, connect, port);
  port.on('message', (requests: readonly WriterRequest[]) => writer.take(requests));
}

// Another program for this thread starts the writer by itself.
const given: WriterOptions | null = workerData;
if (given && given.program === undefined) startWriter((file, { timeout }) => new DatabaseSync(file, { timeout }));
