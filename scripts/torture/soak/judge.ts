import { median } from '../../../bench/measure/statistics.ts';
import { figure } from '../../../bench/measure/table.ts';

/** What one minute of load showed. */
export interface Minute {
  /** Of the daemon after a garbage collection, in MB: live heap with the buffers outside of it, and resident memory. */
  heapMb: number;
  rssMb: number;
  /** Its open file descriptors. */
  descriptors: number;
  chats: number;
  /** Milliseconds of a chat, and the p99 of fixed work in another thread in the same minute. */
  p50: number;
  p99: number;
  yardstick: number;
  databaseMb: number;
}

export interface Slope {
  /** Change per hour, in percent of the median. */
  perHour: number;
  /** 95% of confidence. */
  low: number;
  high: number;
}

/** Theil and Sen's slope of values a minute apart: a few odd minutes do not move it. NaN of fewer than three. */
export function slopeOf(values: readonly number[]): Slope {
  const slopes: number[] = [];
  for (const [at, value] of values.entries()) {
    for (let later = at + 1; later < values.length; later++) slopes.push(((values[later] ?? 0) - value) / (later - at));
  }
  if (values.length < 3) return { perHour: Number.NaN, low: Number.NaN, high: Number.NaN };
  slopes.sort((a, b) => a - b);
  const scale = (60 * 100) / median(values);
  // By the variance of Kendall's statistic, from which the ranks of the bounds follow.
  const count = values.length;
  const spread = 1.96 * Math.sqrt((count * (count - 1) * (2 * count + 5)) / 18);
  const rank = (place: number) => slopes[Math.min(slopes.length - 1, Math.max(0, Math.round(place)))] ?? Number.NaN;
  return {
    perHour: median(slopes) * scale,
    low: rank((slopes.length - spread) / 2) * scale,
    high: rank((slopes.length + spread) / 2) * scale,
  };
}

export const limits = {
  /** Percent an hour. */
  memory: 1,
  /** Percent an hour, where 0 is not within the confidence. */
  latency: 5,
  descriptors: 2,
  /** Notes of threads that went and the ledger of costs are kept for long: about 1 KB for each thread. */
  databaseMb: 128,
} as const;

/** Minutes in which caches fill and code is compiled; they are not judged. */
export const warmUpMinutes = 20;
/** Fewer minutes after the warm-up tell nothing of an hour. */
const judgedMinutes = 20;

export interface Verdict {
  rows: string[][];
  failed: string[];
}

/** Judges the minutes after the warm-up, or all that there are in a short run, whose slopes are shown and not judged. */
export function judge(all: readonly Minute[]): Verdict {
  const isJudged = all.length >= warmUpMinutes + judgedMinutes;
  const minutes = isJudged ? all.slice(warmUpMinutes) : all;
  const of = (value: (minute: Minute) => number) => minutes.map(value);
  const heap = slopeOf(of(({ heapMb }) => heapMb));
  const rss = slopeOf(of(({ rssMb }) => rssMb));
  // Other work makes the machine slower, and its end makes it faster: a server that slows down shows in both figures.
  const time = slopeOf(of(({ p99 }) => p99));
  const quotient = slopeOf(of(({ p99, yardstick }) => p99 / yardstick));
  const quarter = Math.max(1, Math.floor(minutes.length / 4));
  const descriptors = of(minute => minute.descriptors);
  const opened = median(descriptors.slice(-quarter)) - median(descriptors.slice(0, quarter));
  const database = Math.max(0, ...of(({ databaseMb }) => databaseMb));
  const isSlower = [time, quotient].every(({ low, perHour }) => low > 0 && perHour > limits.latency);
  const lines: [what: string, shown: string, limit: string, isCrossed: boolean][] = [
    ['live heap', slopeText(heap), `≤ ${limits.memory} %/h`, heap.perHour > limits.memory],
    ['resident memory', slopeText(rss), `≤ ${limits.memory} %/h`, rss.perHour > limits.memory],
    ['p99 of a chat', slopeText(time), `0 or ≤ ${limits.latency} %/h`, isSlower],
    ['p99 of a chat / yardstick', slopeText(quotient), 'or this', isSlower],
    ['descriptors, last quarter − first', figure(opened, 1), `≤ ${limits.descriptors}`, opened > limits.descriptors],
    ['database, largest, MB', figure(database, 1), `≤ ${limits.databaseMb}`, database > limits.databaseMb],
  ];
  return {
    rows: lines.map(([what, shown, limit, isCrossed]) => [what, shown, limit, wordOf(isJudged, isCrossed)]),
    failed: isJudged
      ? lines.filter(line => line[3]).map(([what, shown, limit]) => `${what}: ${shown}, not ${limit}`)
      : [],
  };
}

function slopeText({ perHour, low, high }: Slope): string {
  return `${figure(perHour, 1)} %/h (${figure(low, 1)} … ${figure(high, 1)})`;
}

function wordOf(isJudged: boolean, isCrossed: boolean): string {
  if (!isJudged) return 'too short';
  return isCrossed ? 'crossed' : 'held';
}
