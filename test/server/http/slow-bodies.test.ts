import { connect, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { ToolHost } from '../../../src/core/tool-host.ts';
import { operator } from '../../../src/server/access/caller.ts';
import { createTokens, digestOf } from '../../../src/server/access/tokens.ts';
import type { Daemon, DaemonOptions } from '../../../src/server/daemon/daemon.ts';
import { bareDaemon } from '../../support/bare-daemon.ts';
import { type ManualClock, manualClock } from '../../support/clock.ts';
import { fixtureHost } from '../../support/conformance/fixture-host.ts';
import { waitUntil } from '../../support/wait-until.ts';

let daemon: Daemon | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await daemon?.close();
  daemon = undefined;
});

async function start(options: Parameters<typeof bareDaemon>[1] = {}): Promise<ManualClock> {
  const clock = manualClock();
  const form = async ({ request }: { request: Request }) => Response.json({ bytes: (await request.text()).length });
  const routes: DaemonOptions['routes'] = [
    () => ({ path: '/form', methods: ['POST'], access: 'anybody', handle: form }),
  ];
  daemon = await bareDaemon(fixtureHost() satisfies ToolHost, { clock, routes, ...options });
  return clock;
}

interface Sender {
  answer(): string;
  write(text: string): void;
  isClosed(): boolean;
}

/** Begins a request, and sends no more of its body than `body`. */
async function begin(path: string, body: string, more = 'Content-Length: 60000\r\n'): Promise<Sender> {
  const { hostname, port } = new URL(daemon?.url ?? '');
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  let answer = '';
  let isClosed = false;
  socket.on('data', chunk => {
    answer += chunk;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    isClosed = true;
  });
  socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${more}\r\n${body}`);
  return { answer: () => answer, write: text => void socket.write(text), isClosed: () => isClosed };
}

const paths = ['/mcp', '/api/tools/test_simple_text', '/form'];

/** Until as many bodies are read: each has its timer. */
const isRead = (clock: ManualClock, count: number) =>
  waitUntil(`${count} bodies are read`, () => clock.pending() >= count, { everyMs: 5 });

const turn = () => new Promise(resolve => setTimeout(resolve, 20));

it('that come at a byte a second are refused within seconds, 50 of them at any door', async () => {
  const clock = await start();
  const slow = await Promise.all(Array.from({ length: 51 }, (_, at) => begin(paths[at % 3] ?? '', '{')));
  await isRead(clock, 51);
  for (let second = 0; second < 5; second += 1) {
    await clock.advance(1_000);
    for (const each of slow) each.write(' ');
    await turn();
  }
  await waitUntil('all are refused', () => slow.every(each => each.isClosed()), { everyMs: 5 });
  for (const each of slow)
    expect(each.answer()).toMatch(/^HTTP\/1.1 408 [\s\S]*Connection: close[\s\S]*"class":"slow"/i);
});

it('that come in chunks, or after the server said to go on, are no exception', async () => {
  const clock = await start();
  const chunked = await begin('/mcp', '1\r\n{\r\n', 'Transfer-Encoding: chunked\r\n');
  const asked = await begin('/mcp', '', 'Content-Length: 60000\r\nExpect: 100-continue\r\n');
  await isRead(clock, 2);
  await clock.advance(5_001);
  await waitUntil('both are refused', () => chunked.isClosed() && asked.isClosed(), { everyMs: 5 });
  expect(chunked.answer()).toMatch(/^HTTP\/1.1 408 /);
  expect(asked.answer()).toMatch(/^HTTP\/1.1 100 [\s\S]*HTTP\/1.1 408 /);
});

it('that come at 2 KiB a second arrive, and one that stands still for a moment does', async () => {
  const clock = await start();
  const steady = await begin('/form', 'x'.repeat(1_000));
  const halting = await begin('/form', 'x'.repeat(30_000));
  await isRead(clock, 2);
  for (let part = 0; part < 11; part += 1) {
    await turn();
    steady.write('x'.repeat(5_000));
    await turn();
    await clock.advance(2_500);
    if (part === 1) halting.write('x'.repeat(30_000));
  }
  steady.write('x'.repeat(4_000));
  await waitUntil('both are answered', () => steady.answer() !== '' && halting.answer() !== '', { everyMs: 5 });
  expect(steady.answer()).toMatch(/^HTTP\/1.1 200 [\s\S]*\{"bytes":60000\}/);
  expect(halting.answer()).toMatch(/^HTTP\/1.1 200 [\s\S]*\{"bytes":60000\}/);
});

it('of strangers have a share of the memory, and take nothing of that of who is known', async () => {
  const token = 'A-token-of-somebody-0123';
  const tokens = createTokens([{ digest: digestOf(token), caller: operator }]);
  const clock = await start({ tokens, capacity: { perCaller: 9, inAll: 9, queued: 9, bytes: 1_000_000 } });
  const strangers = await Promise.all(Array.from({ length: 56 }, () => begin('/form', 'x')));
  const refused = () => strangers.filter(each => each.isClosed());
  await waitUntil('some are refused', () => refused().length === 9, { everyMs: 5 });
  for (const each of refused()) expect(each.answer()).toMatch(/^HTTP\/1.1 503 [\s\S]*"class":"over_capacity"/);
  const known = await begin('/mcp', '{', `Content-Length: 60000\r\nAuthorization: Bearer ${token}\r\n`);
  await isRead(clock, 48);
  // One that is too slow gives its part back, whatever comes after.
  await clock.advance(5_001);
  await waitUntil('all are refused', () => known.isClosed() && refused().length === 56, { everyMs: 5 });
  const again = await Promise.all(Array.from({ length: 47 }, () => begin('/form', 'x')));
  await isRead(clock, 47);
  expect(again.filter(each => each.isClosed())).toEqual([]);
});

it('that the memory does not bear are refused before they are read, first those of who sends most', async () => {
  const tokens = createTokens(
    ['greedy', 'other'].map(name => ({ digest: digestOf(`${name}-0123456789abcdef`), caller: { ...operator, name } })),
  );
  const clock = await start({ tokens, capacity: { perCaller: 9, inAll: 9, queued: 9, bytes: 1_000_000 } });
  const send = (name: string, path: string, how: string, body = '{') =>
    begin(path, body, `Authorization: Bearer ${name}-0123456789abcdef\r\n${how}\r\n`);
  const declared = (bytes: number) => `Content-Length: ${bytes}`;
  // One that is alone is let in, however large it is.
  const first = await send('greedy', '/mcp', declared(1_200_000));
  await isRead(clock, 1);
  const refused = await Promise.all([
    ...paths.map(path => send('greedy', path, declared(60_000))),
    send('greedy', '/mcp', 'Transfer-Encoding: chunked', `10000\r\n${' '.repeat(65_536)}\r\n`),
    send('other', '/mcp', declared(90_000)),
  ]);
  await waitUntil('they are refused', () => refused.every(each => each.isClosed()), { everyMs: 5 });
  for (const each of refused)
    expect(each.answer()).toMatch(/^HTTP\/1.1 503 [\s\S]*retry-after: 5[\s\S]*"class":"over_capacity"/i);
  // What is small may be what ends a call.
  const small = await send('other', '/form', declared(10), '0123456789');
  await waitUntil('it is answered', () => small.answer() !== '', { everyMs: 5 });
  expect([small.answer(), first.answer()]).toEqual([expect.stringContaining('{"bytes":10}'), '']);
  sockets[0]?.destroy();
  const [most, little] = [
    await send('greedy', '/mcp', declared(600_000)),
    await send('other', '/mcp', declared(200_000)),
  ];
  await isRead(clock, 2);
  const more = await send('greedy', '/mcp', declared(90_000));
  await waitUntil('it is refused', () => more.isClosed(), { everyMs: 5 });
  expect([most.answer(), little.answer()]).toEqual(['', '']);
});
