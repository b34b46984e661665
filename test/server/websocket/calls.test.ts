import { afterEach, describe, expect, it } from 'vitest';
import type { ToolReply, ToolRequest } from '../../../src/core/tool-host.ts';
import { manualClock } from '../../support/clock.ts';
import { codeOf, type FrameClient, helloFrames } from '../../support/frame-client.ts';
import { failureOf, replyOf, scriptedHost } from '../../support/scripted-host.ts';
import { startWsDoor, type TestDoor } from '../../support/ws-door.ts';

let door: TestDoor;

afterEach(async () => {
  await door.close();
  expect(door.errors).toEqual([]);
});

interface Asked {
  request: ToolRequest;
  signal: AbortSignal;
  answer(reply?: ToolReply): void;
}

/** A host whose calls wait for the test to answer them; each ends as cancelled when it is. */
function waitingHost() {
  const asked: Asked[] = [];
  const host = scriptedHost(
    (request, signal) =>
      new Promise(resolve => {
        signal.addEventListener('abort', () => resolve(failureOf('CANCELLED', 'cancelled')), { once: true });
        asked.push({
          request,
          signal,
          answer: (reply = replyOf({ said: typeof request.arguments.n === 'number' ? request.arguments.n : 'yes' })) =>
            resolve(reply),
        });
      }),
  );
  return { host, asked, came: (count: number) => expect.poll(() => asked).toHaveLength(count) };
}

async function start(given: Partial<Parameters<typeof startWsDoor>[0]> = {}): Promise<FrameClient> {
  door = await startWsDoor({ host: scriptedHost(), root: '/tmp', ...given });
  return helloFrames(door.url, { session: 'editor' });
}

describe('ops', () => {
  it('lists the tools, tells its health, answers a ping, and says which op it does not know', async () => {
    const client = await start({ capacity: { inAll: 9 } });
    for (const op of ['list_tools', 'health', 'ping', 'dance']) client.send({ op, request_id: op });
    expect((await client.next('list_tools_res', 'list_tools')).tools).toEqual([
      { name: 'echo', description: 'The tool echo.', inputSchema: { type: 'object', properties: {} } },
      expect.objectContaining({ name: 'slow' }),
    ]);
    expect((await client.next('health_res', 'health')).health).toEqual({
      t: expect.any(Number),
      sessions: 1,
      connections: 1,
      global_capacity: 9,
      global_inflight: 0,
      global_waiting: 0,
      draining: false,
    });
    expect((await client.next('pong', 'ping')).t).toBeGreaterThan(1_700_000_000);
    expect(await client.next('error', 'dance')).toMatchObject({ message: 'Unknown op: dance' });
    client.send({ op: 'list_tools' });
    expect(await client.next('list_tools_res', undefined, 1)).not.toHaveProperty('request_id');
  });

  it.each([
    ['garbage', '\u0000{{{', 'invalid_json', 'json'],
    ['a number', '7', 'No "op"', 'frame'],
    ['an op of another type', '{"op":7}', 'No "op"', 'frame'],
    ['a cancel of nothing', '{"op":"cancel"}', 'request_id', 'frame'],
    [
      'JSON that is nested 100,000 deep',
      `{"op":"ping","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      'invalid_json',
      'depth',
    ],
    ['a request_id that is too long', `{"op":"ping","request_id":"${'x'.repeat(129)}"}`, 'request_id', 'frame'],
  ])('answers %s with INVALID_REQUEST and goes on', async (_what, text, message, kind) => {
    const client = await start();
    client.raw(text);
    const refused = await client.next('error');
    expect(refused).toMatchObject({
      message: expect.stringContaining(message),
      error: { code: 'INVALID_REQUEST', error_class: kind, detail: { next: expect.any(String) } },
    });
    client.send({ op: 'ping', request_id: 'after' });
    await client.next('pong', 'after');
  });

  it('ends a call that is none with its own result', async () => {
    const client = await start();
    client.send({ op: 'call_tool', name: 'echo', arguments: 'no object', request_id: 'bad' });
    expect(await client.next('call_tool_res', 'bad')).toMatchObject({
      error: { code: 'INVALID_REQUEST', tool: 'echo', message: expect.stringContaining('arguments') },
    });
    client.send({ op: 'call_tool', name: 'echo', request_id: 'good' });
    expect((await client.result('good')).document).toEqual({ echo: '{}' });
    client.send({ op: 'call_tool', name: 'echo' });
    const minted = await client.next('call_tool_res', undefined, 2);
    expect(minted.request_id).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('names the message whose request_id is a number in its error, as a text', async () => {
    const client = await start();
    client.send({ op: 'ping', request_id: 7 });
    expect(await client.next('error', '7')).toMatchObject({ message: expect.stringContaining('request_id') });
    client.send({ op: 'call_tool', name: 'echo', request_id: 8 });
    expect(await client.next('call_tool_res', '8')).toMatchObject({
      error: { code: 'INVALID_REQUEST', tool: 'echo', message: expect.stringContaining('expected string') },
    });
  });

  it('takes no binary message: 1003', async () => {
    const client = await start();
    client.socket.send(Buffer.from('{"op":"ping"}'));
    expect(await client.closed).toMatchObject({ code: 1003 });
  });

  it('takes no message beyond the limit: 1009', async () => {
    const client = await start({ options: { maxBodyBytes: 100_000 } });
    client.send({ op: 'ping', padding: 'x'.repeat(100_000) });
    expect(await client.closed).toMatchObject({ code: 1009 });
  });
});

describe('a call', () => {
  it('tells progress at once, is acknowledged when it has its place, and ends with outputs, text and latency', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    client.call('1', 'echo_EXAI-WS', { n: 1 });
    await came(1);
    expect(asked[0]?.request).toMatchObject({
      name: 'echo',
      arguments: { n: 1 },
      principal: { owner: 'local', root: '/tmp' },
      rateLimited: true,
    });
    asked[0]?.answer(replyOf({ said: 1, metadata: { provider_used: 'openai', queue_ms: 0 } }));
    const result = await client.result('1');
    expect(client.frames.map(({ op }) => op)).toEqual(['hello_ack', 'progress', 'call_tool_ack', 'call_tool_res']);
    expect(client.all('progress', '1')[0]).toMatchObject({ name: 'echo_EXAI-WS', note: 'waiting for a place' });
    expect(client.all('call_tool_ack', '1')[0]).toMatchObject({ accepted: true, timeout: 90, name: 'echo_EXAI-WS' });
    expect(result).toMatchObject({
      outputs: [{ type: 'text', text: expect.stringContaining('"said":1') }],
      text: result.outputs[0]?.text,
      metadata: {
        latency_metrics: {
          latency_ms: expect.any(Number),
          global_sem_wait_ms: expect.any(Number),
          provider_sem_wait_ms: 0,
          processing_ms: expect.any(Number),
          provider_name: 'openai',
        },
      },
    });
    expect(result).not.toHaveProperty('error');
  });

  it.each(['echo_EXAI-WS', 'echo-EXAI-WS', 'echo_EXAI_WS', 'echo-EXAI_WS', 'echo_polylogue'])(
    'is understood under the name %s',
    async name => {
      const names: string[] = [];
      const client = await start({
        host: scriptedHost(async request => {
          names.push(request.name);
          return replyOf({});
        }),
      });
      client.call('1', name);
      await client.result('1');
      expect(names).toEqual(['echo']);
    },
  );

  it('is understood as newer clients of the older server write it, and refused with its name where it is none', async () => {
    const client = await start({
      host: scriptedHost(async ({ name, arguments: { n } }) => replyOf({ name, n: Number(n) })),
    });
    client.send({ op: 'tool_call', request_id: '1', tool: { name: 'echo' }, arguments: { n: 1 } });
    expect((await client.result('1')).document).toMatchObject({ name: 'echo', n: 1 });
    client.send({ op: 'tool_call', request_id: '2', tool: { name: 5 } });
    expect(codeOf(await client.result('2'))).toBe('INVALID_REQUEST');
    client.send({ op: 'tool_call', request_id: '3', name: 'echo' });
    expect(codeOf(await client.result('3'))).toBe('INVALID_REQUEST');
  });

  it('leaves `text` out where older clients need none', async () => {
    const client = await start({ rules: { frames: { compatText: false } } });
    client.call('1', 'echo');
    expect(await client.result('1')).not.toHaveProperty('text');
  });

  it('tells every 8 seconds what it is at', async () => {
    const clock = manualClock();
    const { host, asked, came } = waitingHost();
    const client = await start({ host, clock });
    client.call('1', 'echo');
    await came(1);
    asked[0]?.request.onProgress?.({ progress: 1, message: 'asking openai' });
    await clock.advance(7_999);
    expect(client.all('progress', '1')).toHaveLength(1);
    await clock.advance(8_001);
    await client.next('progress', '1', 2);
    expect(client.all('progress', '1').map(({ note }) => note)).toEqual([
      'waiting for a place',
      'asking openai',
      'asking openai',
    ]);
    asked[0]?.answer();
    await client.result('1');
    await clock.advance(60_000);
    client.send({ op: 'ping' });
    await client.next('pong');
    expect(client.all('progress', '1')).toHaveLength(3);
  });

  it.each([
    ['quick', 90],
    ['files', 300],
    ['reasoning', 1_200],
  ] as const)('that is %s is ended with TIMEOUT after %i s', async (kind, seconds) => {
    const clock = manualClock();
    const { host, asked, came } = waitingHost();
    const rules = { pingMs: 1e9, silenceMs: 1e9, frames: { progressMs: 1e9 } };
    const client = await start({ host, clock, rules, options: { kindOf: async () => kind } });
    client.call('1', 'slow');
    await came(1);
    expect(await client.next('call_tool_ack', '1')).toMatchObject({ timeout: seconds });
    await clock.advance(seconds * 1_000 - 1);
    expect(asked[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(asked[0]?.signal.aborted).toBe(true);
    expect(await client.result('1')).toMatchObject({
      error: { code: 'TIMEOUT', tool: 'slow', error_class: 'ceiling' },
    });
  });

  it('may bring its own deadline, which wins', async () => {
    const clock = manualClock();
    const { host, asked, came } = waitingHost();
    const client = await start({ host, clock });
    client.call('1', 'slow', {}, { timeout: 2.5 });
    await came(1);
    expect(await client.next('call_tool_ack', '1')).toMatchObject({ timeout: 2.5 });
    await clock.advance(2_500);
    expect(codeOf(await client.result('1'))).toBe('TIMEOUT');
    client.call('2', 'slow', {}, { timeout: 100 });
    await came(2);
    await clock.advance(99_000);
    asked[1]?.answer();
    expect(await client.result('2')).not.toHaveProperty('error');
  });

  it('that is cancelled is cancelled below, and ends with CANCELLED', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    client.call('1', 'slow');
    await came(1);
    client.send({ op: 'cancel', request_id: '1' });
    expect(await client.next('cancelled', '1')).toMatchObject({ running: true });
    expect(codeOf(await client.result('1'))).toBe('CANCELLED');
    expect(asked[0]?.signal.aborted).toBe(true);
    client.send({ op: 'cancel', request_id: '1' });
    expect(await client.next('cancelled', '1', 1)).toMatchObject({ running: false });
    await expect.poll(() => door.capacity.running()).toBe(0);
  });

  it.each([
    ['TOOL_NOT_FOUND', 'unknown_tool', 'TOOL_NOT_FOUND'],
    ['INVALID_INPUT_FORMAT', 'validation', 'INVALID_REQUEST'],
    ['MISSING_PARAMETER', 'validation', 'INVALID_REQUEST'],
    ['MODEL_NOT_FOUND', 'unknown_model', 'INVALID_REQUEST'],
    ['THREAD_NOT_FOUND', 'thread', 'INVALID_REQUEST'],
    ['LIMIT', 'over_capacity', 'OVER_CAPACITY'],
    ['LIMIT', 'rate', 'OVER_CAPACITY'],
    ['LIMIT', 'cost', 'EXEC_ERROR'],
    ['CANCELLED', 'cancelled', 'CANCELLED'],
    ['API_ERROR', 'rate_limit', 'PROVIDER_ERROR'],
    ['SECURITY', 'security', 'EXEC_ERROR'],
    ['STORAGE', 'unavailable', 'EXEC_ERROR'],
    ['INTERNAL_SERVER_ERROR', 'bug', 'EXEC_ERROR'],
  ])('that fails with %s (%s) ends with %s, and its outputs', async (code, kind, expected) => {
    const client = await start({ host: scriptedHost(async () => failureOf(code, kind, { retry_after_s: 3 })) });
    client.call('1', 'echo');
    const { error, document } = await client.result('1');
    expect(error).toEqual({
      code: expected,
      error_class: kind,
      message: `It is ${kind}.`,
      tool: 'echo',
      detail: { code, class: kind, message: `It is ${kind}.`, next: 'Wait.', retry_after_s: 3 },
      retry_after: 3,
    });
    expect(document.status).toBe('error');
  });

  it('streams when it is asked to: chunks, then their end, then the result', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    client.call('plain', 'echo');
    client.call('live', 'echo', {}, { stream: true });
    await came(2);
    const [plain, live] = asked;
    expect(plain?.request.onText).toBeUndefined();
    for (const delta of ['Par', 'is', '.']) live?.request.onText?.(delta);
    live?.answer();
    plain?.answer();
    await client.result('live');
    const told = client.frames
      .filter(frame => 'request_id' in frame && frame.request_id === 'live')
      .map(({ op }) => op);
    expect(told.slice(-3)).toEqual(['stream_chunk', 'stream_complete', 'call_tool_res']);
    expect(
      client
        .all('stream_chunk', 'live')
        .map(({ chunk }) => chunk)
        .join(''),
    ).toBe('Paris.');
    await client.result('plain');
    expect(client.all('stream_complete', 'plain')).toEqual([]);
  });
});

describe('a stream', () => {
  const chunks = (client: Awaited<ReturnType<typeof start>>) =>
    client.all('stream_chunk', 'live').map(({ chunk }) => chunk);

  it('brings the first words at once, and gathers those that come right after them', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    client.call('live', 'echo', {}, { stream: true });
    await came(1);
    const [live] = asked;
    live?.request.onText?.('First ');
    await client.next('stream_chunk', 'live');
    expect(chunks(client)).toEqual(['First ']);
    const words = Array.from({ length: 300 }, (_, at) => `word${at} `);
    for (const word of words) {
      live?.request.onText?.(word);
      await new Promise(resolve => setImmediate(resolve));
    }
    live?.answer();
    await client.result('live');
    expect(chunks(client).join('')).toBe(`First ${words.join('')}`);
    expect(chunks(client).length).toBeLessThan(words.length / 3);
  });

  it('waits for no more where much is there, and for nothing at its end', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    client.call('live', 'echo', {}, { stream: true });
    await came(1);
    const [live] = asked;
    const much = 'x'.repeat(5_000);
    for (const text of ['First ', much, 'last']) live?.request.onText?.(text);
    live?.answer();
    await client.result('live');
    expect(chunks(client).join('')).toBe(`First ${much}last`);
  });
});

describe('calls of one session', () => {
  it('run 20 at a time on one socket, and end in whichever order they end', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    const ids = Array.from({ length: 20 }, (_, n) => `call-${n}`);
    for (const [n, id] of ids.entries()) client.call(id, 'slow', { n });
    await came(20);
    client.send({ op: 'ping', request_id: 'meanwhile' });
    await client.next('pong', 'meanwhile');
    expect(client.all('call_tool_res')).toEqual([]);
    for (const each of asked.toReversed()) each.answer();
    const results = await Promise.all(ids.map(id => client.result(id)));
    expect(results.map(({ document }) => document.said)).toEqual(ids.map((_, n) => n));
    expect(client.all('call_tool_res')).toHaveLength(20);
  });

  it('that are the same are one while it runs, and two when they come one after the other', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    client.call('1', 'slow', { a: 1, b: { c: 2, d: 3 } });
    client.call('2', 'slow_EXAI-WS', { b: { d: 3, c: 2 }, a: 1 });
    client.call('other', 'slow', { a: 2 });
    await came(2);
    asked[0]?.answer();
    expect(await client.result('1')).not.toHaveProperty('from_inflight');
    expect(await client.result('2')).toMatchObject({ from_inflight: '1', document: { said: 'yes' } });
    expect(client.all('call_tool_ack', '2')).toHaveLength(1);
    client.call('3', 'slow', { a: 1, b: { c: 2, d: 3 } });
    await came(3);
    for (const each of asked) each.answer();
    expect(await client.result('3')).not.toHaveProperty('from_inflight');
  });

  it('that are the same stay two for the tools the operator names', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host, rules: { frames: { notJoined: ['slow'] } } });
    client.call('1', 'slow');
    client.call('2', 'slow');
    await came(2);
    for (const each of asked) each.answer();
    await Promise.all([client.result('1'), client.result('2')]);
  });

  it('that were joined end one by one: who cancels leaves the other its answer', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    client.call('1', 'slow');
    client.call('2', 'slow');
    await client.next('call_tool_ack', '2');
    client.send({ op: 'cancel', request_id: '1' });
    expect(codeOf(await client.result('1'))).toBe('CANCELLED');
    expect(asked[0]?.signal.aborted).toBe(false);
    asked[0]?.answer();
    expect((await client.result('2')).document).toEqual({ said: 'yes' });
    await came(1);
  });

  it('may not share a request_id while one of them runs', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host });
    client.call('1', 'slow');
    await came(1);
    client.call('1', 'slow');
    client.call('1', 'slow', { another: true });
    for (const nth of [0, 1]) {
      expect(await client.next('error', '1', nth)).toMatchObject({ error: { code: 'DUPLICATE', tool: 'slow' } });
    }
    asked[0]?.answer();
    expect(await client.result('1')).not.toHaveProperty('error');
    expect(asked).toHaveLength(1);
    expect(client.all('call_tool_res', '1')).toHaveLength(1);
  });

  it('are kept by their request_id: the same one again gets the result again, another one is made', async () => {
    const clock = manualClock();
    let calls = 0;
    const host = scriptedHost(async () => replyOf({ call: ++calls }));
    const client = await start({ host, clock, rules: { pingMs: 1e9, silenceMs: 1e9 } });
    client.call('1', 'echo', { a: 1 });
    await client.result('1');
    client.call('1', 'echo', { a: 1 });
    expect(await client.result('1', 1)).toMatchObject({ from_cache: true, document: { call: 1 } });
    client.call('1', 'echo', { a: 2 });
    expect((await client.result('1', 2)).document).toEqual({ call: 2 });
    await clock.advance(600_000);
    client.call('1', 'echo', { a: 2 });
    expect((await client.result('1', 3)).document).toEqual({ call: 3 });
  });

  it('that failed are never kept', async () => {
    let calls = 0;
    const host = scriptedHost(async () => (++calls === 1 ? failureOf('API_ERROR', 'timeout') : replyOf({ calls })));
    const client = await start({ host });
    client.call('1', 'echo');
    expect(codeOf(await client.result('1'))).toBe('PROVIDER_ERROR');
    client.call('1', 'echo');
    expect((await client.result('1', 1)).document).toEqual({ calls: 2 });
  });

  it('beyond the capacity are refused at once with OVER_CAPACITY, leave nothing behind, and succeed again later', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host, capacity: { perCaller: 1, queued: 1 } });
    for (const n of [1, 2, 3]) client.call(String(n), 'slow', { n });
    const refused = await client.result('3');
    expect(refused).toMatchObject({ error: { code: 'OVER_CAPACITY', retry_after: 5, tool: 'slow' } });
    expect(client.all('call_tool_ack').map(({ request_id: id }) => id)).toEqual(['1']);
    await came(1);
    asked[0]?.answer();
    await came(2);
    asked[1]?.answer();
    await Promise.all([client.result('1'), client.result('2')]);
    client.call('3', 'slow', { n: 3 });
    await came(3);
    asked[2]?.answer();
    expect((await client.result('3', 1)).document).toEqual({ said: 3 });
  });

  it('count as many after 10,000 rejections as before', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host, capacity: { perCaller: 1, inAll: 1, queued: 0 } });
    client.call('held', 'slow', { held: true });
    await came(1);
    for (let batch = 0; batch < 10; batch += 1) {
      const ids = Array.from({ length: 1_000 }, (_, n) => `${batch}-${n}`);
      for (const id of ids) client.call(id, 'slow', { id });
      await client.next('call_tool_res', ids.at(-1));
    }
    const rejected = client.all('call_tool_res');
    expect(rejected).toHaveLength(10_000);
    expect(new Set(rejected.map(codeOf))).toEqual(new Set(['OVER_CAPACITY']));
    client.send({ op: 'health' });
    expect((await client.next('health_res')).health).toMatchObject({
      sessions: 1,
      global_inflight: 1,
      global_waiting: 0,
    });
    asked[0]?.answer();
    await client.result('held');
    await expect
      .poll(() => [door.capacity.running(), door.capacity.waiting(), door.capacity.callers()])
      .toEqual([0, 0, 0]);
    client.call('after', 'slow', {});
    await came(2);
    asked[1]?.answer();
    expect(await client.result('after')).not.toHaveProperty('error');
  });

  it('are at most 512 at a time, however many ids a client makes up', async () => {
    const { host } = waitingHost();
    const client = await start({ host });
    for (let n = 0; n < 600; n += 1) client.call(`flood-${n}`, 'slow');
    const refused = await client.next('call_tool_res', 'flood-599');
    expect(refused).toMatchObject({ error: { code: 'OVER_CAPACITY', retry_after: 5 } });
    expect(client.all('call_tool_res')).toHaveLength(88);
  });

  it('bring at most so much at a time, one large one excepted', async () => {
    const { host, asked, came } = waitingHost();
    const client = await start({ host, rules: { frames: { maxAsked: 10_000 } } });
    client.call('large', 'slow', { text: 'x'.repeat(20_000) });
    client.call('more', 'slow', { text: 'y' });
    expect(codeOf(await client.result('more'))).toBe('OVER_CAPACITY');
    await came(1);
    asked[0]?.answer();
    await client.result('large');
    client.call('more', 'slow', { text: 'y' });
    await came(2);
    asked[1]?.answer();
    expect(await client.result('more', 1)).not.toHaveProperty('error');
  });
});
