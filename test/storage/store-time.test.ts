import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../src/app/compose-storage.ts';
import { createOperationLog } from '../../src/calls/durable/operation-log.ts';
import type { Clock } from '../../src/core/ports.ts';
import { dayOf } from '../../src/core/usage.ts';
import { BreakerRegistry } from '../../src/models/resilience/breaker-registry.ts';
import { createStoredState, withStoreDays } from '../../src/storage/shared-state.ts';
import type { Store } from '../../src/storage/store.ts';
import { createThreads } from '../../src/threads/threads.ts';
import { hashOf, headOf, jobOf, turnOf } from '../contracts/store-fixtures.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const place = { owner: 'local', workspace: '/home/ann/project' };
const upstream = { provider: 'alpha', endpoint: 'alpha', key: 'k1' };

let folder: string;
let warnings: string[];
const open: Store[] = [];

/** Time as it passes, for all machines alike. */
let time = manualClock();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'polylogue-time-'));
  warnings = [];
  time = manualClock();
});

afterEach(async () => {
  await Promise.all(open.splice(0).map(store => store.close()));
  await rm(folder, { recursive: true, force: true });
});

interface Machine {
  /** Its time of day is ahead by that much; a number below 0 is behind. */
  aheadMs: number;
  boot: string;
}

const right: Machine = { aheadMs: 0, boot: 'one' };

/** A process that begins now, on a machine whose time of day may be set meanwhile. */
async function processOn(machine: Machine, redis?: { url: string; prefix: string; patienceMs: number }) {
  const wall = (): number => time.now() + machine.aheadMs;
  const raw: Clock = {
    ...time,
    now: wall,
    storeTime: wall,
    sinceBoot: () => ({ boot: machine.boot, ms: time.monotonic() }),
  };
  const random = { ...seededRandom(), uuid: () => crypto.randomUUID() };
  const emit = (event: { type: string; message?: string }) =>
    void (event.type === 'warning' && warnings.push(String(event.message)));
  const where = redis ? { redis } : { file: join(folder, 'threads.sqlite') };
  const { store, clock } = await openStore({ ...where, clock: raw, random, emit });
  open.push(store);
  const threads = createThreads({ store, clock, random, emit });
  const state = createStoredState(store, clock);
  return {
    store,
    clock,
    threads,
    log: createOperationLog(store, clock),
    breakers: new BreakerRegistry({ clock, random, emit, state }),
    async ask() {
      const thread = threads.start(place, 'chat');
      return threads.add(thread, threads.newExchange(), {
        turns: [turnOf(1, { timestamp: clock.now() })],
        status: 'done',
      });
    },
    list: () => store.list({ owner: 'local', limit: 10, now: clock.now() }),
  };
}

const day = (ms: number) => Math.round(ms / dayMs);

describe('threads', () => {
  it('are not hidden or removed by a process whose clock is 40 days ahead, nor by a running one', async () => {
    const machine = { ...right };
    const first = await processOn(machine);
    const thread = await first.ask();
    machine.aheadMs = 40 * dayMs;
    const second = await processOn(machine);
    for (const { threads, store, list, clock } of [first, second]) {
      expect(await store.prune(clock.now())).toBe(0);
      expect(await list()).toHaveLength(1);
      expect(await threads.find(thread.id, place)).toMatchObject({ id: thread.id });
      expect((await threads.find('last', place)).turns).toHaveLength(1);
    }
    // Each tells of it once.
    const told = expect.stringContaining('was moved ahead by 960.00 h');
    expect(warnings).toEqual([told, told]);
  });

  it.each([40, -40])(
    'that are used while the clock is off by %i days live as long as others once it is right',
    async off => {
      const machine = { ...right };
      const before = await (await processOn(machine)).ask();
      machine.aheadMs = off * dayMs;
      const wrong = await processOn(machine);
      const during = await wrong.ask();
      await wrong.threads.add(await wrong.threads.find(before.id, place), wrong.threads.newExchange(), {
        turns: [turnOf(2)],
        status: 'done',
      });
      machine.aheadMs = 0;
      const after = await processOn(machine);
      const ids = async () => (await after.list()).map(({ id }) => id).sort();
      expect(await ids()).toEqual([before.id, during.id].sort());
      for (const { expiresAt } of await after.list()) expect(day(expiresAt - after.clock.now())).toBe(30);
      await time.advance(29 * dayMs);
      expect(await ids()).toEqual([before.id, during.id].sort());
      await time.advance(2 * dayMs);
      expect(await ids()).toEqual([]);
      expect(await after.store.head(during.id, after.clock.now())).toMatchObject({
        state: 'expired',
        expiredAt: expect.closeTo(after.clock.now() - dayMs, -4),
      });
    },
  );

  it('live on where the clock was wrong from the beginning', async () => {
    const machine = { ...right, aheadMs: -40 * dayMs };
    const thread = await (await processOn(machine)).ask();
    machine.aheadMs = 0;
    const { threads, list, clock } = await processOn(machine);
    const found = await threads.find(thread.id, place);
    expect(day(found.expiresAt - clock.now())).toBe(30);
    await threads.add(found, threads.newExchange(), { turns: [turnOf(2)], status: 'done' });
    expect(await list()).toHaveLength(1);
  });

  it('lose a day at most while the machine was off, whatever its clock says, and a night in full', async () => {
    const first = await processOn(right);
    await first.ask();
    const night = await processOn({ boot: 'two', aheadMs: 10 * hourMs });
    const [head] = await night.list();
    expect((head?.expiresAt ?? 0) - night.clock.now()).toBe(30 * dayMs - 10 * hourMs);
    const holiday = await processOn({ boot: 'three', aheadMs: 40 * dayMs });
    expect(day(((await holiday.list())[0]?.expiresAt ?? 0) - holiday.clock.now())).toBe(29);
    // A battery that is empty begins in the past.
    const empty = await processOn({ boot: 'four', aheadMs: -9_000 * dayMs });
    expect(day(((await empty.list())[0]?.expiresAt ?? 0) - empty.clock.now())).toBe(29);
    expect(warnings).toEqual([expect.stringContaining('was moved back by')]);
  });

  it('expire as ever while the machine sleeps or runs', async () => {
    const { ask, list } = await processOn(right);
    await ask();
    await time.advance(31 * dayMs);
    expect(await list()).toEqual([]);
    expect(warnings).toEqual([]);
  });
});

describe('what else expires', () => {
  it.each([40 * dayMs, -hourMs])('keeps its time when the clock moves by %i ms', async step => {
    const machine = { ...right };
    const { store, clock, log } = await processOn(machine);
    const key = hashOf('call');
    const call = { id: 'c1', same: hashOf('same'), status: 'running', holder: 'h', startedAt: clock.now() } as const;
    await log.add(key, { ...call, expiresAt: clock.storeTime() + hourMs }, { version: 0, calls: [] });
    const job = jobOf({ createdAt: clock.now(), updatedAt: clock.now(), expiresAt: clock.now() + dayMs });
    await store.createJob(job);
    expect(await store.lease('a', 'one', 6_000, clock.storeTime())).toBe(true);
    machine.aheadMs = step;
    expect((await log.read(key)).calls).toHaveLength(1);
    expect(await store.job(job.id, clock.now())).toMatchObject({ expiresAt: clock.now() + dayMs });
    expect(await store.lease('a', 'two', 6_000, clock.storeTime())).toBe(false);
    await time.advance(hourMs + 1);
    expect((await log.read(key)).calls).toEqual([]);
    expect(await store.lease('a', 'two', 6_000, clock.storeTime())).toBe(true);
    await time.advance(dayMs);
    expect(await store.job(job.id, clock.now())).toBeUndefined();
  });
});

describe('a limit of a day', () => {
  const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  let count = 0;

  /** Spends money, by a process that begins now, where the limit allows it. Answers what the day has used then. */
  async function spend(machine: Machine, usd: number): Promise<number> {
    const { ledger, hold, paid, used } = await ledgerOn(machine);
    const id = `${count++}`;
    if (await hold(id, usd)) await ledger.add(paid(usd), id);
    return Math.round((await used()) * 100) / 100;
  }

  /** What one process does with its ledger, which has a limit of one dollar a day. */
  async function ledgerOn(machine: Machine, add?: Store['spend']['add']) {
    const { store, clock } = await processOn(machine);
    const ledger = withStoreDays({ ...store.spend, ...(add && { add }) }, createStoredState(store, clock), clock);
    const scope = () => ({ owner: 'local', day: dayOf(clock.now()), now: clock.storeTime() });
    const paid = (costUsd: number, at = clock.now()) => ({
      ...{ at, owner: 'local', tool: 'chat', provider: 'alpha', model: 'm', usage, costUsd },
      attempt: { isFailed: false, ms: 1 },
    });
    return {
      ...{ ledger, clock, paid, store },
      hold: (id: string, usd: number) =>
        ledger.hold({ ...scope(), id, usd, dayLimit: 1, expiresAt: clock.storeTime() + hourMs }),
      used: async () => (await ledger.used(scope())).day,
    };
  }

  const untilNight = () => dayMs - (time.now() % dayMs);

  it.each([0, -5_000, -3 * hourMs])(
    'gives nothing for what was only held when it began, on a clock that is off by %i ms',
    async aheadMs => {
      await time.advance(untilNight() - 60_000);
      const before = await ledgerOn(right);
      expect(await before.hold('a', 0.8)).toBe(true);
      await time.advance(60_001);
      const { ledger, hold, paid, used } = await ledgerOn({ ...right, aheadMs });
      expect(await used()).toBe(0.8);
      await ledger.add(paid(0.1), 'a');
      expect(await used()).toBeCloseTo(0.1, 9);
      expect(await hold('b', 1)).toBe(false);
      expect(await hold('b', 0.9)).toBe(true);
    },
  );

  it.each([-5_000, -3 * hourMs, -20 * hourMs, 23 * hourMs])(
    'begins once where the clock is off by %i ms at its beginning',
    async aheadMs => {
      const spendAll = async (machine: Machine) => {
        const { ledger, hold, paid } = await ledgerOn(machine);
        const isHeld = await hold(`${count}`, 1);
        if (isHeld) await ledger.add(paid(1), `${count++}`);
        return isHeld;
      };
      const night = untilNight();
      expect(await spendAll(right)).toBe(true);
      await time.advance(night + 1_000);
      expect(await spendAll({ ...right, aheadMs })).toBe(true);
      for (const later of [aheadMs, 0, aheadMs]) {
        await time.advance(7 * hourMs);
        expect(await spendAll({ ...right, aheadMs: later })).toBe(false);
      }
      await time.advance(26 * hourMs);
      expect(await spendAll(right)).toBe(true);
    },
  );

  it.each([false, true])(
    'takes what was spent before it began for the day before, at its hour (another call came first: %s)',
    async isOpen => {
      await time.advance(untilNight() - 60_000);
      const { ledger, paid, used, store } = await ledgerOn(right);
      await ledger.add(paid(1));
      const late = paid(2, time.now() + 59_900);
      const day = dayOf(late.at);
      await time.advance(60_001);
      if (isOpen) expect(await used()).toBe(0);
      await ledger.add(late);
      expect(await used()).toBe(0);
      const rows = await store.spend.rows({ owner: 'local', from: day });
      expect(rows).toMatchObject([{ day, costUsd: 3, tries: { 23: { attempts: 2 } } }]);
    },
  );

  it('leaves the time of day of what is spent as it is', async () => {
    const times: unknown[] = [];
    const { ledger, paid } = await ledgerOn(right, async entry => void times.push(entry?.at));
    const entry = paid(1);
    await ledger.add(entry);
    await ledger.add(undefined, 'a hold');
    expect(times).toEqual([entry.at, undefined]);
  });

  it.each([40 * dayMs, -40 * dayMs, -hourMs, 25 * hourMs])(
    'is neither forgotten nor counted twice where the clock is off by %i ms for a while',
    async off => {
      const machine = { ...right };
      const untilNight = dayMs - (time.now() % dayMs);
      const first = await spend(machine, 0.5);
      machine.aheadMs = off;
      const wrong = [await spend(machine, 0.3), await spend(machine, 0.3)];
      machine.aheadMs = 0;
      expect([first, ...wrong, await spend(machine, 0.2), await spend(machine, 0.2)]).toEqual([0.5, 0.8, 0.8, 1, 1]);
      await time.advance(untilNight);
      expect([await spend(machine, 0.4), await spend(machine, 0.7)]).toEqual([0.4, 0.4]);
      // Days whose names were used before begin at nothing. One that begins an hour before its name does is longer by that.
      machine.aheadMs = off;
      for (let days = 0; days < 3; days++) {
        await time.advance(dayMs);
        const used = off === -hourMs && days === 1 ? 0.8 : 0.4;
        expect([await spend(machine, 0.4), await spend(machine, 0.7)]).toEqual([used, used]);
        machine.aheadMs = 0;
      }
      await time.advance(40 * dayMs);
      expect([await spend(machine, 0.9), await spend(machine, 0.2)]).toEqual([0.9, 0.9]);
    },
  );
});

async function openBreaker({ breakers }: Awaited<ReturnType<typeof processOn>>): Promise<void> {
  for (let count = 0; count < 5; count++) {
    const pass = await breakers.admit(upstream, 'm', 1_000, 'r');
    if ('waitMs' in pass) throw new Error('It is open already.');
    pass.failed({ scope: 'model', cause: 'bad_upstream', lasting: false }, true);
  }
  await breakers.settled();
}

const waitOf = async ({ breakers }: Awaited<ReturnType<typeof processOn>>) => {
  await breakers.refresh();
  return breakers.blocked(upstream, 'm')?.waitMs;
};

describe('a breaker', () => {
  it('waits no longer when the clock is set back by an hour, in this process and in the next', async () => {
    const machine = { ...right };
    const first = await processOn(machine);
    await openBreaker(first);
    machine.aheadMs = -hourMs;
    expect(await waitOf(first)).toBe(30_000);
    expect(await waitOf(await processOn(machine))).toBe(30_000);
    await time.advance(30_001);
    expect(await waitOf(first)).toBeUndefined();
  });
});

describe('machines whose clocks differ, on one Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.dispose());

  it.each([hourMs, -hourMs, 40 * dayMs, -40 * dayMs])('agree on what expires, with %i ms between them', async apart => {
    const redis = { url: server.url, prefix: `${crypto.randomUUID()}:`, patienceMs: 5_000 };
    const one = await processOn(right, redis);
    const other = await processOn({ boot: 'other', aheadMs: apart }, redis);
    const thread = await one.ask();
    await openBreaker(one);
    expect(await other.list()).toHaveLength(1);
    expect(await other.store.prune(other.clock.now())).toBe(0);
    const found = await other.threads.find(thread.id, place);
    expect(day(found.expiresAt - other.clock.now())).toBe(30);
    await other.threads.add(found, other.threads.newExchange(), { turns: [turnOf(2)], status: 'done' });
    expect(await one.list()).toHaveLength(1);
    expect(await waitOf(other)).toBeGreaterThan(25_000);
    expect(await waitOf(other)).toBeLessThanOrEqual(30_000);
    expect(await one.store.lease('a', 'one', 60_000, one.clock.storeTime())).toBe(true);
    expect(await other.store.lease('a', 'two', 60_000, other.clock.storeTime())).toBe(false);
    expect(await one.store.create(headOf({ owner: 'local' }))).toBeUndefined();
  });
});
