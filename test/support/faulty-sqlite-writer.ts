import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { startWriter } from '../../src/storage/sqlite/writer.ts';
import { type Fault, ordersOf, slowMs } from './break-disk.ts';

/** A program for the writer's thread: SQLite on a disk that fails as a test says. */

/** The codes with which node:sqlite tells the disk's failures. */
const failures = {
  full: { errcode: 13, message: 'database or disk is full' },
  eio: { errcode: 1034, message: 'disk I/O error' },
  spill: { errcode: 778, message: 'disk I/O error' },
} as const;

class FaultyDatabase extends DatabaseSync {
  readonly #file: string;

  constructor(file: string, options: { timeout: number }) {
    super(file, options);
    this.#file = file;
  }

  override exec(sql: string): void {
    const fault = this.#fault();
    if (sql === 'COMMIT' && fault === 'slow') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, slowMs);
    if (sql === 'COMMIT' && (fault === 'full' || fault === 'eio')) this.#fail(fault);
    if (sql === 'SAVEPOINT request' && fault === 'spill') this.#fail('spill');
    super.exec(sql);
  }

  #fault(): Fault {
    try {
      return readFileSync(ordersOf(this.#file), 'utf8') as Fault;
    } catch {
      return 'none';
    }
  }

  #fail(fault: keyof typeof failures): never {
    super.exec('ROLLBACK');
    const { errcode, message } = failures[fault];
    throw Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR', errcode });
  }
}

startWriter((file, options) => new FaultyDatabase(file, options));
