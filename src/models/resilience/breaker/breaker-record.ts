import { isRecord, type JsonObject } from '../../../core/json.ts';

/** What other processes need to know of a breaker that is not closed. Times in epoch milliseconds. */
export interface BreakerRecord {
  state: 'open' | 'quarantined';
  opens: number;
  since: number;
  /** The pause lasts until then. */
  until: number;
  cause: string;
  /** The process that tries whether it works again, and for how long the others leave that to it. */
  probe?: { by: string; until: number };
}

/** After a day it is forgotten: then a call finds out anew. */
export const recordLifeMs = 86_400_000;

export function recordToJson({ probe, ...rest }: BreakerRecord): JsonObject {
  return { ...rest, probe: probe && { ...probe } };
}

/** Undefined for what is no record: another version's, or damaged. */
export function recordFromJson(value: JsonObject | undefined): BreakerRecord | undefined {
  if (!value) return undefined;
  const { state, opens, since, until, cause, probe } = value;
  if (state !== 'open' && state !== 'quarantined') return undefined;
  if (typeof opens !== 'number' || typeof since !== 'number' || typeof until !== 'number') return undefined;
  return { state, opens, since, until, cause: typeof cause === 'string' ? cause : 'unknown', probe: probeOf(probe) };
}

function probeOf(value: unknown): BreakerRecord['probe'] {
  if (!isRecord(value) || typeof value.by !== 'string' || typeof value.until !== 'number') return undefined;
  return { by: value.by, until: value.until };
}

/** Whether a process may try now: the pause is over and nobody else is at it. */
export function mayProbe({ state, until, probe }: BreakerRecord, now: number): boolean {
  return state === 'open' && until <= now && (probe === undefined || probe.until <= now);
}
