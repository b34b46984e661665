import { describe, expect, test } from 'vitest';
import { operator } from '../../../src/server/access/caller.ts';
import { createCapacity, createRates } from '../../../src/server/access/limits.ts';
import { readJson } from '../../../src/server/mcp/lines.ts';

const never = new AbortController().signal;

describe('rates', () => {
  test('let a burst through, then as many as the minute holds', () => {
    let now = 0;
    const check = createRates({ perMinute: 60, burst: 3 }, { monotonic: () => now });
    expect([1, 2, 3].map(() => check('a'))).toEqual([undefined, undefined, undefined]);
    expect(check('a')).toMatchObject({ status: 429, class: 'rate', retryAfterSeconds: 1 });
    expect(check('b')).toBeUndefined();
    now = 1_000;
    expect(check('a')).toBeUndefined();
    expect(check('a')).toMatchObject({ status: 429 });
    now = 3_600_000;
    expect([1, 2, 3, 4].map(() => check('a')?.status)).toEqual([undefined, undefined, undefined, 429]);
  });

  test('count many messages in one as many, which pass together or not at all', () => {
    let now = 0;
    const check = createRates({ perMinute: 60, burst: 10 }, { monotonic: () => now });
    expect([check('a', 8), check('a', 3)]).toMatchObject([undefined, { status: 429, retryAfterSeconds: 1 }]);
    expect([check('a', 2), check('a', 1)]).toMatchObject([undefined, { status: 429 }]);
    now = 3_600_000;
    expect([check('a', 11), check('a', 10)]).toMatchObject([{ status: 413, class: 'batch' }, undefined]);
  });

  test('forget who was quiet longest, not who is refused', () => {
    const check = createRates({ perMinute: 1, burst: 1 }, { monotonic: () => 0 });
    check('busy');
    for (let at = 0; at < 30_000; at += 1) {
      check(`client-${at}`);
      if (at % 1_000 === 0) expect(check('busy')).toMatchObject({ status: 429 });
    }
    expect(check('client-0')).toBeUndefined();
  });
});

describe('capacity', () => {
  test('holds one caller’s calls to his share, and all to theirs', async () => {
    const capacity = createCapacity({ perCaller: 2, inAll: 3, queued: 10 });
    const leaves = [await capacity.enter('a', never), await capacity.enter('a', never)];
    const third = capacity.enter('a', never);
    const other = await capacity.enter('b', never);
    const more = capacity.enter('b', never);
    expect([capacity.running(), capacity.waiting()]).toEqual([3, 2]);
    leaves[0]?.();
    leaves[0]?.();
    (await third)();
    (await more)();
    other();
    leaves[1]?.();
    expect([capacity.running(), capacity.waiting(), capacity.callers()]).toEqual([0, 0, 0]);
  });

  test('lets others pass a caller whose share is used up', async () => {
    const capacity = createCapacity({ perCaller: 1, inAll: 2, queued: 10 });
    const leave = await capacity.enter('a', never);
    const waiting = [capacity.enter('a', never), capacity.enter('a', never)];
    (await capacity.enter('b', never))();
    leave();
    for (const turn of waiting) (await turn)();
    expect(capacity.running()).toBe(0);
  });

  test('refuses when too many wait, and takes the next once there is room', async () => {
    const capacity = createCapacity({ perCaller: 1, inAll: 1, queued: 1 });
    const leave = await capacity.enter('a', never);
    const second = capacity.enter('b', never);
    await expect(capacity.enter('c', never)).rejects.toMatchObject({
      details: { class: 'over_capacity', retryable: true, retryAfterSeconds: 5 },
    });
    leave();
    (await second)();
    (await capacity.enter('c', never))();
    expect(capacity.callers()).toBe(0);
  });

  test('begins many calls at once only as fast as they are worked off, and all of them', async () => {
    const capacity = createCapacity({ perCaller: 1_000, inAll: 1_000, queued: 0 });
    const turns = Array.from({ length: 200 }, (_, at) => capacity.enter(`caller-${at % 3}`, never));
    const atOnce = capacity.running();
    expect(atOnce).toBeGreaterThan(0);
    expect(atOnce).toBeLessThan(20);
    await new Promise(resolve => setImmediate(resolve));
    expect(capacity.running()).toBeGreaterThan(atOnce);
    expect(capacity.running()).toBeLessThan(60);
    const leaves = await Promise.all(turns);
    expect([capacity.running(), capacity.waiting()]).toEqual([200, 0]);
    for (const leave of leaves) leave();
    expect([capacity.running(), capacity.callers()]).toEqual([0, 0]);
  });

  test.each([1, 2, 50])('lets one call of another caller pass the many that %i others sent before it', async others => {
    const capacity = createCapacity({ perCaller: 1_000, inAll: 1_000, queued: 1_000 });
    const begun: string[] = [];
    const enter = (caller: string) => capacity.enter(caller, never).then(() => begun.push(caller));
    const all = Array.from({ length: 300 }, (_, at) => enter(`busy-${at % others}`));
    all.push(enter('quiet'));
    await Promise.all(all);
    expect(begun.indexOf('quiet')).toBeLessThan(60);
    expect(begun).toHaveLength(301);
  });

  test('gives up the place of a call that is cancelled while it waits', async () => {
    const capacity = createCapacity({ perCaller: 1, inAll: 1, queued: 5 });
    const leave = await capacity.enter('a', never);
    const cancel = new AbortController();
    const second = capacity.enter('a', cancel.signal);
    cancel.abort();
    await expect(second).rejects.toMatchObject({ kind: 'cancelled' });
    expect(capacity.waiting()).toBe(0);
    leave();
    expect(capacity.running()).toBe(0);
    await expect(capacity.enter('a', cancel.signal)).rejects.toMatchObject({ kind: 'cancelled' });
  });

  test('sheds calls that the memory would not bear: first those of who has most under way', async () => {
    const megabyte = 1_048_576;
    const capacity = createCapacity({ perCaller: 1_000, inAll: 1_000, queued: 1_000, bytes: 30 * megabyte });
    const enter = (caller: string, bytes = 0) => capacity.enter(caller, never, bytes);
    const greedy = await Promise.allSettled(Array.from({ length: 100 }, () => enter('greedy')));
    const leaves = greedy.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []));
    expect(leaves).toHaveLength(20);
    expect(greedy.at(-1)).toMatchObject({
      reason: { details: { class: 'over_capacity', retryable: true, retryAfterSeconds: 5 } },
    });
    const others = await Promise.all(['a', 'b', 'c', 'a', 'b', 'c'].map(name => enter(name)));
    await expect(enter('greedy')).rejects.toMatchObject({ details: { class: 'over_capacity' } });
    // Arguments count, and where there is no room at all, also for who has little.
    await expect(enter('d', megabyte)).rejects.toMatchObject({ details: { class: 'over_capacity' } });
    for (const leave of [...leaves, ...others]) leave();
    (await enter('d', 100 * megabyte))();
    expect(await Promise.all(Array.from({ length: 20 }, () => enter('greedy')))).toHaveLength(20);
  });

  test('counts what comes before it is a call, in equal shares beside the calls', async () => {
    const capacity = createCapacity({ perCaller: 9, inAll: 9, queued: 9, bytes: 3_000_000 });
    const busy = {
      details: expect.objectContaining({ class: 'over_capacity', retryable: true, retryAfterSeconds: 5 }),
    };
    const alone = capacity.reserve('a');
    // Piece by piece, too, one that is alone is never refused.
    for (let piece = 0; piece < 9; piece += 1) alone.more(1_000_000);
    const other = capacity.reserve('b');
    other.more(65_536);
    expect(() => other.more(1)).toThrow(expect.objectContaining(busy));
    await expect(capacity.enter('b', never)).rejects.toMatchObject(busy);
    alone.release();
    alone.release();
    const [one, another] = [capacity.reserve('a'), capacity.reserve('c')];
    one.more(1_500_000);
    expect(() => another.more(2_900_000)).toThrow(expect.objectContaining(busy));
    another.more(900_000);
    expect(() => one.more(10_000)).toThrow(expect.objectContaining(busy));
    for (const each of [one, another, other]) each.release();
    (await capacity.enter('d', never, 9_000_000))();
  });

  test('gives strangers a little memory of their own, in equal shares by address, and takes none of it from who is known', async () => {
    const capacity = createCapacity({ perCaller: 9, inAll: 9, queued: 9, bytes: 3_000_000 });
    const send = (address: string) => {
      try {
        capacity.reserveInput(undefined, address).more(65_536);
        return true;
      } catch {
        return false;
      }
    };
    const taken = Array.from({ length: 100 }, () => send('1')).filter(Boolean).length;
    expect(taken).toBe(43);
    expect(send('2')).toBe(true);
    for (let address = 3; address < 1_000; address += 1) send(`${address}`);
    expect(send('other')).toBe(false);
    (await capacity.enter('known', never, 200_000))();
    const known = { ...operator, name: 'known' };
    capacity.reserveInput(known).more(1_990_000);
    expect(() => capacity.reserveInput(known).more(100_000)).toThrow(/busy/);
    // What is small comes through, and what others have is left to them.
    capacity.reserveInput(known).more(1_000);
    capacity.reserveInput({ ...operator, name: 'other' }).more(1_000_000);
  });

  test('counts right after 10,000 refused calls', async () => {
    const capacity = createCapacity({ perCaller: 1, inAll: 1, queued: 0 });
    const leave = await capacity.enter('a', never);
    const all = Array.from({ length: 10_000 }, (_, at) => capacity.enter(`caller-${at}`, never));
    expect((await Promise.allSettled(all)).every(({ status }) => status === 'rejected')).toBe(true);
    leave();
    expect([capacity.running(), capacity.waiting(), capacity.callers()]).toEqual([0, 0, 0]);
  });
});

describe('the JSON of a body', () => {
  test('is read', () => {
    expect(readJson('{"a":["[[[[",{"b":"\\"]"}]}')).toEqual({ value: { a: ['[[[[', { b: '"]' }] } });
    expect(readJson(`"${'['.repeat(1_000)}"`)).toEqual({ value: '['.repeat(1_000) });
  });

  test.each([['['], ['{"a":']])('is refused when it is 100,000 levels of %s deep', opening => {
    const closing = opening === '[' ? ']' : '}';
    const deep = `${opening.repeat(100_000)}1${closing.repeat(100_000)}`;
    expect(readJson(deep)).toMatchObject({ refusal: { status: 400, class: 'depth' } });
  });

  test('is refused without a word of it when it is none', () => {
    expect(JSON.stringify(readJson('{"secret": sk-12'))).not.toContain('sk-12');
    expect(readJson('')).toMatchObject({ refusal: { class: 'json' } });
  });
});
