import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { manualClock } from '../../support/clock.ts';
import { helloFrames, openFrames } from '../../support/frame-client.ts';
import { replyOf, scriptedHost } from '../../support/scripted-host.ts';
import { startWsDoor, type TestDoor } from '../../support/ws-door.ts';

let door: TestDoor;

afterEach(async () => {
  await door.close();
  expect(door.errors).toEqual([]);
});

const large = (bytes: number) =>
  scriptedHost(async ({ arguments: args }) => replyOf({ args: JSON.stringify(args), text: 'é'.repeat(bytes / 2) }));

describe('a connection', () => {
  it('is pinged every 45 seconds, and ended after 120 without a sign of life', async () => {
    const clock = manualClock();
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', clock });
    const client = await helloFrames(door.url);
    for (const count of [1, 2, 3]) {
      await clock.advance(45_000);
      await expect.poll(() => client.pings()).toBe(count);
      // The answer to it has to be heard before time goes on.
      client.send({ op: 'ping', request_id: `after ${count}` });
      await client.next('pong', `after ${count}`);
    }
    client.socket.pause();
    await clock.advance(119_999);
    expect(door.door.connections()).toBe(1);
    await clock.advance(1);
    await expect.poll(() => door.door.connections()).toBe(0);
    client.socket.terminate();
  });

  it('is neither pinged nor ended where pings are turned off', async () => {
    const clock = manualClock();
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', clock, rules: { pingMs: 0 } });
    const client = await helloFrames(door.url);
    await clock.advance(3_600_000);
    client.send({ op: 'ping', request_id: 'late' });
    await client.next('pong', 'late');
    expect([client.pings(), door.door.connections()]).toEqual([0, 1]);
    client.socket.terminate();
  });

  it('gets a large result in parts of one message, and small ones beside it in their order', async () => {
    door = await startWsDoor({ host: large(3_000_000), root: '/tmp' });
    const client = await helloFrames(door.url);
    for (const id of ['1', '2']) client.call(id, 'echo', { id });
    client.send({ op: 'ping', request_id: 'small' });
    const results = await Promise.all(['1', '2'].map(id => client.result(id)));
    expect(results.map(({ document }) => document.text.length)).toEqual([1_500_000, 1_500_000]);
    await client.next('pong', 'small');
  });

  it('that does not read is read no more, then ended; its results wait for its client', async () => {
    let calls = 0;
    const host = scriptedHost(async () => replyOf({ call: ++calls, text: 'é'.repeat(200_000) }));
    door = await startWsDoor({ host, root: '/tmp', options: { stallMs: 2_000 } });
    const client = await helloFrames(door.url, { session: 'slow' });
    client.socket.pause();
    for (let n = 0; n < 16; n += 1) client.call(`${n}`, 'echo', { n });
    await expect.poll(() => door.door.connections()).toBe(0);
    await expect.poll(() => door.capacity.running()).toBe(0);
    const made = calls;
    expect(made).toBeGreaterThan(3);
    client.socket.terminate();
    const again = await helloFrames(door.url, { session: 'slow' });
    expect(again.ack.resumed).toBe(true);
    for (let n = 0; n < made; n += 1) {
      if (again.all('call_tool_res', `${n}`).length === 0) again.call(`${n}`, 'echo', { n });
      expect((await again.result(`${n}`)).document.text).toHaveLength(200_000);
    }
    expect(calls).toBe(made);
  });

  it('that takes not one byte of a small result is ended after the stall time', async () => {
    const clock = manualClock();
    // More than all the buffers of the system between the two.
    door = await startWsDoor({ host: large(12_000_000), root: '/tmp', clock, rules: { maxBytes: 1e9 } });
    const client = await helloFrames(door.url);
    client.socket.pause();
    client.call('1', 'echo');
    await expect.poll(() => door.capacity.running()).toBe(0);
    await clock.advance(29_000);
    expect(door.door.connections()).toBe(1);
    // The buffers of the system may still have taken some of it meanwhile.
    const left = async () => {
      await clock.advance(1_000);
      return door.door.connections();
    };
    await expect.poll(left).toBe(0);
    client.socket.terminate();
  });

  it('that sends faster than its caller may is read more slowly, and loses nothing', async () => {
    let admitted = 0;
    const refusal = { status: 429, class: 'rate', message: '', next: '', retryAfterSeconds: 0.2 } as const;
    const admit = () => (++admitted % 10 === 0 ? refusal : undefined);
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', options: { admit } });
    const client = await helloFrames(door.url);
    const began = performance.now();
    for (let n = 0; n < 40; n += 1) {
      client.send({ op: 'ping', request_id: `${n}` });
      await client.next('pong', `${n}`);
    }
    expect(performance.now() - began).toBeGreaterThan(550);
  });

  it('whose message the memory does not bear beside that of another is told to come again, and the other is served', async () => {
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', capacity: { bytes: 1_000_000 } });
    const [first, second] = [await helloFrames(door.url), await helloFrames(door.url)];
    const text = JSON.stringify({
      op: 'call_tool',
      request_id: '1',
      name: 'echo',
      arguments: { x: 'x'.repeat(700_000) },
    });
    first.socket.send(text.slice(0, 690_000), { fin: false });
    // What is small comes through, and so the part before it has come.
    first.socket.ping();
    await once(first.socket, 'pong');
    second.send({ op: 'ping', request_id: 'small' });
    await second.next('pong', 'small');
    second.socket.send(text.slice(0, 690_000), { fin: false });
    expect(await second.closed).toEqual({ code: 1013, reason: expect.stringContaining('busy') });
    first.socket.send(text.slice(690_000));
    expect((await first.result('1')).error).toBeUndefined();
    // Nothing of it is kept, nor of the one that was closed.
    const third = await helloFrames(door.url);
    third.raw(text);
    expect((await third.result('1')).error).toBeUndefined();
  });

  it('holds no more with others of its token than one may, so that the call of another token is served', async () => {
    const tokens = { 'token-of-ann': 'ann', 'token-of-bob': 'bob' };
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', tokens, capacity: { bytes: 3_000_000 } });
    const part = `{"op":"call_tool","arguments":{"x":"${'x'.repeat(600_000)}`;
    const outcome = async () => {
      const client = await helloFrames(door.url, { token: 'token-of-ann' });
      client.socket.send(part, { fin: false });
      client.socket.ping();
      return Promise.race([once(client.socket, 'pong').then(() => 'open'), client.closed]);
    };
    expect([await outcome(), await outcome(), await outcome()]).toEqual(['open', 'open', 'open']);
    const busy = { code: 1013, reason: expect.stringContaining('busy') };
    expect(await Promise.all(Array.from({ length: 5 }, outcome))).toEqual(Array(5).fill(expect.objectContaining(busy)));
    const other = await helloFrames(door.url, { token: 'token-of-bob' });
    other.call('1', 'echo', { x: 'x'.repeat(10_000) });
    expect((await other.result('1')).error).toBeUndefined();
  });

  it('is closed with 1008 when one message takes too long, however fast it comes', async () => {
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', options: { requestMs: 300 } });
    const client = await helloFrames(door.url);
    client.socket.send('{', { fin: false });
    const more = setInterval(() => client.socket.send(' '.repeat(5_000), { fin: false }), 50);
    try {
      expect(await client.closed).toEqual({ code: 1008, reason: 'the message takes too long' });
    } finally {
      clearInterval(more);
    }
  });

  it('is closed with 1001 when the server goes away, after what waits for it', async () => {
    door = await startWsDoor({ host: large(2_000_000), root: '/tmp' });
    const client = await helloFrames(door.url);
    client.call('1', 'echo');
    await client.next('call_tool_ack', '1');
    const drained = door.admission.shut(10_000);
    client.call('2', 'echo', { late: true });
    await drained;
    await door.door.close();
    expect((await client.result('1')).document.text).toHaveLength(1_000_000);
    expect(await client.closed).toMatchObject({ code: 1001 });
    expect(door.door.connections()).toBe(0);
  });

  it('takes no new call once the server drains: OVER_CAPACITY with a time to come back', async () => {
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp' });
    const client = await helloFrames(door.url);
    await door.admission.shut(10);
    client.call('1', 'echo');
    expect(await client.result('1')).toMatchObject({ error: { code: 'OVER_CAPACITY', retry_after: 5 } });
    client.send({ op: 'health' });
    expect((await client.next('health_res')).health.draining).toBe(true);
  });
});

describe('connections that say no hello', () => {
  /** One that says nothing, from an address of its own of this machine; resolves once it is open. */
  async function silent(address: string): Promise<{ closed: Promise<number> }> {
    const socket = new WebSocket(door.url, { localAddress: address });
    const closed = new Promise<number>(resolve => socket.on('close', resolve));
    socket.on('error', () => {});
    await once(socket, 'open');
    return { closed };
  }

  it('make room for others: the oldest of an address that has its share goes, then the oldest of who has most', async () => {
    const tokens = { 'the-token-of-alice-1': 'alice', 'the-token-of-bob-001': 'bob' };
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', tokens });
    const opened: Awaited<ReturnType<typeof silent>>[] = [];
    const open = async (address: string, count: number) => {
      for (let at = 0; at < count; at += 1) opened.push(await silent(address));
    };
    await open('127.0.0.2', 17);
    expect(await opened[0]?.closed).toBe(1013);
    for (const last of [3, 4, 5]) await open(`127.0.0.${last}`, 16);
    await expect.poll(() => door.door.connections(), { timeout: 15_000 }).toBe(64);
    const client = await helloFrames(door.url, { token: 'the-token-of-alice-1' });
    expect(client.ack.ok).toBe(true);
    expect(await opened[1]?.closed).toBe(1013);
    await open('127.0.0.6', 2);
    expect(await Promise.race([opened[2]?.closed, opened[17]?.closed])).toBe(1013);
    client.send({ op: 'ping' });
    await client.next('pong');
  });
});

describe('connections of one token', () => {
  it('leave room for those of others, whether it was said before the hello or in it', async () => {
    const tokens = { 'the-token-of-alice-1': 'alice', 'the-token-of-bob-001': 'bob' };
    const [alice, bob] = Object.keys(tokens);
    const options = { perCaller: () => 2 };
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp', tokens, options, rules: { maxConnections: 4 } });
    const headers = { Authorization: `Bearer ${alice}` };
    const [first] = [await helloFrames(door.url, { token: alice }), await helloFrames(door.url, { headers })];
    const third = await openFrames(door.url);
    third.send({ op: 'hello', token: alice });
    expect(await third.closed).toMatchObject({ code: 1013, reason: expect.stringContaining('Your token') });
    await expect(openFrames(door.url, { headers })).rejects.toThrow('429');
    expect((await helloFrames(door.url, { token: bob })).ack.ok).toBe(true);
    await first.close();
    await expect.poll(() => door.door.connections(), { timeout: 15_000 }).toBe(2);
    expect((await helloFrames(door.url, { token: alice })).ack.ok).toBe(true);
  });
});

describe('a request for a WebSocket', () => {
  const ask = (lines: string[]) =>
    new Promise<string>(resolve => {
      const socket = connect(door.port, '127.0.0.1');
      let text = '';
      socket.on('data', data => {
        text += data;
      });
      socket.on('close', () => resolve(text));
      socket.on('error', () => {});
      socket.write([...lines, 'Host: 127.0.0.1', 'Connection: Upgrade', 'Upgrade: websocket', '', ''].join('\r\n'));
    });

  it.each([
    ['without a key', 400, ['GET /ws HTTP/1.1', 'Sec-WebSocket-Version: 13']],
    [
      'of another version',
      426,
      ['GET /ws HTTP/1.1', 'Sec-WebSocket-Version: 7', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
    ],
    [
      'that is no GET',
      400,
      ['POST /ws HTTP/1.1', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
    ],
  ])('%s is answered with %i and what to do', async (_what, status, lines) => {
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp' });
    const answer = await ask(lines);
    expect(answer).toContain(`HTTP/1.1 ${status} `);
    // Which version is spoken here.
    expect(answer.includes('sec-websocket-version: 13\r\n')).toBe(status === 426);
    expect(answer).toContain('"class":"handshake"');
    expect(door.door.connections()).toBe(0);
  });

  it('may name other subprotocols beside ours', async () => {
    door = await startWsDoor({ host: scriptedHost(), root: '/tmp' });
    const key = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
    const asked = ask(['GET /ws HTTP/1.1', ...key, 'Sec-WebSocket-Protocol: soap, mcp']);
    await expect.poll(() => door.door.connections()).toBe(1);
    await door.door.close();
    expect(await asked).toMatch(/^HTTP\/1\.1 101 .*\r\nSec-WebSocket-Protocol: mcp\r\n/s);
  });
});
