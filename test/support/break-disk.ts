import { writeFileSync } from 'node:fs';

/**
 * How test/support/faulty-sqlite-writer.ts fails: `full` and `eio` as SQLite reports them when a transaction is to be made
 * durable (it is undone then), `spill` in the middle of one, `slow` as an fsync that takes its time.
 */
export type Fault = 'none' | 'full' | 'eio' | 'spill' | 'slow';

export const slowMs = 200;

export const ordersOf = (file: string) => `${file}.fault`;

/** Lets the disk below a database fail from now on. */
export function breakDisk(file: string, fault: Fault): void {
  writeFileSync(ordersOf(file), fault);
}
