import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../support/daemon.ts';
import * as doors from '../support/one-bill-doors.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { waitUntil } from '../support/wait-until.ts';
import { initializeParams, startRawServer } from './raw-server.ts';

let vendor: FakeVendor;
let project: TempProject;
let home: TempProject;
let daemon: TestDaemon;
let env: Record<string, string>;
const servers: ReturnType<typeof startRawServer>[] = [];

beforeAll(async () => {
  [vendor, project, home] = await Promise.all([startOpenAi(), tempProject(), tempProject()]);
  // Longer than any call goes on for nobody.
  vendor.byDefault({ answer: 'A hinge.', delayMs: 10_000 });
  env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', AI_MANAGER: 'rules' };
  const tokens = [{ name: 'ann', owner: 'ann', token: doors.tokenOf('ann') }];
  // As it is where nobody set it.
  daemon = await testDaemon({ root: project.root, env: { ...env, DETACHED_GRACE_SECONDS: '' }, tokens });
});

afterAll(async () => {
  for (const { signal } of servers) signal('SIGKILL');
  await daemon.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

/** A host with a server of its own, or a bridge; it dies without a word, and reads nothing more. */
const host =
  (argsOf: () => readonly string[]): doors.Open =>
  async () => {
    const token = { POLYLOGUE_TOKEN: doors.tokenOf('ann') };
    const server = startRawServer({ root: project.root, home: home.root, env: { ...env, ...token }, args: argsOf() });
    servers.push(server);
    await server.request(0, 'initialize', initializeParams);
    server.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return {
      send(args) {
        const reply = server.request(1, 'tools/call', { name: 'chat', arguments: args });
        return {
          reply: reply.then(({ result }) => doors.documentOf(result)),
          cut() {
            server.end();
            server.deafen();
          },
        };
      },
    };
  };

/** The tool API with a stream of events. */
const events: doors.Open = async at => ({
  send(args, key) {
    const { response, cut } = doors.posting(
      at,
      '/api/tools/chat',
      'ann',
    )(args, { accept: 'text/event-stream', ...(key && { 'idempotency-key': key }) });
    const last = async (each: Response) => JSON.parse((await each.text()).split('data: ').at(-1) ?? '').reply;
    return { reply: response.then(last), cut };
  },
});

const ways: [way: string, open: doors.Open, key?: string][] = [
  ['standard input and output', host(() => [])],
  ['the bridge', host(() => ['connect', '--url', daemon.url])],
  ['/mcp of 2025', doors.http2025],
  ['/mcp of 2026', doors.http2026],
  ['/mcp of 2026, named', doors.http2026, 'k'],
  ['MCP over a WebSocket', doors.webSocket],
  ['frames', doors.frames, 'f'],
  ['/api/tools', doors.api],
  ['/api/tools, named', doors.api, 'a'],
  ['/api/tools with events', events],
  ['/api/tools with events, named', events, 'e'],
];

let count = 0;
const question = () => ({ prompt: `What is a door? (${++count})` });
const requestsFor = ({ prompt }: { prompt: string }) =>
  vendor.requests.filter(({ canonical }) => canonical.includes(prompt));

/** A call that the vendor is thinking about; its client is gone. */
async function left(open: doors.Open, key: string | undefined) {
  const asked = question();
  const named = key && `${key}-${count}`;
  const client = await open(daemon);
  const first = client.send(asked, named);
  first.reply.catch(() => undefined);
  await waitUntil('the vendor was asked', () => requestsFor(asked).length === 1);
  first.cut();
  return { asked, at: performance.now(), named, client };
}

/** Resolves with the milliseconds after which a call whose client is gone ended at its vendor. */
async function endedAfter(open: doors.Open, key?: string): Promise<number> {
  const { asked, at } = await left(open, key);
  await waitUntil('it ended at its vendor', () => requestsFor(asked)[0]?.wasAborted() ?? false);
  return performance.now() - at;
}

/** Resolves with the answer of a call that was sent again, and with how often the vendor was asked. */
async function sentAgain(open: doors.Open, key?: string) {
  const { asked, named, client } = await left(open, key);
  await sleep(300);
  const again = open === doors.frames ? client : await open(daemon);
  const reply: Document = await again.send(asked, named).reply;
  return { content: reply.content, bills: requestsFor(asked).length };
}

/** What the promise of 5 s may take on a busy machine; it was 30 s before. */
const withinMs = 8_000;
const resendable = ways.filter(([way, , key]) => key || /input|bridge|2025|WebSocket/.test(way));

/** All at the same time: each of them waits for seconds. */
let ended: Map<string, ReturnType<typeof endedAfter>>;
let resent: Map<string, ReturnType<typeof sentAgain>>;
beforeAll(() => {
  ended = new Map(ways.map(([way, open, key]) => [way, endedAfter(open, key)]));
  resent = new Map(resendable.map(([way, open, key]) => [way, sentAgain(open, key)]));
  // The test of each tells what is wrong with it.
  for (const each of [...ended.values(), ...resent.values()]) each.catch(() => undefined);
});

it.each(ways)('a call whose client is gone ends at its vendor within 5 s: %s', async way => {
  expect(await ended.get(way)).toBeLessThan(withinMs);
});

it.each(resendable)('a call that is sent again before that is one bill, however long it takes: %s', async way => {
  expect(await resent.get(way)).toEqual({ content: 'A hinge.', bills: 1 });
});
