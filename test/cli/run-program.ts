import { type ChildProcess, fork, spawn } from 'node:child_process';
import type { WarmNews, WarmRun } from './warm-program.ts';

export const main = new URL('../../dist/main.js', import.meta.url).pathname;

export interface Run {
  code: number | null;
  out: string;
  err: string;
  /** What stdout got, piece by piece, with the milliseconds since the start. */
  pieces: { text: string; at: number }[];
}

export interface RunOptions {
  cwd: string;
  env?: Record<string, string>;
  /** Bytes go to a process of its own. */
  input?: string | Uint8Array;
  /** Sent as soon as something is on stdout. */
  interrupt?: NodeJS.Signals;
  /** Always starts a process, also where one that ran the command before could run it again. */
  ownProcess?: boolean;
  /** Its outputs are a terminal's, as the program sees it; never in a process of its own. */
  terminal?: boolean;
  /** What it starts itself with, as it sees it, in the place of Node; not in a process of its own. */
  node?: string;
}

const started = new Set<string>();
let warm: ChildProcess | undefined;
let isWarmBusy = false;

/**
 * Runs the built program with nothing but this environment; HOME is the working directory unless told.
 * The first run of each command within a test file has a process of its own, which has to end by itself.
 * Later runs share one process that loaded the program once, because loading takes most of the time of a run.
 */
export async function runProgram(args: string[], options: RunOptions): Promise<Run> {
  const command = args[0] ?? '';
  const isFirst = !started.has(command);
  started.add(command);
  if (options.terminal) return runWarm(args, options);
  if (isFirst || options.interrupt || options.ownProcess || options.input instanceof Uint8Array || isWarmBusy)
    return runAlone(args, options);
  isWarmBusy = true;
  try {
    return await runWarm(args, options);
  } finally {
    isWarmBusy = false;
  }
}

function runAlone(args: string[], { cwd, env = {}, input, interrupt }: RunOptions): Promise<Run> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(process.execPath, [main, ...args], {
      cwd,
      env: { HOME: cwd, ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    const run: Run = { code: null, out: '', err: '', pieces: [] };
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      run.out += text;
      run.pieces.push({ text, at: performance.now() - startedAt });
      if (interrupt && run.pieces.length === 1) child.kill(interrupt);
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      run.err += text;
    });
    child.on('error', reject);
    child.on('close', code => resolve({ ...run, code }));
    child.stdin?.end(input);
  });
}

function runWarm(args: string[], { cwd, env = {}, input, terminal = false, node }: RunOptions): Promise<Run> {
  const child = warm ?? startWarm();
  const { promise, resolve, reject } = Promise.withResolvers<Run>();
  const startedAt = performance.now();
  const run: Run = { code: null, out: '', err: '', pieces: [] };
  const onNews = (news: WarmNews) => {
    if ('code' in news) return resolve({ ...run, code: news.code });
    run[news.stream] += news.text;
    if (news.stream === 'out') run.pieces.push({ text: news.text, at: performance.now() - startedAt });
  };
  const onExit = () => {
    warm = undefined;
    reject(new Error(`the process ended within "${args.join(' ')}": ${run.err}`));
  };
  child.on('message', onNews).once('exit', onExit);
  const asked: WarmRun = {
    main,
    args,
    cwd,
    env: { HOME: cwd, ...env },
    terminal,
    ...(typeof input === 'string' && { input }),
    ...(node !== undefined && { node }),
  };
  child.send(asked);
  return promise.finally(() => child.off('message', onNews).off('exit', onExit));
}

/** Ends when the test file's own process does. */
function startWarm(): ChildProcess {
  const program = new URL('./warm-program.ts', import.meta.url).pathname;
  warm = fork(program, { env: {}, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  return warm;
}
