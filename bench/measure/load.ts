import type { Figures } from './rounds.ts';
import { quantile } from './statistics.ts';

/** Makes `calls` calls, `atOnce` of them under way all the time, and tells the time of one in ms. */
export async function load(calls: number, atOnce: number, call: () => Promise<unknown>): Promise<Figures> {
  const samples: number[] = [];
  let begun = 0;
  const caller = async () => {
    while (begun++ < calls) {
      const before = performance.now();
      await call();
      samples.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, caller));
  return { p50: quantile(samples, 0.5), p99: quantile(samples, 0.99) };
}
