import type { Clock } from '../../core/ports.ts';
import { safeCut } from '../../core/text.ts';
import { endProcesses } from '../../workspace/process-tree.ts';
import type { ChildEnv } from '../../workspace/programs.ts';
import type { CliDefinition } from './clis/cli.ts';
import { markName } from './contract.ts';

/** What any program needs to find itself, its settings, its language and its way out. Nobody's keys are among it. */
const everybodys = [
  'PATH HOME USER LOGNAME SHELL LANG LC_* TZ TMPDIR TEMP TMP XDG_*',
  'HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy',
  'NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR',
  'SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE HOMEDRIVE HOMEPATH',
  'APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES',
].flatMap(names => names.split(' '));

/** The environment of one run: an allow-list of ours, and what belongs to this CLI. */
export function cliEnvironment(
  { env: own, set }: Pick<CliDefinition, 'env' | 'set'>,
  context: ChildEnv,
  mark: string,
): Record<string, string> {
  const allowed = [...everybodys, ...own].map(matcherOf);
  const kept = Object.entries(context).flatMap(([name, value]): [string, string][] =>
    value !== undefined && allowed.some(matches => matches(name)) ? [[name, value]] : [],
  );
  return { ...Object.fromEntries(kept), NO_COLOR: '1', TERM: 'dumb', ...set, [markName]: mark };
}

/** Windows writes the same names in other cases. */
function matcherOf(pattern: string): (name: string) => boolean {
  if (pattern.endsWith('*')) {
    const start = pattern.slice(0, -1);
    return name => name.startsWith(start);
  }
  return name => name === pattern || name.toUpperCase() === pattern;
}

export interface CliRun {
  /** Absolute path of the executable. */
  file: string;
  args: readonly string[];
  cwd: string;
  env: Record<string, string>;
  /** For its standard input, which is closed behind it. */
  input: string;
  /** Its mark in `env`. */
  mark: string;
  platform: string;
  clock: Clock;
  /** Aborted: it is ended with all that it started. */
  signal: AbortSignal;
  onStdout(chunk: Buffer): void;
}

export interface CliExit {
  /** Undefined when a signal ended it. */
  code: number | undefined;
  signal: string | undefined;
  /** The end of what it wrote to standard error. */
  stderr: string;
  /** It could not be started at all. */
  failure?: string;
}

/** What a program gets to end by itself once it is told to. */
const graceMs = 1_500;

/** What is still in its pipes when it has ended; a daemon of its own may hold them open for ever. */
const drainMs = 300;

const keptStderr = 16_000;

/**
 * Runs a program to its end: without a shell, in a process group of its own, with nothing on its standard input but the prompt.
 * When it has ended, or `signal` was aborted, nothing that it started is left.
 */
export async function runCli(run: CliRun): Promise<CliExit> {
  const { execa } = await import('execa');
  const { file, args, cwd, env, signal } = run;
  const child = execa(file, args, {
    cwd,
    env,
    extendEnv: false,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    buffer: false,
    reject: false,
    shell: false,
    preferLocal: false,
    windowsHide: true,
    killDescendants: true,
    forceKillAfterDelay: graceMs,
  });
  let stderr = '';
  // A failure of ours must end this call, not the process: nobody else would catch it.
  let broken: { error: unknown } | undefined;
  child.stdout.on('data', (chunk: Buffer) => {
    if (broken) return;
    try {
      run.onStdout(chunk);
    } catch (error) {
      broken = { error };
      stop();
    }
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-keptStderr * 2);
  });
  // A program that ends before it has read its prompt closes the pipe under it: its end says why.
  child.stdin.on('error', () => undefined);
  child.stdin.end(run.input);

  const { pid } = child;
  // Its own end, not that of its pipes: the promise of a child waits for those too.
  const ended = Promise.race([new Promise(resolve => child.nodeChildProcess.once('exit', resolve)), child]);
  const sweep = () =>
    pid === undefined ? Promise.resolve() : endProcesses({ pid, mark: `${markName}=${run.mark}` }, { ...run, graceMs });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    child.kill('SIGTERM');
    stopping ??= sweep();
  };
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  try {
    await ended;
    await Promise.race([Promise.allSettled([child]), run.clock.sleep(drainMs)]);
    await (stopping ?? sweep());
  } finally {
    signal.removeEventListener('abort', stop);
    child.stdout.destroy();
    child.stderr.destroy();
  }
  const result = await child;
  if (broken) throw broken.error;
  return {
    code: result.exitCode,
    signal: result.signal,
    stderr: safeCut(stderr.slice(-keptStderr), keptStderr),
    ...(pid === undefined && { failure: result.originalMessage ?? 'the system did not start it' }),
  };
}
