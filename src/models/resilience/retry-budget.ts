import { RollingCounts } from './breaker/rolling-counts.ts';

const windowMs = 60_000;
const share = 0.1;
/** So many are allowed however few calls there are. */
const least = 3;

/** Keeps retries a small part of what a vendor gets: in trouble, everybody's second and third tries are what breaks it for good. */
export interface RetryBudget {
  /** A call begins at this upstream. `now` in monotonic milliseconds. */
  called(upstream: string, now: number): void;
  /** True when one more retry fits into the last minute's; it is counted then. */
  take(upstream: string, now: number): boolean;
}

export function createRetryBudget(): RetryBudget {
  // Marked: retries.
  const byUpstream = new Map<string, RollingCounts>();
  const of = (upstream: string) => {
    const counts = byUpstream.get(upstream) ?? new RollingCounts(windowMs);
    byUpstream.set(upstream, counts);
    return counts;
  };
  return {
    called: (upstream, now) => of(upstream).add(now, 1, 0),
    take(upstream, now) {
      const counts = of(upstream);
      const { all: calls, marked: retries } = counts.sum(now);
      if (retries + 1 > Math.max(least, share * calls)) return false;
      counts.add(now, 0, 1);
      return true;
    },
  };
}
