import { appendFileSync, readFileSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { startWriter } from '../../src/storage/sqlite/writer.ts';
import { type Fault, locksOf, ordersOf, slowMs } from './break-disk.ts';

/** A program for the writer's thread: SQLite on a disk that fails as a test says. */

/** The codes with which node:sqlite tells the disk's failures. */
const failures = {
  full: { errcode: 13, message: 'database or disk is full' },
  eio: { errcode: 1034, message: 'disk I/O error' },
  damaged: { errcode: 11, message: 'database disk image is malformed' },
  spill: { errcode: 778, message: 'disk I/O error' },
} as const;

/** What a check of the file finds. */
const findings: Partial<Record<Fault, string>> = {
  misread: 'Tree 3 page 5: unable to get the page. error code=266',
  damaged: 'Tree 3 page 5: btreeInitPage() returns error code 11\nTree 3 page 6: never used',
};

let checks = 0;

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
    if (sql === 'BEGIN IMMEDIATE') appendFileSync(locksOf(this.#file), 'x');
    if (sql === 'COMMIT' && fault === 'stuck') throw Object.assign(new Error('stuck'), failures.eio);
    if (sql === 'COMMIT' && fault === 'end') process.exit(3);
    if (sql === 'PRAGMA journal_mode = WAL' && fault === 'full start') this.#fail('full');
    if (sql.includes('wal_checkpoint(TRUNCATE)') && fault === 'at close') this.#fail('eio');
    super.exec(sql);
  }

  override prepare(sql: string): StatementSync {
    const statement = super.prepare(sql);
    for (const name of ['run', 'get'] as const) {
      const method: (...values: never[]) => unknown = statement[name];
      const failing = (...values: never[]) => {
        if (this.isTransaction && this.#fault() === 'spill') this.#fail('spill');
        return method.apply(statement, values);
      };
      Object.assign(statement, { [name]: failing });
    }
    if (!/^PRAGMA (quick|integrity)_check/.test(sql)) return statement;
    const fault = this.#fault();
    const finding = fault === 'damaged' && checks++ >= 2 ? undefined : findings[fault];
    if (fault === 'damaged once' && checks++ === 0) this.#fail('damaged');
    if (finding !== undefined) statement.get = () => ({ check: finding });
    return statement;
  }

  #fault(): Fault {
    try {
      return readFileSync(ordersOf(this.#file), 'utf8') as Fault;
    } catch {
      return 'none';
    }
  }

  #fail(fault: keyof typeof failures): never {
    if (this.isTransaction) super.exec('ROLLBACK');
    const { errcode, message } = failures[fault];
    throw Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR', errcode });
  }
}

startWriter((file, options) => new FaultyDatabase(file, options));
