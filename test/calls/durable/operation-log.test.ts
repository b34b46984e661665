import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type CallOperation, createOperationLog, type OperationLog } from '../../../src/calls/durable/operation-log.ts';
import { createProcessLease } from '../../../src/calls/durable/process-lease.ts';
import { hashOf } from '../../../src/core/ids.ts';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import type { Store } from '../../../src/storage/store.ts';
import { manualClock } from '../../support/clock.ts';

const key = hashOf('key');
const clock = manualClock();
const callOf = (id: string, more: Partial<CallOperation> = {}): CallOperation => ({
  id,
  same: hashOf('same'),
  status: 'running',
  holder: 'process',
  startedAt: clock.now(),
  expiresAt: clock.now() + 1_000,
  ...more,
});

describe('who runs calls', () => {
  it('says so once for many in a row, and takes it back at a beat without one, or when it ends', async () => {
    const time = manualClock();
    const store = createMemoryStore();
    const lease = vi.spyOn(store, 'lease');
    const options = { store, clock: time, emit() {} };
    const mine = createProcessLease({ ...options, holder: 'mine' });
    const other = createProcessLease({ ...options, holder: 'other' });
    for (let n = 0; n < 3; n++) {
      await mine.begin();
      mine.end();
    }
    expect(lease).toHaveBeenCalledOnce();
    expect(await other.isDead('mine')).toBe(false);
    await time.advance(2_000);
    expect(await other.isDead('mine')).toBe(true);
    await mine.begin();
    await time.advance(10_000);
    expect(await other.isDead('mine')).toBe(false);
    mine.end();
    await mine.close();
    expect(await other.isDead('mine')).toBe(true);
    expect(time.pending()).toBe(0);
    await store.close();
  });

  it('counts a call whose lease the store refused, and asks for it again', async () => {
    const store = createMemoryStore();
    const lease = vi.spyOn(store, 'lease').mockRejectedValueOnce(new Error('no disk'));
    const mine = createProcessLease({ store, clock: manualClock(), emit() {}, holder: 'mine' });
    await expect(mine.begin()).rejects.toThrow('no disk');
    await mine.begin();
    expect(lease).toHaveBeenCalledTimes(2);
    mine.end();
    mine.end();
    await mine.close();
    expect(await store.lease('mine', 'other', 1_000, 0)).toBe(true);
    await store.close();
  });
});

describe('the log of calls', () => {
  let store: Store;
  let log: OperationLog;
  beforeEach(() => {
    store = createMemoryStore();
    log = createOperationLog(store, clock);
  });
  afterEach(() => store.close());

  const ids = async () => (await log.read(key)).calls.map(({ id }) => id);

  it('keeps calls that came at the same time, and lets one claim a name', async () => {
    const seen = await log.read(key);
    await Promise.all(['a', 'b', 'c'].map(id => log.add(key, callOf(id), seen)));
    expect((await ids()).sort()).toEqual(['a', 'b', 'c']);
    const named = hashOf('named');
    const claims = await Promise.all(['a', 'b'].map(id => log.claim(named, callOf(id), { version: 0, calls: [] })));
    expect(claims.sort()).toEqual([false, true]);
  });

  it('changes and removes one without the others, and brings none back', async () => {
    for (const id of ['a', 'b']) await log.add(key, callOf(id), await log.read(key));
    await Promise.all([
      log.change(key, 'a', call => ({ ...call, status: 'done', reply: { isError: false, document: { n: 1 } } })),
      log.change(key, 'b', () => undefined),
      log.change(key, 'c', call => ({ ...call, lost: true })),
    ]);
    expect((await log.read(key)).calls).toMatchObject([{ id: 'a', status: 'done', reply: { document: { n: 1 } } }]);
    await log.change(key, 'a', () => undefined);
    expect(await log.read(key)).toEqual({ version: 0, calls: [] });
  });

  it('makes the changes of a record in their order, and writes none that changes nothing', async () => {
    await log.add(key, callOf('a'), await log.read(key));
    const swap = vi.spyOn(store, 'swapFact');
    const reply = { isError: false, document: { answer: 'four' } };
    const ended = log.change(key, 'a', call => ({ ...call, status: 'done', reply }));
    await Promise.all([ended, log.change(key, 'a', call => (call.status === 'running' ? undefined : call))]);
    expect(await ids()).toEqual(['a']);
    expect(swap).toHaveBeenCalledOnce();
  });

  it('leaves out at once what is to be forgotten, and removes it with the next change or when it is settled', async () => {
    for (const id of ['a', 'b', 'c']) await log.add(key, callOf(id), await log.read(key));
    const other = createOperationLog(store, clock);
    const stored = async () => (await other.read(key)).calls.map(({ id }) => id);
    log.forget(key, 'a');
    expect(await ids()).toEqual(['b', 'c']);
    expect(await stored()).toEqual(['a', 'b', 'c']);
    await log.change(key, 'b', call => ({ ...call, lost: true }));
    expect(await stored()).toEqual(['b', 'c']);
    log.forget(key, 'c');
    await log.add(key, callOf('d'), await log.read(key));
    expect(await stored()).toEqual(['b', 'd']);
    log.forget(key, 'b');
    await log.settle(true);
    expect(await stored()).toEqual(['d']);
  });

  it('tries again what the store refused to settle', async () => {
    await log.add(key, callOf('a'), await log.read(key));
    log.forget(key, 'a');
    vi.spyOn(store, 'swapFact').mockRejectedValueOnce(new Error('full'));
    await expect(log.settle()).rejects.toThrow('full');
    expect(await ids()).toEqual([]);
    await log.settle();
    expect((await createOperationLog(store, clock).read(key)).calls).toEqual([]);
  });

  it('forgets what is old, and all but the newest of many', async () => {
    for (let n = 0; n < 12; n++) await log.add(key, callOf(`${n}`), await log.read(key));
    expect(await ids()).toEqual(['4', '5', '6', '7', '8', '9', '10', '11']);
    await clock.advance(1_000);
    expect(await ids()).toEqual([]);
  });

  it('takes a record that was damaged for none', async () => {
    await log.add(key, callOf('a', { status: 'done', reply: { isError: false, document: { answer: 'four' } } }), {
      version: 0,
      calls: [],
    });
    const name = `call/${key}`;
    const { value, version } = (await store.fact(name, clock.now()))!;
    const damaged = { ...value, body: String(value.body).replace('four', 'five') };
    await store.swapFact({ key: name, version, value: damaged, expiresAt: clock.now() + 500, now: clock.now() });
    expect((await log.read(key)).calls).toEqual([]);
    await log.add(key, callOf('b'), await log.read(key));
    expect(await ids()).toEqual(['b']);
  });
});
