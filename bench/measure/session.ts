import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

export interface Launch {
  /** A JavaScript file for this Node. */
  program: string;
  args?: readonly string[];
  /** The whole environment of the child. */
  env: Record<string, string>;
}

/** A spawned MCP server and the raw JSON lines that go to it and come back: no client library adds to the figures. */
export interface Session {
  /** The whole result; throws what the server answers as an error. */
  request(method: string, params: unknown): Promise<Record<string, unknown>>;
  /** The result of a tool call that went well; anything else is thrown, because a failure's time says nothing. */
  call(tool: string, args: Record<string, unknown>): Promise<Record<string, unknown>>;
  pid: number;
  /** Memory that the process holds, in MB; NaN where the system does not tell. */
  residentMb(): number;
  /** Processor time of all its threads so far, in ms: waiting for a busy machine is not in it. NaN where the system does not tell. */
  cpuMs(): number;
  /** What all its write calls took so far, to files, pipes, sockets and other threads. NaN where the system does not tell. */
  written(): Written;
  /** Closes its input and waits for its end. */
  close(): Promise<void>;
}

export interface Written {
  bytes: number;
  calls: number;
}

const usualPatienceMs = 20_000;

const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };

interface Waiting {
  resolve(result: Record<string, unknown>): void;
  reject(error: Error): void;
}

/**
 * Starts a server and lists its tools; `elapsedMs` is the time from the spawn to that list. A first call is sent together with
 * that, and waits for nothing; `answeredMs` is the time from the spawn to its answer.
 */
export async function openSession(
  launch: Launch,
  patienceMs = usualPatienceMs,
  first?: { tool: string; args: Record<string, unknown> },
): Promise<{ session: Session; elapsedMs: number; answeredMs: number }> {
  const started = performance.now();
  const child = spawn(process.execPath, [launch.program, ...(launch.args ?? [])], {
    env: launch.env,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const session = sessionWith(child, launch.program, patienceMs);
  const greeted = session.request('initialize', hello);
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
  const listed = session.request('tools/list', {}).then(({ tools }) => ({ tools, ms: performance.now() - started }));
  const called = first && session.call(first.tool, first.args).then(() => performance.now() - started);
  const [, { tools, ms: elapsedMs }, answeredMs = Number.NaN] = await Promise.all([greeted, listed, called]);
  if (!Array.isArray(tools) || tools.length === 0) throw new Error(`${launch.program} listed no tools`);
  return { session, elapsedMs, answeredMs };
}

function sessionWith(child: ChildProcess, program: string, patienceMs: number): Session {
  const waiting = new Map<number, Waiting>();
  const ended = once(child, 'close');
  let said = '';
  let lastId = 0;
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(-2_000);
  });
  const fail = (reason: string) => {
    for (const { reject } of waiting.values()) reject(new Error(`${program} ${reason}: ${said}`));
    waiting.clear();
  };
  child.on('error', error => fail(error.message));
  child.on('close', code => fail(`ended with ${code}`));
  child.stdin?.on('error', error => fail(error.message));
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', line => {
      const { id, result, error } = JSON.parse(line);
      const asked = waiting.get(id);
      waiting.delete(id);
      if (error) asked?.reject(new Error(`${program} answered ${JSON.stringify(error)}`));
      else asked?.resolve(result);
    });
  }

  const request = (method: string, params: unknown): Promise<Record<string, unknown>> => {
    const id = ++lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
    const timer = setTimeout(() => fail(`did not answer ${method} in time`), patienceMs);
    waiting.set(id, { resolve, reject });
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return promise.finally(() => clearTimeout(timer));
  };

  return {
    request,
    async call(tool, args) {
      const result = await request('tools/call', { name: tool, arguments: args });
      if (result.isError) throw new Error(`${tool} failed: ${JSON.stringify(result).slice(0, 500)}`);
      return result;
    },
    residentMb: () => residentMb(child.pid),
    cpuMs: () => cpuMs(child.pid),
    written: () => written(child.pid),
    pid: child.pid ?? 0,
    async close() {
      child.stdin?.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

export function residentMb(pid: number | undefined): number {
  if (process.platform !== 'linux') return Number.NaN;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

export function cpuMs(pid: number | undefined): number {
  if (process.platform !== 'linux') return Number.NaN;
  const threads = readdirSync(`/proc/${pid}/task`).map(thread => `/proc/${pid}/task/${thread}/schedstat`);
  // Its first number is the time on a processor, in nanoseconds.
  return threads.reduce((sum, file) => sum + Number.parseInt(readFileSync(file, 'utf8'), 10) / 1_000_000, 0);
}

function written(pid: number | undefined): Written {
  if (process.platform !== 'linux') return { bytes: Number.NaN, calls: Number.NaN };
  const account = readFileSync(`/proc/${pid}/io`, 'utf8');
  const of = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(account)?.[1]);
  return { bytes: of('wchar'), calls: of('syscw') };
}
