import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createQueue, remember, uncontended } from '../core/concurrency.ts';
import type { JsonObject } from '../core/json.ts';
import type { Clock, KeptText, Random, SharedState } from '../core/ports.ts';
import { dayMs, dayOf, type SpendLedger } from '../core/usage.ts';
import type { Lookup, Store } from './store.ts';

/** Nothing that is kept here comes near it; a file that does is not ours. */
const maxBytes = 32 * 1_048_576;

/** A text as a file, which is made with its directory. Only the operator may read it. */
export const createKeptText = (file: string, random: Random): KeptText => ({
  async read() {
    try {
      const { size } = await stat(file);
      return size > maxBytes ? undefined : await readFile(file, 'utf8');
    } catch {
      // Not there, or not readable: it can be had again.
      return undefined;
    }
  },
  async write(text) {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    // Another process may read or write it now: it sees the old text or the new one, never half of one.
    const draft = `${file}.${random.uuid()}.tmp`;
    try {
      await writeFile(draft, text, { mode: 0o600 });
      await rename(draft, file);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  },
});

/** State of all processes on a store, or of this one: reads see the last change, and a change needs the value it was made from. */
export function createStoredState(store: Pick<Store, 'fact' | 'facts' | 'swapFact'>, clock: Clock): SharedState {
  // Changes of one process to one key wait here instead of making each other try again.
  const queue = createQueue();

  return {
    get: async key => (await store.fact(key, clock.storeTime()))?.value,
    async list(prefix) {
      return new Map([...(await store.facts(prefix, clock.storeTime()))].map(([key, { value }]) => [key, value]));
    },
    async change(key, ttlMs, change) {
      const tried = async () => {
        const now = clock.storeTime();
        const before = await store.fact(key, now);
        const value = change(before && structuredClone(before.value));
        if (value === undefined && before === undefined) return { value };
        const swap = { key, version: before?.version ?? 0, value, expiresAt: now + ttlMs, now };
        return (await store.swapFact(swap)) ? { value } : undefined;
      };
      return (await queue.run(key, () => uncontended(`The shared value ${key}`, tried))).value;
    },
  };
}

/** What was seen of the clocks at one moment. */
interface ClockReading extends ReturnType<Clock['sinceBoot']> {
  wall: number;
  /** How far the time of day is ahead of the store's. */
  ahead: number;
}

/** The clocks differ by less where none was changed: some systems count full seconds since the boot. */
const slackMs = 2_000;

/** Of a pause in which the machine was restarted only the time of day tells, which may be wrong: more of it does not count. */
const maxOffMs = dayMs;

const keepEveryMs = 600_000;

/**
 * How far the time of day is ahead of the store's time, which only time that passed moves on: a step of the time of day moves it
 * neither way. What was read last is kept in `file`, for processes that come later; without one, each process begins with 0.
 */
export function createStoreTime(clock: Clock, file: string | undefined, onWarning: (message: string) => void) {
  let kept = keptReading(file);
  let last = kept;

  function look(isSecond = false): ClockReading {
    const seen = { wall: clock.now(), ...clock.sinceBoot() };
    const before = last ?? { ...seen, ahead: 0 };
    const passed = seen.wall - before.wall;
    const isSameBoot = seen.boot === before.boot && seen.ms >= before.ms;
    const counted = isSameBoot ? seen.ms - before.ms : Math.min(Math.max(0, passed), maxOffMs);
    const step = Math.abs(passed - counted) > slackMs ? Math.round(passed - counted) : 0;
    // The process may have stood still between two readings.
    if (step !== 0 && !isSecond) return look(true);
    if (step < 0 || (step > 0 && isSameBoot)) onWarning(stepWarning(step));
    last = { ...seen, ahead: before.ahead + step };
    const isKept = kept?.boot === last.boot && kept.ahead === last.ahead && last.ms - kept.ms < keepEveryMs;
    if (file !== undefined && !isKept && keepReading(file, last)) kept = last;
    return last;
  }

  return {
    ahead: () => look().ahead,
    /** The server behind the store counts the time. */
    follow(time: number): void {
      last = { ...look(), ahead: Math.round(clock.now() - time) };
    },
  };
}

function stepWarning(step: number): string {
  const hours = (Math.abs(step) / 3_600_000).toFixed(2);
  return `The clock of this machine was moved ${step > 0 ? 'ahead' : 'back'} by ${hours} h. Threads, jobs and kept replies keep the time they had left; set the clock right, because new entries bear its time.`;
}

function keptReading(file: string | undefined): ClockReading | undefined {
  try {
    const { wall, boot, ms, ahead } = JSON.parse(readFileSync(file ?? '', 'utf8'));
    return [wall, ms, ahead].every(Number.isFinite) ? { wall, boot: String(boot), ms, ahead } : undefined;
  } catch {
    return undefined;
  }
}

/** As a whole or not at all; false where it can't be written, which the next look tries again. */
function keepReading(file: string, reading: ClockReading): boolean {
  try {
    writeFileSync(`${file}.${process.pid}`, JSON.stringify(reading), { mode: 0o600 });
    renameSync(`${file}.${process.pid}`, file);
    return true;
  } catch {
    return false;
  }
}

/** A store whose threads and jobs expire by its own time, to callers who give and get times of day. */
export function withStoreTime(store: Store, ahead: () => number): Store {
  const at = (now: number) => now - ahead();
  const asked = <Query extends { now: number }>(query: Query): Query => ({ ...query, now: at(query.now) });
  const stored = <Item extends { expiresAt: number }>(item: Item): Item => ({ ...item, expiresAt: at(item.expiresAt) });
  const shown = <Item extends { expiresAt: number }>(item: Item): Item => ({
    ...item,
    expiresAt: item.expiresAt + ahead(),
  });
  function looked<Found extends { expiresAt: number }>(found: Lookup<Found>): Lookup<Found> {
    if (found.state === 'live') return { ...found, value: shown(found.value) };
    if (found.state === 'expired') return { ...found, expiredAt: found.expiredAt + ahead() };
    return found.state === 'deleted' ? { ...found, deletedAt: found.deletedAt + ahead() } : found;
  }
  return {
    ...store,
    create: (head, over) => store.create(stored(head), over),
    read: async (id, now) => looked(await store.read(id, at(now))),
    head: async (id, now) => looked(await store.head(id, at(now))),
    commit: (id, change) => store.commit(id, { ...stored(change), now: at(change.updatedAt) }),
    list: async query => (await store.list(asked(query))).map(shown),
    search: async query => (await store.search(asked(query))).map(hit => ({ ...hit, thread: shown(hit.thread) })),
    remove: (id, now) => store.remove(id, at(now)),
    prune: (now, unused) => store.prune(at(now), unused),
    prunable: (now, unused) => store.prunable(at(now), unused),
    createJob: job => store.createJob(stored(job)),
    job: (id, now) => store.job(id, at(now)).then(job => job && shown(job)),
    jobs: async query => (await store.jobs(asked(query))).map(shown),
    endJob: (id, end) => store.endJob(id, stored(end)),
  };
}

/** A day is remembered for so long: its name may come again. */
const knownDayMs = 370 * dayMs;

/** The day that a limit counts what an owner spends under now; where it counts none so far, that of the clock. */
export async function currentDay(state: Pick<SharedState, 'get'>, owner: string, clock: Clock): Promise<string> {
  const found = await state.get(`spend-day ${owner}`);
  return Number(found?.endsAt) > clock.storeTime() ? String(found?.day) : dayOf(clock.now());
}

/**
 * A ledger whose days begin and end by the store's time. A day has the name that the time of day gives it when it begins, and counts
 * what was spent since then: where the time of day is wrong meanwhile, no limit begins anew, and none of before comes back.
 * A day that was counted in full or for the most part under the last name is not begun again: the one after it begins.
 */
export function withStoreDays(ledger: SpendLedger, state: SharedState, clock: Clock): SpendLedger {
  /** The days of so many owners as they were found: none is changed before its end. */
  const known = new Map<string, JsonObject>();

  /** The day that a moment of the store's time counts under. */
  async function dayAt(owner: string, time: number): Promise<{ day: string; before: number }> {
    const isOver = (found: JsonObject | undefined) => Number(found?.endsAt ?? 0) <= time;
    const key = `spend-day ${owner}`;
    const last = known.get(owner);
    let found = isOver(last) ? await state.get(key) : last;
    if (isOver(found)) {
      const wall = time + clock.now() - clock.storeTime();
      const midnight = time - (wall % dayMs);
      const counted = Number(found?.endsAt ?? 0) - midnight;
      const skipped = counted > (found?.day === dayOf(wall) ? 0 : dayMs / 2) ? dayMs : 0;
      const day = dayOf(wall + skipped);
      // What is only held now goes away, or is spent on the new day.
      const before = found ? (await ledger.used({ owner, day, now: Number.MAX_SAFE_INTEGER })).day : 0;
      const next = { day, endsAt: midnight + skipped + dayMs, before, lastDay: found?.day, lastEnd: found?.endsAt };
      found = await state.change(key, knownDayMs, other => (isOver(other) ? next : other));
    }
    if (found && found !== last) remember(known, owner, found, 1_000);
    const isOfLast = time < Number(found?.lastEnd);
    return { day: String(isOfLast ? found?.lastDay : found?.day), before: Number(found?.before) };
  }

  return {
    ...ledger,
    async add(entry, hold, unhurried) {
      if (!entry) return ledger.add(entry, hold, unhurried);
      const { day } = await dayAt(entry.owner, entry.at - clock.now() + clock.storeTime());
      return ledger.add({ ...entry, day }, hold, unhurried);
    },
    async hold(hold) {
      const { day, before } = await dayAt(hold.owner, clock.storeTime());
      const { dayLimit } = hold;
      return ledger.hold({ ...hold, day, ...(dayLimit !== undefined && { dayLimit: dayLimit + before }) });
    },
    async used(scope) {
      const { day, before } = await dayAt(scope.owner, clock.storeTime());
      const used = await ledger.used({ ...scope, day });
      return { ...used, day: Math.max(0, used.day - before) };
    },
  };
}
