import { isAppError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { operator, refusalFor, refusalResponse } from '../access/caller.ts';
import type { Route } from '../http/routes.ts';

/** Numbers of the whole process in Prometheus' text format: they tell of everybody's calls, so the operator alone gets them. */
export const metricsRoute = (text: () => string): Route => ({
  path: '/metrics',
  methods: ['GET', 'HEAD'],
  access: 'token',
  async handle({ caller }) {
    if (caller?.owner !== operator.owner) return refusalResponse(notYours);
    const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' };
    return new Response(text(), { headers });
  },
});

const notYours = refusalFor(
  403,
  'owner',
  'The metrics tell of the calls of all owners; only tokens of the operator may read them.',
  {
    next: `Give the collector a token of the owner "${operator.owner}", which may be read-only and without tools.`,
  },
);

/** A store that takes longer than this is not there, for a client. */
const storeMs = 2_000;

/** Whoever asks more often gets what was found a moment ago. */
const lookMs = 1_000;

/** Why nothing can be done now, as one sentence: a look at the store answers in time, or not. Undefined: all is well. */
export function createReadiness(
  lookAtStore: () => Promise<unknown>,
  clock: Pick<Clock, 'after' | 'monotonic'>,
): () => Promise<string | undefined> {
  let last: { at: number; found: Promise<string | undefined> } | undefined;

  async function look(): Promise<string | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<string>();
    const stop = clock.after(storeMs, () => resolve('The store does not answer.'));
    try {
      return await Promise.race([lookAtStore().then(() => undefined), late]);
    } catch (error) {
      return isAppError(error) ? error.message : 'The store failed.';
    } finally {
      stop();
    }
  }

  return () => {
    const now = clock.monotonic();
    if (!last || now - last.at >= lookMs) last = { at: now, found: look() };
    return last.found;
  };
}
