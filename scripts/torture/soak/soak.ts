import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { quantile } from '../../../bench/measure/statistics.ts';
import { figure, type Table } from '../../../bench/measure/table.ts';
import type { DoorClient } from '../../../test/support/doors.ts';
import { connectHttp } from '../../../test/support/http-session.ts';
import { type ServerPlace, serverCommand, startSession } from '../../../test/support/mcp-session.ts';
import { vendorEnv } from '../../../test/support/product.ts';
import { seededRandom } from '../../../test/support/random.ts';
import { tempProject } from '../../../test/support/temp-project.ts';
import type { FakeVendor, Step } from '../../../test/support/vendors/fake-vendor.ts';
import { startDeepSeek } from '../../../test/support/vendors/start-deepseek.ts';
import { startOpenAi } from '../../../test/support/vendors/start-open-ai.ts';
import { connectWebSocket } from '../../../test/support/web-socket-session.ts';
import type { PartOptions } from '../part.ts';
import { startMeasuredDaemon } from './daemon.ts';
import { judge, type Minute, warmUpMinutes } from './judge.ts';
import { type Counts, Pace, runCaller } from './load.ts';
import { startYardstick } from './yardstick.ts';

const program = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

/** How the second vendor fails, minute by minute. */
const failures: Step[] = [
  { fault: 'status', status: 500 },
  { fault: 'cut_mid_stream' },
  { fault: 'reset' },
  { fault: 'status', status: 429, headers: { 'retry-after': '1' } },
  { fault: 'garbage' },
  { fault: 'empty' },
];

const minuteMs = 60_000;
/** From one action of a caller to the next, after the warm-up: a rate that a busy machine keeps too, so that minutes can be compared. */
const everyMs = 200;
/** Until nothing runs that callers left behind: longer than DETACHED_GRACE_SECONDS below. */
const settledMs = 2_000;
/** After a measurement V8 compiles again what the collection dropped: chats that begin meanwhile are not timed. */
const compiledAgainMs = 2_000;

/** Mixed load on the built daemon over loopback; what it takes is printed every minute and judged at the end. */
export async function soak({ seed, minutes }: PartOptions): Promise<Table> {
  if (!existsSync(program)) throw new Error('dist/main.js is missing: run "npm run build" first.');
  const [vendor, failing, home, project] = await Promise.all([
    startOpenAi(),
    startDeepSeek(),
    tempProject(),
    tempProject({ 'notes.md': 'The notes have one line.\n' }),
  ]);
  vendor.byDefault({ answer: 'A short answer, because the question was short.', delayMs: 20 });
  const env = {
    ...vendorEnv({ openai: vendor.url, deepseek: failing.url }),
    DEFAULT_MODEL: 'gpt-5-mini',
    AI_MANAGER: 'rules',
    // Three minutes: what nobody deletes goes by its time.
    CONVERSATION_TIMEOUT_HOURS: '0.05',
    DETACHED_GRACE_SECONDS: '1',
    POLYLOGUE_REQUESTS_PER_MINUTE: '1000000',
    LOG_LEVEL: 'error',
  };
  const place = { root: project.root, home: home.root, env };
  const daemon = await startMeasuredDaemon(place);
  const yardstick = startYardstick();
  const problems: string[] = [];
  const counts: Counts = { chats: 0, cancels: 0, vendorFailures: 0, otherTools: 0, reconnects: 0, deleted: 0 };
  const stop = new AbortController();
  let latencies: number[] = [];
  let timedFrom = 0;
  const pace = new Pace();
  const common = {
    pace,
    signal: stop.signal,
    counts,
    onChat(ms: number): void {
      if (performance.now() - ms >= timedFrom) latencies.push(ms);
    },
    onProblem: (what: string) => void problems.push(what),
  };
  const callers = doorsTo(daemon.url, place).map((door, index) =>
    runCaller({ ...common, ...door, random: seededRandom(seed + index) }),
  );
  const measured: Minute[] = [];
  process.stdout.write(`${header}\n`);
  for (let minute = 0; minute < minutes && daemon.isRunning(); minute++) {
    failing.byDefault(failures[minute % failures.length] ?? { fault: 'reset' });
    if (minute === warmUpMinutes) pace.everyMs = everyMs;
    await wait(minuteMs);
    const samples = latencies;
    latencies = [];
    const [p50, p99] = [quantile(samples, 0.5), quantile(samples, 0.99)];
    const taken = await pace.rest(async () => {
      await prune(place);
      await wait(settledMs);
      return daemon.measure();
    });
    timedFrom = performance.now() + compiledAgainMs;
    const now = { ...taken, chats: samples.length, p50, p99, yardstick: yardstick.take() };
    measured.push(now);
    process.stdout.write(`${rowOf(minute + 1, now)}\n`);
    problems.push(...takeViolations(vendor), ...takeViolations(failing));
  }
  stop.abort();
  await Promise.all(callers);
  const code = await daemon.stop();
  if (code !== 0) problems.push(`the daemon ended with ${code}: ${daemon.log()}`);
  await Promise.all([yardstick.stop(), vendor.close(), failing.close()]);
  await Promise.all([home.dispose(), project.dispose()]);
  return tableOf(measured, counts, problems);
}

/** Eight callers: four over HTTP and two each over WebSocket and the bridge, of both eras. */
function doorsTo(url: string, { root, home }: ServerPlace) {
  const http = (era: 'legacy' | 'modern') => () => connectOverHttp(url, era);
  const socket = (era: 'legacy' | 'modern') => () => connectWebSocket(`${url.replace('http', 'ws')}/ws`, era);
  const bridge = (era: 'legacy' | 'modern') => () =>
    startSession({ root, home, env: { HOME: root }, args: ['connect', '--url', url] }, era);
  return [http('legacy'), http('modern'), http('legacy'), http('modern'), socket('legacy'), socket('modern')]
    .map(connect => ({ connect, reconnects: 0.02 }))
    .concat([bridge('legacy'), bridge('modern')].map(connect => ({ connect, reconnects: 0.002 })));
}

/** A client that ends its session when it goes, as the protocol asks; one that does not is kept until it was idle for long. */
async function connectOverHttp(url: string, era: 'legacy' | 'modern'): Promise<DoorClient> {
  const session = await connectHttp(url, era);
  return {
    call: session.call,
    async close() {
      const id = session.sessionId();
      await session.close();
      if (id === undefined) return;
      const { status } = await fetch(`${url}/mcp`, { method: 'DELETE', headers: { 'mcp-session-id': id } });
      if (status >= 300) throw new Error(`a session could not be ended: ${status}`);
    },
  };
}

/** Empties what the fake remembers, so that this process does not grow either. */
function takeViolations(vendor: FakeVendor): string[] {
  vendor.requests.length = 0;
  return vendor.violations.splice(0).map(what => `the vendor refused a request: ${what}`);
}

/** Takes what expired out of the store, which the daemon itself does once a day. */
async function prune(place: ServerPlace): Promise<void> {
  const { command, args, cwd, env } = serverCommand({ ...place, args: ['threads', 'prune'] });
  await once(spawn(command, args, { cwd, env, stdio: 'ignore' }), 'exit');
}

const header = 'minute  heap MB  RSS MB  fds  chats  p50 ms  p99 ms  yardstick p99 ms  p99 / yardstick  database MB';

function rowOf(number: number, minute: Minute): string {
  const { heapMb, rssMb, descriptors, chats, p50, p99, yardstick, databaseMb } = minute;
  const cells = [
    String(number).padStart(6),
    figure(heapMb, 2).padStart(7),
    figure(rssMb, 1).padStart(6),
    String(descriptors).padStart(3),
    String(chats).padStart(5),
    figure(p50, 1).padStart(6),
    figure(p99, 1).padStart(6),
    figure(yardstick, 2).padStart(16),
    figure(p99 / yardstick, 1).padStart(15),
    figure(databaseMb, 1).padStart(11),
  ];
  return cells.join('  ');
}

/** Each kind of problem once, with how often it was. */
function counted(problems: readonly string[]): string[] {
  const kinds = Map.groupBy(problems, problem =>
    problem.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID'),
  );
  return [...kinds].map(([kind, all]) => `${all.length} times: ${kind}`);
}

function tableOf(minutes: readonly Minute[], counts: Counts, problems: readonly string[]): Table {
  const verdict = judge(minutes);
  const { chats, cancels, vendorFailures, otherTools, reconnects, deleted } = counts;
  return {
    title: `soak: ${minutes.length} minutes of mixed load on one daemon`,
    columns: ['what', 'figure', 'limit', 'verdict'],
    rows: [...verdict.rows, ['problems', String(problems.length), '0', problems.length === 0 ? 'held' : 'crossed']],
    notes: [
      `${chats} chats, ${otherTools} calls of other tools, ${cancels} cancels, ${vendorFailures} failures of a vendor,`,
      `${reconnects} reconnects, ${deleted} threads deleted; slopes with their 95% confidence`,
    ],
    failed: [...verdict.failed, ...counted(problems)],
  };
}
