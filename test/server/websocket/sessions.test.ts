import { afterEach, describe, expect, it } from 'vitest';
import type { ToolReply, ToolRequest } from '../../../src/core/tool-host.ts';
import { manualClock } from '../../support/clock.ts';
import { codeOf, helloFrames, openFrames } from '../../support/frame-client.ts';
import { failureOf, replyOf, scriptedHost } from '../../support/scripted-host.ts';
import { startWsDoor, type TestDoor } from '../../support/ws-door.ts';

let door: TestDoor;

afterEach(async () => {
  await door.close();
  expect(door.errors).toEqual([]);
});

const alice = 'a-token-of-alice-0001';
const bob = 'a-token-of-bob-000001';

/** A host that joins calls of one name, as the product does, and lets a call go on without its client. */
function sharingHost() {
  const running = new Map<string, PromiseWithResolvers<ToolReply>>();
  const requests: ToolRequest[] = [];
  const signals: AbortSignal[] = [];
  let delivered = 0;
  const host = scriptedHost(async (request, signal) => {
    requests.push(request);
    signals.push(signal);
    const key = `${request.principal.owner} ${request.session?.idempotencyKey}`;
    const work = running.get(key) ?? Promise.withResolvers<ToolReply>();
    running.set(key, work);
    const reply = await work.promise;
    return {
      ...reply,
      delivered() {
        delivered += 1;
      },
    };
  });
  return {
    host,
    requests,
    signals,
    running,
    delivered: () => delivered,
    came: (count: number) => expect.poll(() => requests).toHaveLength(count),
    answer(reply: ToolReply = replyOf({ said: 'yes' })) {
      for (const { resolve } of running.values()) resolve(reply);
      running.clear();
    },
  };
}

/** A client has lost his connection while his call runs. */
async function lostInCall(shared = sharingHost()) {
  door = await startWsDoor({ host: shared.host, root: '/tmp' });
  const first = await helloFrames(door.url, { session: 'editor' });
  first.call('1', 'slow', { n: 1 });
  await shared.came(1);
  first.socket.terminate();
  await expect.poll(() => shared.requests[0]?.session?.gone.aborted).toBe(true);
  return shared;
}

describe('a client that comes back', () => {
  it('gets what ended while he was away, once, and again when he asks again', async () => {
    const { answer, delivered, requests } = await lostInCall();
    answer();
    await expect.poll(() => door.capacity.running()).toBe(0);
    expect(delivered()).toBe(0);
    const second = await helloFrames(door.url, { session: 'editor' });
    expect(second.ack).toMatchObject({ resumed: true, session_id: 'editor' });
    expect((await second.result('1')).document).toEqual({ said: 'yes' });
    expect(second.frames[0]?.op).toBe('hello_ack');
    expect(delivered()).toBe(1);
    second.call('1', 'slow', { n: 1 });
    expect(await second.result('1', 1)).toMatchObject({ from_cache: true, document: { said: 'yes' } });
    await second.close();
    const third = await helloFrames(door.url, { session: 'editor' });
    third.send({ op: 'ping' });
    await third.next('pong');
    expect(third.all('call_tool_res')).toEqual([]);
    expect(requests).toHaveLength(1);
  });

  it('goes on with what still runs: it is told to the host, tells progress, and ends on the new connection', async () => {
    const { answer, came, requests } = await lostInCall();
    const second = await helloFrames(door.url, { session: 'editor' });
    await came(2);
    expect(requests[1]?.session).toMatchObject({ idempotencyKey: requests[0]?.session?.idempotencyKey });
    expect(requests[1]?.session?.gone.aborted).toBe(false);
    await second.next('progress', '1');
    const { timeout } = await second.next('call_tool_ack', '1');
    expect(timeout).toBeGreaterThan(80);
    expect(timeout).toBeLessThan(90);
    second.call('1', 'slow', { n: 1 });
    await second.next('progress', '1', 1);
    expect(second.all('error')).toEqual([]);
    second.call('1', 'slow', { n: 1 });
    expect(codeOf(await second.next('error', '1'))).toBe('DUPLICATE');
    expect(door.capacity.running()).toBe(1);
    answer();
    expect((await second.result('1')).document).toEqual({ said: 'yes' });
    expect(second.all('call_tool_res', '1')).toHaveLength(1);
  });

  it('has his call ended like the others when the server goes away', async () => {
    const { answer, came, signals } = await lostInCall();
    await helloFrames(door.url, { session: 'editor' });
    await came(2);
    const drained = door.admission.shut(1);
    await expect.poll(() => signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    answer();
    await drained;
  });

  it('does not jump the line with what waits for its place', async () => {
    const { host, answer, came, requests } = sharingHost();
    door = await startWsDoor({ host, root: '/tmp', capacity: { perCaller: 1 } });
    const first = await helloFrames(door.url, { session: 'editor' });
    for (const n of [1, 2]) first.call(`${n}`, 'slow', { n });
    await came(1);
    first.socket.terminate();
    await expect.poll(() => requests[0]?.session?.gone.aborted).toBe(true);
    const second = await helloFrames(door.url, { session: 'editor' });
    await came(2);
    expect(requests.map(({ arguments: args }) => args.n)).toEqual([1, 1]);
    answer();
    await second.result('1');
    await came(3);
    expect(requests[2]).toMatchObject({ arguments: { n: 2 } });
    expect(requests[2]?.session?.gone.aborted).toBe(false);
    answer();
    await second.result('2');
  });

  it('hears of a failure that he missed, and may send the call again', async () => {
    const { host, answer, came } = sharingHost();
    door = await startWsDoor({ host, root: '/tmp' });
    const first = await helloFrames(door.url, { session: 'editor' });
    first.call('1', 'slow');
    await came(1);
    first.socket.terminate();
    await expect.poll(() => door.door.connections()).toBe(0);
    answer(failureOf('API_ERROR', 'timeout'));
    await expect.poll(() => door.capacity.running()).toBe(0);
    const second = await helloFrames(door.url, { session: 'editor' });
    expect(codeOf(await second.result('1'))).toBe('PROVIDER_ERROR');
    second.call('1', 'slow');
    await came(2);
    answer();
    expect((await second.result('1', 1)).document).toEqual({ said: 'yes' });
  });

  it('takes his session over from a connection that is still open', async () => {
    const { host, answer, came, requests } = sharingHost();
    door = await startWsDoor({ host, root: '/tmp' });
    const first = await helloFrames(door.url, { session: 'editor' });
    first.call('1', 'slow');
    await came(1);
    const second = await helloFrames(door.url, { session: 'editor' });
    expect(await first.closed).toMatchObject({ code: 1000, reason: expect.stringContaining('took this session over') });
    expect(requests[0]?.session?.gone.aborted).toBe(false);
    answer();
    expect((await second.result('1')).document).toEqual({ said: 'yes' });
    expect(door.door.sessions()).toBe(1);
  });

  it('finds nothing after ten minutes', async () => {
    const clock = manualClock();
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', clock });
    const first = await helloFrames(door.url, { session: 'editor' });
    first.call('1', 'echo');
    await first.result('1');
    await first.close();
    await expect.poll(() => door.door.connections()).toBe(0);
    await clock.advance(599_999);
    expect(door.door.sessions()).toBe(1);
    await clock.advance(1);
    expect(door.door.sessions()).toBe(0);
    expect(clock.pending()).toBe(0);
    const second = await helloFrames(door.url, { session: 'editor' });
    expect(second.ack.resumed).toBe(false);
  });
});

describe('sessions of two owners', () => {
  it('are two, whatever their ids: neither sees, cancels, joins or gets what is the other’s', async () => {
    const { host, answer, came, signals, requests } = sharingHost();
    door = await startWsDoor({
      host,
      root: '/tmp',
      capacity: { perCaller: 1 },
      tokens: { [alice]: 'alice', [bob]: 'bob' },
    });
    const hers = await helloFrames(door.url, { token: alice, session: 'editor' });
    hers.call('1', 'slow', { n: 1 });
    await came(1);
    const his = await helloFrames(door.url, { token: bob, session: 'editor' });
    expect(his.ack).toMatchObject({ ok: true, resumed: false });
    his.send({ op: 'cancel', request_id: '1' });
    expect(await his.next('cancelled', '1')).toMatchObject({ running: false });
    expect(signals[0]?.aborted).toBe(false);
    his.call('1', 'slow', { n: 1 });
    await came(2);
    expect(requests.map(({ principal }) => principal.owner)).toEqual(['alice', 'bob']);
    expect(requests[0]?.session?.idempotencyKey).not.toBe(requests[1]?.session?.idempotencyKey);
    answer();
    expect(await his.result('1')).not.toHaveProperty('from_inflight');
    await hers.result('1');
    expect(hers.all('call_tool_res')).toHaveLength(1);
    await hers.close();
    const again = await helloFrames(door.url, { token: bob, session: 'editor' });
    again.call('2', 'slow', { n: 1 });
    await came(3);
    expect(again.all('call_tool_res')).toEqual([]);
    answer();
    await again.result('2');
  });

  it('of one token differ by their project', async () => {
    door = await startWsDoor({
      host: scriptedHost(),
      root: '/tmp',
      options: { productOf: async (_caller, root = '/tmp') => ({ host: scriptedHost(), root, instructions: '' }) },
    });
    const one = await helloFrames(door.url, { session: 'editor', root: '/tmp/one' });
    const two = await helloFrames(door.url, { session: 'editor', root: '/tmp/two' });
    expect(two.ack.resumed).toBe(false);
    one.send({ op: 'ping' });
    await one.next('pong');
    expect(door.door.sessions()).toBe(2);
  });
});

describe('a token that is replaced', () => {
  const next = 'a-token-of-alice-0002';

  it('holds no more: other connections of its caller have to say the new one', async () => {
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', tokens: { [alice]: 'alice', [bob]: 'bob' } });
    const [client, other, stranger] = [
      await helloFrames(door.url, { token: alice }),
      await helloFrames(door.url, { token: alice }),
      await helloFrames(door.url, { token: bob }),
    ];
    for (const [id, params] of Object.entries({
      missing: { old: alice },
      wrong: { old: next, new: next },
      anothers: { old: bob, new: next },
      short: { old: alice, new: 'short' },
      same: { old: alice, new: alice },
    })) {
      client.send({ op: 'rotate_token', request_id: id, ...params });
    }
    const told = async (id: string) => (await client.next('rotate_token_res', id)).error;
    expect(await told('missing')).toBe('missing_params');
    expect([await told('wrong'), await told('anothers')]).toEqual(['unauthorized', 'unauthorized']);
    expect([await told('short'), await told('same')]).toEqual(['invalid_token', 'invalid_token']);
    client.send({ op: 'rotate_token', request_id: 'right', old: alice, new: next });
    expect(await client.next('rotate_token_res', 'right')).toEqual({
      op: 'rotate_token_res',
      request_id: 'right',
      ok: true,
    });
    expect(await other.closed).toMatchObject({ code: 4003 });
    for (const each of [client, stranger]) {
      each.send({ op: 'ping' });
      await each.next('pong');
    }
    const late = await openFrames(door.url);
    late.send({ op: 'hello', token: alice });
    expect(await late.closed).toMatchObject({ code: 4003 });
    expect((await helloFrames(door.url, { token: next })).ack.ok).toBe(true);
  });
});

describe('too many sessions', () => {
  it('make room by the caller’s own that was away longest, and never by another’s', async () => {
    door = await startWsDoor({
      host: scriptedHost(),
      root: '/tmp',
      tokens: { [alice]: 'alice', [bob]: 'bob' },
      rules: { maxConnections: 2 },
    });
    for (const session of ['one', 'two']) {
      const client = await helloFrames(door.url, { token: alice, session: session.repeat(2) });
      client.call('1', 'echo');
      await client.result('1');
      await client.close();
    }
    await expect.poll(() => door.door.connections()).toBe(0);
    const his = await openFrames(door.url);
    his.send({ op: 'hello', token: bob });
    expect(await his.closed).toMatchObject({ code: 1013 });
    expect(await his.next('hello_ack')).toMatchObject({ ok: false, error: 'over_capacity' });
    const hers = await helloFrames(door.url, { token: alice, session: 'three' });
    expect(hers.ack.ok).toBe(true);
    expect(door.door.sessions()).toBe(2);
    await hers.close();
    // A session with nothing in it is not kept.
    await expect.poll(() => door.door.sessions()).toBe(1);
    expect((await helloFrames(door.url, { token: alice, session: 'twotwo' })).ack.resumed).toBe(true);
  });
});
