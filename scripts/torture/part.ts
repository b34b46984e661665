import type { Table } from '../../bench/measure/table.ts';

export interface PartOptions {
  seed: number;
  /** Absent: as many as the part has by default. */
  rounds?: number;
  /** How long the soak takes. */
  minutes: number;
}

/** A part of the torture. The lines in `failed` of its table are promises that were broken. */
export type Part = (options: PartOptions) => Promise<Table>;

/** Tells on stderr how far a part is, at most every five seconds. */
export function progress(name: string): (text: () => string) => void {
  let last = performance.now();
  return text => {
    if (performance.now() - last < 5_000) return;
    last = performance.now();
    process.stderr.write(`${name}: ${text()}\n`);
  };
}
