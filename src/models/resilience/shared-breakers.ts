import { z } from 'zod';
import { orAbort, remember, withDeadline, withTimeout } from '../../core/concurrency.ts';
import { cancelledError, isAppError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { BreakerState } from '../../core/model.ts';
import type { Clock, Emit, SharedState } from '../../core/ports.ts';
import { type BreakerScope, breakerRules, statePrefix } from './breaker.ts';

/** What other processes need to know of a breaker that is not closed. Times are the store's. */
export type BreakerRecord = z.infer<typeof recordSchema>;

const recordSchema = z.object({
  state: z.enum(['open', 'quarantined']),
  opens: z.number(),
  since: z.number(),
  /** The pause lasts until then. */
  until: z.number(),
  cause: z.string().catch('unknown'),
  /** Failures in a row that opened it; 0 where an older release wrote it. */
  failures: z.number().catch(0),
  /** The process that tries whether it works again, and for how long the others leave that to it. */
  probe: z.object({ by: z.string(), until: z.number() }).optional().catch(undefined),
});

/** After a day it is forgotten: then a call finds out anew. */
export const recordLifeMs = 86_400_000;

/** Undefined for what is no record: another version's, or damaged. */
export const recordFromJson = (value: JsonObject | undefined): BreakerRecord | undefined =>
  recordSchema.safeParse(value).data;

/** Whether a process may try now: the pause is over and nobody else is at it. */
export const mayProbe = ({ state, until, probe }: BreakerRecord, now: number): boolean =>
  state === 'open' && until <= now && (probe === undefined || probe.until <= now);

/** What others found is known this much later at most. */
const refreshMs = 1_000;

/** A call does not wait longer for a state that is slow; the first time it may have to be opened. */
const patienceMs = 250;

const firstPatienceMs = 2_000;

/** What breakers need of their process. */
export interface BreakerParts {
  clock: Clock;
  emit: Emit;
  /** Absent: what is learned stays in this process. */
  state?: SharedState;
}

interface SharedParts extends BreakerParts {
  /** Changes a breaker's state and tells of it. */
  turn(place: BreakerScope, to: BreakerState): void;
  /** Names this process. */
  self: string;
  /** The breakers of this process. */
  places: ReadonlyMap<string, BreakerScope>;
}

/**
 * What the processes on one store tell each other of their breakers. Nothing waits for a write but the one who asks to try
 * again; a state that can't be reached leaves this process with what it knows itself.
 */
export class SharedBreakers {
  readonly #parts: SharedParts;
  #records: ReadonlyMap<string, BreakerRecord> = new Map();
  #refreshed = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;
  #warned = false;
  /** Counts what was written here: what was read before a write is older than it. The latest are remembered. */
  #writes = 0;
  readonly #writtenAt = new Map<string, number>();
  /** Writes under way, and the names that they are for. */
  readonly #writing = new Map<Promise<void>, string>();

  constructor(parts: SharedParts) {
    this.#parts = parts;
  }

  async refresh(): Promise<void> {
    const { state, clock } = this.#parts;
    if (!state || clock.monotonic() - this.#refreshed < refreshMs) return;
    this.#refreshing ??= this.#load(state).finally(() => {
      this.#refreshing = undefined;
    });
    const first = this.#refreshed === Number.NEGATIVE_INFINITY;
    // Where it is still being read then, the next call may have it.
    await withTimeout(clock, first ? firstPatienceMs : patienceMs, this.#refreshing);
  }

  /** Of all that are not closed, as far as it is known; by their names. */
  get records(): ReadonlyMap<string, BreakerRecord> {
    return this.#records;
  }

  /** Brings a breaker that is new here to what is known of it. */
  adopt(place: BreakerScope): void {
    const record = this.#records.get(place.name);
    if (record) this.#follow(place, record);
  }

  /** Asks to be the one process that tries. `closed`: another one found that it works again. */
  async claim(place: BreakerScope, probeMs: number): Promise<'mine' | 'closed' | 'taken'> {
    const { state, clock, self } = this.#parts;
    if (!state) return 'mine';
    try {
      // Read before it is written: most who ask too early need no write to be told.
      const before = recordFromJson(await this.#inTime(state.get(place.name)));
      if (before && !mayProbe(before, clock.storeTime())) return this.#denied(place, before);
      const until = clock.storeTime() + probeMs;
      const change = state.change(place.name, recordLifeMs, found => {
        const record = recordFromJson(found);
        return record && mayProbe(record, clock.storeTime()) ? { ...record, probe: { by: self, until } } : found;
      });
      const after = recordFromJson(await this.#inTime(change));
      const mine = after?.probe?.by === self && after.probe.until === until;
      return mine ? 'mine' : this.#denied(place, after);
    } catch (error) {
      this.#warn(error);
      return 'mine';
    }
  }

  /** This process was the one that tried, and did not find out. */
  giveBack(place: BreakerScope): Promise<void> {
    const { self } = this.#parts;
    return this.#write(place, before => (before?.probe?.by === self ? { ...before, probe: undefined } : before));
  }

  opened(place: BreakerScope): Promise<void> {
    const { clock, self } = this.#parts;
    const { opens, readyAt, cause = 'unknown', consecutive: failures } = place.breaker;
    const until = clock.storeTime() + Math.max(0, readyAt - clock.monotonic());
    const state = place.breaker.state === 'quarantined' ? 'quarantined' : 'open';
    const own: BreakerRecord = { state, opens, since: clock.storeTime(), until, cause, failures };
    return this.#write(place, before => {
      if (!before || before.probe?.by === self || state === 'quarantined') return own;
      if (before.state === 'quarantined') return before;
      // Another process opened it at the same time: the longer pause counts, and who is trying has yet to say how it went.
      const longer = { opens: Math.max(opens, before.opens), until: Math.max(until, before.until) };
      return { ...own, ...longer, probe: before.probe };
    });
  }

  /** `onlyQuarantine`: whatever else it is open for stays. Resolves once it is written, or can't be. */
  closed(place: BreakerScope, onlyQuarantine = false): Promise<void> {
    return this.#write(place, before => (onlyQuarantine && before?.state !== 'quarantined' ? before : undefined));
  }

  #denied(place: BreakerScope, record: BreakerRecord | undefined): 'closed' | 'taken' {
    place.breaker.probing = false;
    this.#follow(place, record);
    return record ? 'taken' : 'closed';
  }

  /** Takes over what another process wrote. The pause is measured by a clock that never jumps. */
  #follow(place: BreakerScope, record: BreakerRecord | undefined): void {
    const { clock, turn } = this.#parts;
    const { breaker } = place;
    if (!record) {
      if (breaker.state !== 'closed') turn(place, 'closed');
      return;
    }
    const now = clock.storeTime();
    const probing = record.probe !== undefined && record.probe.until > now;
    const to = record.state === 'quarantined' ? 'quarantined' : probing ? 'half_open' : 'open';
    breaker.cause = record.cause;
    breaker.consecutive = Math.max(breaker.consecutive, record.failures);
    breaker.opens = record.opens;
    const until = probing && record.probe ? record.probe.until : record.until;
    breaker.readyAt = clock.monotonic() + Math.min(Math.max(0, until - now), breakerRules.maxPauseMs);
    if (breaker.state !== to) turn(place, to);
    breaker.since = record.since + clock.now() - now;
  }

  async #load(state: SharedState): Promise<void> {
    const asked = this.#writes;
    try {
      const read = [...(await state.list(statePrefix))].map(([name, value]) => [name, recordFromJson(value)] as const);
      this.#records = new Map(read.flatMap(([name, record]) => (record ? [[name, record] as const] : [])));
      const pending = new Set(this.#writing.values());
      for (const place of this.#parts.places.values()) {
        const { name, breaker } = place;
        const newer = pending.has(name) || (this.#writtenAt.get(name) ?? 0) > asked;
        if (!newer && !breaker.probing) this.#follow(place, this.#records.get(name));
      }
    } catch (error) {
      this.#warn(error);
    }
    this.#refreshed = this.#parts.clock.monotonic();
  }

  #write(place: BreakerScope, change: (before: BreakerRecord | undefined) => BreakerRecord | undefined): Promise<void> {
    const { state } = this.#parts;
    if (!state) return Promise.resolve();
    const { name } = place;
    const settled: Promise<void> = state
      .change(name, recordLifeMs, before => change(recordFromJson(before)))
      .then(() => undefined)
      .catch(error => this.#warn(error))
      .finally(() => {
        this.#writing.delete(settled);
        remember(this.#writtenAt, name, ++this.#writes, 4_000);
      });
    this.#writing.set(settled, name);
    return settled;
  }

  /** Resolves once all that was written is there, or can't be. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing.keys());
  }

  /** The promise, unless it takes too long. */
  #inTime<Result>(promise: Promise<Result>): Promise<Result> {
    const late = () => cancelledError(`no answer within ${firstPatienceMs} ms`);
    return withDeadline(this.#parts.clock, firstPatienceMs, signal => orAbort(promise, signal), undefined, late);
  }

  /** Once: each call would say it again. */
  #warn(error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    const why = isAppError(error) ? error.message : String(error);
    this.#parts.emit({ type: 'warning', where: 'breakers', message: `Other processes are not told of them: ${why}` });
  }
}
