import { hash } from 'node:crypto';
import { limitError } from '../../core/errors.ts';
import type { Clock, SharedState } from '../../core/ports.ts';
import type { ToolRequest } from '../../core/tool-host.ts';

/** Counts a call before its work begins; throws LIMIT, class `rate`, when there were too many. */
export type Admit = (request: Pick<ToolRequest, 'name' | 'principal' | 'rateLimited'>) => Promise<void>;

export interface RateLimitsParts {
  /** Calls a minute of one client, by tool; others are not counted. */
  limits: ReadonlyMap<string, number>;
  state: SharedState;
  clock: Clock;
}

const windowMs = 60_000;

/** The times of the last minute's calls stand in the shared state, so that all processes on one store count together. */
export function createRateLimits({ limits, state, clock }: RateLimitsParts): Admit {
  return async ({ name, principal, rateLimited }) => {
    const most = limits.get(name);
    if (!rateLimited || most === undefined) return;
    const now = clock.now();
    let waitMs = 0;
    await state.change(keyOf(name, principal), windowMs, before => {
      const told: unknown[] = Array.isArray(before?.at) ? before.at : [];
      // A clock that was put back must not lock anybody out.
      const at = told.filter(time => typeof time === 'number').filter(time => time > now - windowMs && time <= now);
      const [oldest = now] = at.slice(-most);
      waitMs = at.length < most ? 0 : oldest + windowMs - now;
      return { at: waitMs === 0 ? [...at, now] : at };
    });
    if (waitMs > 0) throw tooOften(name, most, Math.ceil(waitMs / 1_000));
  };
}

/** Clients name themselves as they like. */
function keyOf(tool: string, { owner, client = '' }: ToolRequest['principal']): string {
  return `rate/${tool}/${hash('sha256', JSON.stringify([owner, client])).slice(0, 32)}`;
}

function tooOften(tool: string, most: number, seconds: number) {
  return limitError('rate', `${tool} may be called ${most} times a minute, and was.`, {
    next: `Call it again in ${seconds} s, or do something else meanwhile; the operator can raise RATE_LIMITS.`,
    retryable: true,
    retryAfterSeconds: seconds,
    data: { limit_per_minute: most },
  });
}
