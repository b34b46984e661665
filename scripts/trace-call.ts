import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { serveStdio } from '../src/app/app.ts';
import type { ProcessEnvironment } from '../src/app/compose-front.ts';
import { loadAppConfig } from '../src/app/settings.ts';
import { systemEnvironment } from '../src/app/system-environment.ts';
import type { Clock } from '../src/core/ports.ts';
import { rules } from './structure/rules.ts';

// Measures which files of src/ run during one call of a tool, by V8's precise coverage between two moments.

/** Path below src/ → the names of the functions that ran. */
type Ran = Map<string, string[]>;

type Reply = Record<string, unknown>;

interface Served {
  call(name: string, args: Record<string, unknown>): Promise<Reply>;
  close(): Promise<void>;
}

const source = join(import.meta.dirname, '../src');
const model = 'offline-east:echo-east';

/** Longer waits are limits that these calls do not reach, or repeat in the background. Log files are written after 100 ms. */
const longestWaitMs = 100;

let minutes = 0;

/** Replaces the time of a clock with one that stands still during a call, so that the speed of the machine has no effect. */
function still(real: Clock): Clock {
  const now = () => Date.UTC(2026, 0, 1, 0, minutes);
  return {
    now,
    storeTime: now,
    monotonic: () => minutes * 60_000,
    sinceBoot: () => ({ boot: 'still', ms: minutes * 60_000 }),
    sleep: (ms, signal) => real.sleep(ms, signal),
    after: (ms, run) => (ms > longestWaitMs ? () => undefined : real.after(ms, run)),
  };
}

/** Serves a product with the offline models on stdio, with all its files in `folder`. */
async function serve(folder: string): Promise<Served> {
  const home = join(folder, 'home');
  const project = join(folder, 'project');
  const env = { HOME: home, POLYLOGUE_HOME: home, PATH: dirname(process.execPath) };
  const { platform } = process;
  const { config } = await loadAppConfig({
    env,
    argvFlags: { home, offline: true },
    homeDir: home,
    platform,
    cwd: project,
    // Nothing outside `folder` takes part, such as settings of the machine.
    readFile: path => (path.startsWith(folder) ? readIfThere(path) : undefined),
  });
  const real = systemEnvironment();
  const around: ProcessEnvironment = {
    ...real,
    cwd: project,
    homeDir: home,
    childEnv: env,
    clock: still(real.clock),
    random: { uuid: randomUUID, fraction: () => 0.5 },
    writeError: () => undefined,
  };
  const input = new PassThrough();
  const output = new PassThrough();
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  const fail = (error: unknown): void => {
    for (const { reject } of waiting.values()) reject(error);
  };
  const served = await serveStdio(config, around, { input, output }, fail);
  served.closed.catch(fail);
  let text = '';
  output.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (text + chunk).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      const message = JSON.parse(line);
      waiting.get(message.id)?.resolve(message.result ?? message);
    }
  });
  const send = (message: object): boolean => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const request = (method: string, params: object): Promise<Record<string, unknown>> => {
    const id = waiting.size + 1;
    const reply = Promise.withResolvers<Record<string, unknown>>();
    waiting.set(id, reply);
    send({ id, method, params });
    return reply.promise;
  };
  const clientInfo = { name: 'trace', version: '1' };
  await request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  send({ method: 'notifications/initialized' });
  return {
    async call(name, args) {
      const result = await request('tools/call', { name, arguments: args });
      const [first] = Array.isArray(result.content) ? result.content : [];
      if (!first || result.isError) throw new Error(`${name} failed: ${JSON.stringify(result)}`);
      return JSON.parse(first.text);
    },
    close: () => served.close(),
  };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Adds what ran since the last look; returns whether anything did. */
async function look(session: Session, ran: Ran): Promise<boolean> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  let any = false;
  for (const { url, functions } of result) {
    const path = url.startsWith('file://') ? relative(source, fileURLToPath(url)) : '..';
    if (path.startsWith('..')) continue;
    // The function of the whole module starts at 0 and runs when the file is loaded.
    const called = functions.filter(({ ranges }) => ranges[0] && ranges[0].startOffset > 0 && ranges[0].count > 0);
    if (called.length === 0) continue;
    any = true;
    const names = called.map(({ functionName, ranges }) => `${functionName}:${ranges[0]?.startOffset}`);
    ran.set(path, [...new Set([...(ran.get(path) ?? []), ...names])]);
  }
  return any;
}

/** Calls a tool a minute after the last call. Returns its reply, and what runs until nothing has run for a while. */
async function traced(session: Session, work: () => Promise<Reply>): Promise<{ reply: Reply; ran: Ran }> {
  const ran: Ran = new Map();
  minutes++;
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  const reply = await work();
  for (let quiet = 0; quiet < 3; ) {
    await wait(100);
    quiet = (await look(session, ran)) ? 0 : quiet + 1;
  }
  await session.post('Profiler.stopPreciseCoverage');
  return { reply, ran };
}

/** Returns the argument that continues the thread of a reply. */
function threadIn(reply: Reply): { continuation_id: string } {
  const { continuation_id } = Object(reply.continuation_offer ?? reply);
  if (typeof continuation_id !== 'string') throw new Error(`No continuation_id in ${JSON.stringify(reply)}`);
  return { continuation_id };
}

/** Runs the two calls: the second chat call of a thread, and the last step of `debug`. */
async function traceCalls(folder: string): Promise<{ chat: Ran; debug: Ran }> {
  const project = join(folder, 'project');
  const file = join(project, 'a.ts');
  mkdirSync(join(folder, 'home'));
  mkdirSync(join(project, '.git'), { recursive: true });
  writeFileSync(file, 'export const a = 1;\nexport function f() { return a; }\n');
  const served = await serve(folder);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  try {
    const run = (name: string, args: Record<string, unknown>) => traced(session, () => served.call(name, args));
    const place = { absolute_file_paths: [file], working_directory_absolute_path: project, model };
    const first = await run('chat', { prompt: 'What does this file do?', ...place });
    const chat = await run('chat', { prompt: 'Repeat it.', ...place, ...threadIn(first.reply) });
    const step = { step: 'Read the file.', total_steps: 2, findings: 'None.', relevant_files: [file], model };
    const begun = await run('debug', { ...step, step_number: 1, next_step_required: true, confidence: 'low' });
    const last = { step_number: 2, next_step_required: false, confidence: 'high', hypothesis: 'It works.' };
    const debug = await run('debug', { ...step, ...last, ...threadIn(begun.reply) });
    const { status } = debug.reply;
    if (status !== 'calling_expert_analysis') throw new Error(`The last step of debug replied "${status}".`);
    return { chat: chat.ran, debug: debug.ran };
  } finally {
    session.disconnect();
    await served.close();
  }
}

/** Prints one call and returns which of its budgets are exceeded. */
function report(name: string, ran: Ran, budget: typeof rules.traceBudget.chat, list: boolean): string[] {
  const paths = [...ran.keys()].sort();
  const counts = {
    files: paths.length,
    folders: new Set(paths.map(path => dirname(path))).size,
    functions: [...ran.values()].reduce((sum, names) => sum + names.length, 0),
  };
  console.log(`${name}: ${counts.files} files, ${counts.folders} folders, ${counts.functions} functions`);
  if (list) {
    const namesOf = (path: string) => (ran.get(path) ?? []).map(each => each.replace(/:\d+$/, '') || '(no name)');
    for (const path of paths) console.log(`  ${path}: ${namesOf(path).join(', ')}`);
  }
  return (['files', 'folders', 'functions'] as const).flatMap(what =>
    counts[what] > budget[what] ? [`${name} runs through ${counts[what]} ${what}, limit ${budget[what]}`] : [],
  );
}

const { values } = parseArgs({ options: { list: { type: 'boolean', default: false } } });
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trace-call-')));
try {
  const { chat, debug } = await traceCalls(folder);
  const exceeded = [
    ...report('chat', chat, rules.traceBudget.chat, values.list),
    ...report('debug', debug, rules.traceBudget.debug, values.list),
  ];
  for (const message of exceeded) {
    console.error(
      `${message}. Compare what --list prints with that of an older commit, or raise traceBudget in ${rules.file}.`,
    );
  }
  if (exceeded.length > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
