import { readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/**
 * SQLite on a disk that fails as a test says, in the writer's thread: `full` and `eio` as SQLite reports them when a
 * transaction is to be made durable (it is undone then), `spill` in the middle of one, `slow` as an fsync that takes its time.
 */
export type Fault = 'none' | 'full' | 'eio' | 'spill' | 'slow';

export const slowMs = 200;

/** The codes with which node:sqlite tells the disk's failures. */
const failures = {
  full: { errcode: 13, message: 'database or disk is full' },
  eio: { errcode: 1034, message: 'disk I/O error' },
  spill: { errcode: 778, message: 'disk I/O error' },
} as const;

const orders = (file: string) => `${file}.fault`;

/** Lets the disk below a database fail from now on. */
export function breakDisk(file: string, fault: Fault): void {
  writeFileSync(orders(file), fault);
}

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
      return readFileSync(orders(this.#file), 'utf8') as Fault;
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

export const connect = (file: string, options: { timeout: number }) => new FaultyDatabase(file, options);
