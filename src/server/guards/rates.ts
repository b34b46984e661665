import type { Clock } from '../../core/ports.ts';
import type { Refusal } from './refusal.ts';

export interface RateRules {
  /** Requests a minute of one client, on the average. */
  perMinute: number;
  /** What may come at once after a pause. */
  burst: number;
}

/** How many clients are remembered; the one that was quiet longest is forgotten first. */
const mostClients = 10_000;

/** One bucket a client, refilled as time passes. `count`: requests that come as one, and pass or don't pass together. */
export function createRates({ perMinute, burst }: RateRules, clock: Pick<Clock, 'monotonic'>) {
  const buckets = new Map<string, { left: number; at: number }>();
  return (client: string, count = 1): Refusal | undefined => {
    if (count > burst) return tooLarge(burst);
    const now = clock.monotonic();
    const before = buckets.get(client) ?? { left: burst, at: now };
    const left = Math.min(burst, before.left + ((now - before.at) * perMinute) / 60_000);
    buckets.delete(client);
    buckets.set(client, { left: left < count ? left : left - count, at: now });
    const [oldest] = buckets.keys();
    if (buckets.size > mostClients && oldest !== undefined) buckets.delete(oldest);
    if (left >= count) return undefined;
    const retryAfterSeconds = Math.max(1, Math.ceil(((count - left) * 60) / perMinute));
    return {
      status: 429,
      class: 'rate',
      message: `More than ${perMinute} requests a minute came from here.`,
      next: `Wait ${retryAfterSeconds} s, then go on.`,
      retryAfterSeconds,
    };
  };
}

function tooLarge(burst: number): Refusal {
  return {
    status: 413,
    class: 'batch',
    message: `These are more messages in one than the ${burst} that may come at once.`,
    next: 'Send them in smaller parts.',
  };
}
