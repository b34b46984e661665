import type { Clock } from '../../domain/ports.ts';
import type { Refusal } from './refusal.ts';

export interface RateRules {
  /** Requests a minute of one client, on the average. */
  perMinute: number;
  /** What may come at once after a pause. */
  burst: number;
}

/** How many clients are remembered; the one that was quiet longest is forgotten first. */
const mostClients = 10_000;

/** One bucket a client, refilled as time passes. */
export function createRates({ perMinute, burst }: RateRules, clock: Pick<Clock, 'monotonic'>) {
  const buckets = new Map<string, { left: number; at: number }>();
  return (client: string): Refusal | undefined => {
    const now = clock.monotonic();
    const before = buckets.get(client) ?? { left: burst, at: now };
    const left = Math.min(burst, before.left + ((now - before.at) * perMinute) / 60_000);
    buckets.delete(client);
    buckets.set(client, { left: left < 1 ? left : left - 1, at: now });
    const [oldest] = buckets.keys();
    if (buckets.size > mostClients && oldest !== undefined) buckets.delete(oldest);
    if (left >= 1) return undefined;
    const retryAfterSeconds = Math.max(1, Math.ceil(((1 - left) * 60) / perMinute));
    return {
      status: 429,
      class: 'rate',
      message: `More than ${perMinute} requests a minute came from here.`,
      next: `Wait ${retryAfterSeconds} s, then go on.`,
      retryAfterSeconds,
    };
  };
}
