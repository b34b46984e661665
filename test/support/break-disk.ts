import { writeFileSync } from 'node:fs';

/**
 * How test/support/faulty-sqlite-writer.ts fails: `full` and `eio` as SQLite reports them when a transaction is to be made
 * durable (it is undone then), `stuck` so that it is not undone, `spill` in the middle of one, `slow` as an fsync that takes its time, `end` as the end of the
 * thread, `at close` when the log is moved into the file at last. While the file is opened: `full start` as a disk without room, `damaged once` as damage that a second look does not
 * find, `misread` as a read that fails in the words of a check, and `damaged` as two findings of the first two looks.
 */
export type Fault =
  | 'none'
  | 'full'
  | 'eio'
  | 'stuck'
  | 'spill'
  | 'slow'
  | 'end'
  | 'at close'
  | 'full start'
  | 'damaged once'
  | 'misread'
  | 'damaged';

export const slowMs = 200;

export const ordersOf = (file: string) => `${file}.fault`;

/** Where the writer puts down each lock that it asks for. */
export const locksOf = (file: string) => `${file}.locks`;

/** Lets the disk below a database fail from now on. */
export function breakDisk(file: string, fault: Fault): void {
  writeFileSync(ordersOf(file), fault);
}
