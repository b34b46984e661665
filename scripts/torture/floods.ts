import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { SdkHttpError } from '@modelcontextprotocol/client';
import { WebSocket } from 'ws';
import { quantile } from '../../bench/measure/statistics.ts';
import { figure, type Table } from '../../bench/measure/table.ts';
import { openFloodVendor } from '../../bench/yardsticks/flood-vendor.ts';
import { startDaemon } from '../../test/support/daemon-process.ts';
import type { DoorClient } from '../../test/support/doors.ts';
import { connectHttp } from '../../test/support/http-session.ts';
import { type Document, vendorEnv } from '../../test/support/product.ts';
import { tempProject } from '../../test/support/temp-project.ts';
import { connectWebSocket } from '../../test/support/web-socket-session.ts';
import { type PartOptions, progress } from './part.ts';

const program = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const heapMb = 200;
const clients = 100;
/** In which each call of a client has to be answered, however often it was refused before. */
const patienceMs = 120_000;
/** No client takes longer than this for all its calls; what is not answered by then has waited too long. */
const endMs = 175_000;

const bodyBytes = 8 * 1_048_576;
/** A stream of about 100 MB. */
const pieces = 600_000;

interface Sum {
  waits: number[];
  shed: number;
  refusedBodies: number;
  closedSockets: number;
  streams: number;
  problems: Set<string>;
}

/**
 * A daemon with a heap of 200 MB and 100 clients of four kinds, each with a few calls, while others flood it: with bodies of 8 MB, with
 * messages of 8 MB that never end, and with questions whose answers are streams of 100 MB.
 */
export async function floods({ rounds = 3 }: PartOptions): Promise<Table> {
  if (!existsSync(program)) throw new Error('dist/main.js is missing: run "npm run build" first.');
  const began = performance.now();
  const [vendor, home, project] = await Promise.all([openFloodVendor(), tempProject(), tempProject()]);
  const daemon = await startDaemon({
    root: project.root,
    home: home.root,
    env: {
      ...vendorEnv({ openai: `${vendor.url}/v1` }),
      NODE_OPTIONS: `--max-old-space-size=${heapMb}`,
      DEFAULT_MODEL: 'gpt-5-mini',
      AI_MANAGER: 'rules',
      DETACHED_GRACE_SECONDS: '1',
      POLYLOGUE_REQUESTS_PER_MINUTE: '1000000',
      LOG_LEVEL: 'error',
    },
  });
  const sum: Sum = { waits: [], shed: 0, refusedBodies: 0, closedSockets: 0, streams: 0, problems: new Set() };
  const told = progress('floods');
  const over = new AbortController();
  const end = setTimeout(() => over.abort(), endMs);
  const flooding = [
    ...Array.from({ length: 64 }, () => floodBodies(daemon.url, sum, over.signal)),
    ...Array.from({ length: 8 }, () => floodSocket(daemon.url, sum, over.signal)),
    ...Array.from({ length: 4 }, () => floodAnswers(daemon.url, sum, over.signal)),
  ];
  let megabytes = 0;
  const look = setInterval(() => {
    megabytes = Math.max(megabytes, residentMb(daemon.pid));
    told(() => `${sum.waits.length} of ${clients * rounds} calls answered, ${sum.shed} sent again`);
  }, 250);
  await Promise.all(
    Array.from({ length: clients }, async (_, number) => {
      const connected = () => persistently(() => connect(daemon.url, number), sum, over.signal);
      let client = await connected();
      for (let round = 0; client && round < rounds; round += 1)
        client = await callUntilAnswered(client, connected, sum, over.signal);
      await client?.close().catch(() => {});
    }),
  );
  over.abort();
  clearTimeout(end);
  await Promise.all(flooding);
  clearInterval(look);
  daemon.signal('SIGTERM');
  const { code, signal } = await daemon.ended;
  if (code !== 0) sum.problems.add(`the daemon ended with ${code ?? signal}: ${daemon.log().slice(-500)}`);
  await vendor.close();
  await Promise.all([home.dispose(), project.dispose()]);
  return tableOf(sum, { rounds, megabytes, seconds: (performance.now() - began) / 1_000 });
}

const residentMb = (pid: number): number => {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;
  } catch {
    return 0;
  }
};

function connect(url: string, number: number): Promise<DoorClient> {
  const era = number % 2 === 0 ? 'legacy' : 'modern';
  return number % 4 < 2 ? connectHttp(url, era) : connectWebSocket(`${url.replace('http', 'ws')}/ws`, era);
}

/** Tries again as the server says, until it works; undefined: time is over. */
async function persistently<Found>(
  work: () => Promise<Found>,
  sum: Sum,
  signal: AbortSignal,
): Promise<Found | undefined> {
  while (!signal.aborted) {
    try {
      return await work();
    } catch (error) {
      if (!isRefusal(error)) sum.problems.add(`connecting: ${error}`);
      if (!isRefusal(error)) return undefined;
      sum.shed += 1;
      await wait(5_000, undefined, { signal }).catch(() => {});
    }
  }
  return undefined;
}

/** A client whose connection was closed, as the server does where there is no room, connects again. The result: the client as it is then. */
async function callUntilAnswered(
  client: DoorClient,
  connected: () => Promise<DoorClient | undefined>,
  sum: Sum,
  signal: AbortSignal,
): Promise<DoorClient | undefined> {
  const began = performance.now();
  let current: DoorClient | undefined = client;
  while (current && !signal.aborted) {
    const prompt = `${crypto.randomUUID()}: ${'why '.repeat(4_000)}`;
    const reply: Document = await current.call('chat', { prompt }).catch(error => ({ isError: true, thrown: error }));
    if (!reply.isError) {
      sum.waits.push(performance.now() - began);
      return current;
    }
    const { thrown, error = {} } = reply;
    const isBusy = thrown ? isRefusal(thrown) : error.class === 'over_capacity' && error.retryable === true;
    if (!isBusy || !(thrown || error.retry_after_s > 0)) {
      sum.problems.add(`a call: ${thrown ?? JSON.stringify(reply).slice(0, 300)}`);
      return undefined;
    }
    sum.shed += 1;
    await wait((error.retry_after_s ?? 5) * 1_000, undefined, { signal }).catch(() => {});
    if (thrown) current = await connected();
  }
  return current;
}

/** Whether the server said that there is no room, by the status or by the code with which it closed. */
const isRefusal = (error: unknown): boolean =>
  error instanceof SdkHttpError ? error.status === 503 : /busy|over_capacity|closed with 1013/.test(String(error));

/** Sends one body after the other to the tools, each in a few seconds unless it is refused before. */
async function floodBodies(url: string, sum: Sum, signal: AbortSignal): Promise<void> {
  const piece = Buffer.from('x'.repeat(65_536));
  const headers = { 'Content-Type': 'application/json' };
  async function* pieces() {
    yield Buffer.from('{"prompt":"');
    for (let sent = 0; sent < bodyBytes; sent += piece.length) {
      yield piece;
      await wait(20);
    }
    yield Buffer.from('"}');
  }
  while (!signal.aborted) {
    try {
      const body = ReadableStream.from(pieces());
      const response = await fetch(`${url}/api/tools/chat`, { method: 'POST', headers, body, signal, duplex: 'half' });
      if (response.status === 503) sum.refusedBodies += 1;
      await response.text();
    } catch {
      // Refused before it was sent to its end, or time is over.
      sum.refusedBodies += signal.aborted ? 0 : 1;
    }
    await wait(20);
  }
}

/** Begins a message that has no end, again and again. */
async function floodSocket(url: string, sum: Sum, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`);
    const closed = new Promise(resolve => socket.once('close', resolve));
    socket.on('error', () => {});
    socket.once('open', () => {
      socket.send(JSON.stringify({ op: 'hello' }));
      socket.send('x'.repeat(bodyBytes), { fin: false });
    });
    const onOver = () => socket.terminate();
    signal.addEventListener('abort', onOver);
    await closed;
    signal.removeEventListener('abort', onOver);
    sum.closedSockets += 1;
    await wait(20);
  }
}

/** Asks one question after the other whose answer is a flood. */
async function floodAnswers(url: string, sum: Sum, signal: AbortSignal): Promise<void> {
  const client = await persistently(() => connectHttp(url, 'legacy'), sum, signal);
  while (client && !signal.aborted) {
    const prompt = `${crypto.randomUUID()}: many pieces: ${pieces}`;
    const reply: Document = await client.call('chat', { prompt, model: 'gpt-5' }, { signal }).catch(() => undefined);
    if (reply && !reply.isError) sum.streams += 1;
    else await wait(1_000);
  }
  await client?.close().catch(() => {});
}

function tableOf(
  sum: Sum,
  { rounds, megabytes, seconds }: { rounds: number; megabytes: number; seconds: number },
): Table {
  const slowest = Math.max(...sum.waits);
  const late = clients * rounds - sum.waits.filter(ms => ms <= patienceMs).length;
  return {
    title: `floods: ${clients} clients of a daemon with a heap of ${heapMb} MB, ${figure(seconds, 0)} s`,
    columns: ['what', 'figure'],
    rows: [
      ['calls answered', String(sum.waits.length)],
      ['refused, and sent again in the time that was told', String(sum.shed)],
      ['wait for an answer, s, p50', figure(quantile(sum.waits, 0.5) / 1_000, 1)],
      ['wait for an answer, s, longest', figure(slowest / 1_000, 1)],
      ['calls that waited longer than two minutes', String(late)],
      ['bodies of 8 MB refused', String(sum.refusedBodies)],
      ['endless messages closed', String(sum.closedSockets)],
      ['answers of 100 MB taken', String(sum.streams)],
      ['resident memory, MB, most', figure(megabytes, 0)],
    ],
    failed: [...(late > 0 ? [`${late} calls waited longer than two minutes`] : []), ...sum.problems],
  };
}
