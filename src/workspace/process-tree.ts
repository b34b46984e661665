import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { onAbort } from '../core/concurrency.ts';
import { asError, inputError } from '../core/errors.ts';
import type { Clock } from '../core/ports.ts';

/** `start`: when it began, as a number that is given again belongs to another process. */
type Process = Record<'pid' | 'parent' | 'group', number> & { start: string; marked: boolean };

/** A program to be run with all that it starts. */
export interface TreeRun {
  /** Absolute path. */
  file: string;
  args: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** For its standard input, which is closed behind it. Absent: it has none. */
  input?: string;
  /** `NAME=value` of `env`, by which its processes are known where the system shows their environment. */
  mark: string;
  platform: string;
  clock: Clock;
  /** Aborted: it is ended with all that it started. */
  signal: AbortSignal;
  /** What its processes get to end once they are told to; milliseconds. */
  graceMs: number;
  onOutput(chunk: Buffer, from: 'stdout' | 'stderr'): void;
}

/** How a program ended: `code` is undefined when a signal ended it; `failure`: why it could not be started. */
export type TreeEnd = Awaited<ReturnType<typeof runTree>>;

/** Ends the programs that run now; they do not outlive this process. */
const running = new Set<() => void>();

function endRunning(): void {
  for (const end of running) end();
}

const pollMs = 40;
const forceMs = 3_000;
/** What is still in the pipes of a program that has ended; a daemon of its own may hold them open for ever. */
const drainMs = 300;

/**
 * Refuses what Windows has no way to give to a program. Whatever is no program itself (npm's shims) is run by `cmd.exe`, for which a
 * line break ends a command, and whose line is short: what a shim adds to it needs room as well.
 */
function checkArguments({ file, args, platform }: TreeRun): void {
  if (platform !== 'win32') return;
  const isProgram = /\.(?:exe|com)$/i.test(file);
  const limit = isProgram ? 32_000 : 7_000;
  const quoted = args.join('   ').replace(/["\\]/g, '$&$&');
  const { length } = isProgram ? quoted : quoted.replaceAll('%', '%%cd:~,%');
  const isBroken = !isProgram && /[\r\n]/.test(quoted);
  if (length <= limit && !isBroken) return;
  const why = isBroken ? 'cmd.exe runs it, which takes no line break' : `they have ${length} characters of ${limit}`;
  throw inputError(`${file} cannot be given these arguments: ${why}.`, {
    next: 'Put the text into a file, or name a program that reads it from standard input (a CLI with "prompt": "stdin").',
  });
}

/** A child that runs, or why there is none: what is wrong with an argument is thrown at once, together with the argument. */
async function start({ file, args, cwd, env, input, graceMs }: TreeRun) {
  const { execa } = await import('execa');
  try {
    const child = execa(file, args, {
      cwd,
      env,
      extendEnv: false,
      stdin: input === undefined ? 'ignore' : 'pipe',
      buffer: false,
      reject: false,
      // It listens to signals, and kills this process with one for which the server has its own, orderly end.
      cleanup: false,
      killDescendants: true,
      forceKillAfterDelay: graceMs || false,
    });
    return { child };
  } catch (error) {
    return { failure: asError(error).message.split(/[:\n]/, 1).join() };
  }
}

/**
 * Runs a program to its end: without a shell, in a process group of its own, and on Windows npm's shims too. Nothing that it started is
 * left then; on Windows that holds only where `signal` was aborted. Rejects with what `onOutput` throws.
 */
export async function runTree(run: TreeRun) {
  checkArguments(run);
  const { input, signal, graceMs } = run;
  const { child, failure } = await start(run);
  if (!child) return { code: undefined, signal: undefined, failure };
  const { pid } = child;
  const sweep = () => (pid === undefined ? Promise.resolve() : endFamily(pid, run));
  let stopping: Promise<void> | undefined;
  const stop = () => {
    child.kill(graceMs > 0 ? 'SIGTERM' : 'SIGKILL');
    stopping ??= sweep();
  };
  // A failure of ours must end this call, not the process: nobody else would catch it.
  let broken: { error: unknown } | undefined;
  for (const from of ['stdout', 'stderr'] as const)
    child[from].on('data', (chunk: Buffer) => {
      if (broken) return;
      try {
        run.onOutput(chunk, from);
      } catch (error) {
        broken = { error };
        stop();
      }
    });
  // A program that ends before it has read its prompt closes the pipe under it: its end says why.
  child.stdin?.on('error', () => undefined).end(input);
  // Its own end, not that of its pipes: the promise of a child waits for those too.
  const ended = Promise.race([new Promise(resolve => child.nodeChildProcess.once('exit', resolve)), child]);
  const forget = onAbort(signal, stop);
  const atExit = () => {
    child.kill('SIGKILL');
    if (run.platform === 'linux') endMarked(run.mark);
  };
  // One listener for all: their number in a process is its host's to watch.
  if (running.size === 0) process.on('exit', endRunning);
  running.add(atExit);
  try {
    await ended;
    await Promise.race([Promise.allSettled([child]), run.clock.sleep(drainMs)]);
    await (stopping ?? sweep());
  } finally {
    forget();
    running.delete(atExit);
    if (running.size === 0) process.off('exit', endRunning);
    child.stdout.destroy();
    child.stderr.destroy();
  }
  const result = await child;
  if (broken) throw broken.error;
  const unstarted = pid === undefined ? (result.originalMessage ?? 'the system did not start it') : undefined;
  return { code: result.exitCode, signal: result.signal, failure: unstarted };
}

/**
 * Ends a program and all that descends from it or bears its mark, in whatever group or session: asks each of them once, and forces
 * it after `graceMs`. Resolves when none is left, or after some seconds when the system does not let go of one. Never throws. On
 * Windows the runner ends the tree itself.
 */
async function endFamily(leader: number, run: TreeRun): Promise<void> {
  const { clock, graceMs } = run;
  if (run.platform === 'win32') return;
  if (graceMs === 0) signal(-leader, 'SIGKILL');
  const asked = new Map<number, string>();
  const began = clock.monotonic();
  for (;;) {
    const members = await membersOf(leader, run, asked);
    if (members.length === 0) return;
    const elapsed = clock.monotonic() - began;
    if (elapsed > graceMs + forceMs) return;
    for (const { pid, start } of members) {
      if (elapsed >= graceMs) signal(pid, 'SIGKILL');
      else if (asked.get(pid) !== start) signal(pid, 'SIGTERM');
      asked.set(pid, start);
    }
    await clock.sleep(pollMs);
  }
}

/** As this process ends nothing can be waited for: all that bear the mark are forced, in whatever session. Never throws. */
function endMarked(mark: string, pid?: string): void {
  try {
    if (pid === undefined) for (const name of readdirSync('/proc')) endMarked(mark, name);
    else if (/^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${mark}\0`))
      signal(Number(pid), 'SIGKILL');
  } catch {
    // It has ended, or is another user's; or the system lists no processes.
  }
}

/** Whether it was still there. */
function signal(pid: number, name: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** Who belongs to a family now; `seen` were found to before, and do although their parents are gone. */
async function membersOf(leader: number, { mark, platform }: TreeRun, seen: ReadonlyMap<number, string>) {
  const all = platform === 'linux' ? await fromProc(mark) : await fromPs();
  // Without a list, its group is all that is known of it.
  if (all.length === 0) return signal(-leader, 0) ? [{ pid: -leader, start: '' }] : [];
  const members = new Map<number, Process>();
  // Parents have mostly smaller numbers, but not always: until nobody is added.
  for (let size = -1; size !== members.size; ) {
    size = members.size;
    for (const each of all) {
      const { pid, parent, group, start, marked } = each;
      const belongs = marked || group === leader || seen.get(pid) === start || members.has(parent);
      if (belongs && pid !== process.pid && pid > 1) members.set(pid, each);
    }
  }
  return [...members.values()];
}

async function fromProc(mark: string): Promise<Process[]> {
  const names = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name));
  return (await Promise.all(names.map(name => processIn(name, `${mark}\0`)))).filter(each => each !== undefined);
}

/** Undefined for one that has ended, also where nobody has taken notice of it yet. */
async function processIn(name: string, mark: string): Promise<Process | undefined> {
  try {
    const stat = await readFile(`/proc/${name}/stat`, 'latin1');
    // The name in brackets may hold anything, brackets included.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, parent, group] = fields;
    if (state === 'Z' || state === 'X') return undefined;
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
    const marked = environment.includes(mark);
    return { pid: Number(name), parent: Number(parent), group: Number(group), start: fields[19] ?? '', marked };
  } catch {
    // It ended while it was looked at.
    return undefined;
  }
}

async function fromPs(): Promise<Process[]> {
  const listing = promisify(execFile)('/bin/ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat=,lstart='], { timeout: forceMs });
  const { stdout } = await listing.catch(() => ({ stdout: '' }));
  return stdout.split('\n').flatMap(line => {
    const [pid, parent, group, state = '', ...start] = line.trim().split(/\s+/);
    if (!pid || state.startsWith('Z')) return [];
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), start: start.join(' '), marked: false }];
  });
}
