import { spawn } from 'node:child_process';
import { type AppError, abortError, configError, limitError, throwIfAborted } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { killGroup } from '../process-tree.ts';
import { isWindows, programNamed, variablesFor } from '../programs.ts';
import type { Sandbox } from '../sandbox.ts';

/** A repository whose data and files are all inside the roots. */
export interface RepositoryPlace {
  /** The folder with its files. */
  top: string;
  /** Where its data is, the real path; elsewhere than in `.git` for a submodule or a linked worktree. */
  gitDir: string;
  /** What its work trees share: `gitDir` itself but for a linked worktree. */
  commonDir: string;
}

export interface GitProcessOptions {
  clock: Clock;
  /** The environment of this process; git gets only what it needs of it. */
  childEnv: Readonly<Record<string, string | undefined>>;
  /** No program inside its roots is taken for git. */
  sandbox: Pick<Sandbox, 'roots'>;
}

export interface GitOutput {
  /** 0 when all went well. */
  exitCode: number;
  stdout: string;
  stderr: string;
  /** False when git had more to say than `maxBytes`; it was ended then. */
  complete: boolean;
}

export interface GitCommand {
  place: RepositoryPlace;
  args: readonly string[];
  /** What it reads from its standard input; absent: nothing. */
  input?: string;
  /** Bytes of output that are kept; 8 MB unless told. */
  maxBytes?: number;
  /** Settings that win over all of the repository's. */
  settings?: readonly (readonly [name: string, value: string])[];
  signal?: AbortSignal;
}

const megabyte = 1024 * 1024;
const errorChars = 2_000;
/** For one command. */
const timeoutMs = 30_000;

/** No setting of a repository may start a program: a checkout of a stranger's is looked at like any other. */
const harmless: readonly (readonly [string, string])[] = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.pager', 'cat'],
  ['core.quotePath', 'true'],
  ['core.sshCommand', 'false'],
  ['core.gitProxy', ''],
  ['core.askPass', ''],
  ['credential.helper', ''],
  ['diff.external', ''],
  ['diff.submodule', 'short'],
  ['protocol.allow', 'never'],
];

/**
 * Runs git on one repository: without a shell, in a process group of its own that ends with the time limit
 * or the call. Where the repository and its files are is said outright, so that none of its settings can point elsewhere.
 */
export async function runGit(options: GitProcessOptions, command: GitCommand): Promise<GitOutput> {
  throwIfAborted(command.signal);
  const { place, args, maxBytes = 8 * megabyte } = command;
  const search = { env: options.childEnv, projects: [...options.sandbox.roots, place.top] };
  const { file, path } = await programNamed('git', search);
  const env = { ...environment(options.childEnv, command), PATH: path };
  return new Promise((resolve, reject) => {
    const child = spawn(file, ['--no-pager', '--literal-pathspecs', ...args], {
      cwd: place.top,
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
      // Leads a group of its own; Windows has none, and would open a window for it.
      detached: !isWindows(search),
      windowsHide: true,
    });
    // It may end without reading all of it; its exit code says why.
    child.stdin.on('error', () => {});
    child.stdin.end(command.input ?? '');
    const out: Buffer[] = [];
    let bytes = 0;
    let stderr = '';
    let ending: 'full' | 'late' | 'cancelled' | undefined;
    const end = (why: NonNullable<typeof ending>) => {
      ending ??= why;
      void killGroup(child.pid, search);
    };
    const stopTimer = options.clock.after(timeoutMs, () => end('late'));
    const onAbort = () => end('cancelled');
    command.signal?.addEventListener('abort', onAbort, { once: true });
    const clean = () => {
      stopTimer();
      command.signal?.removeEventListener('abort', onAbort);
    };
    child.stdout.on('data', (chunk: Buffer) => {
      out.push(chunk.subarray(0, Math.max(0, maxBytes - bytes)));
      bytes += chunk.length;
      if (bytes > maxBytes) end('full');
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (stderr.length < errorChars) stderr += chunk.toString('utf8');
    });
    child.on('error', error => {
      clean();
      reject(cannotRun(error));
    });
    child.on('close', exitCode => {
      clean();
      if (ending === 'cancelled') return reject(abortError(command.signal));
      if (ending === 'late') return reject(tooSlow(place));
      const stdout = Buffer.concat(out).toString('utf8');
      resolve({ exitCode: exitCode ?? 1, stdout, stderr: stderr.slice(0, errorChars), complete: ending !== 'full' });
    });
  });
}

function environment(own: GitProcessOptions['childEnv'], { place, settings = [] }: GitCommand): Record<string, string> {
  const all = [...harmless, ...settings];
  const numbered = all.flatMap(([name, value], at) => [
    [`GIT_CONFIG_KEY_${at}`, name],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return {
    ...variablesFor(own, ['XDG_CONFIG_HOME']),
    ...Object.fromEntries(numbered),
    GIT_CONFIG_COUNT: String(all.length),
    GIT_DIR: place.gitDir,
    GIT_COMMON_DIR: place.commonDir,
    GIT_WORK_TREE: place.top,
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    // A name that no transport has: missing objects are not fetched from anywhere.
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_PAGER: 'cat',
    LC_ALL: 'C',
  };
}

const cannotRun = (error: Error): AppError =>
  configError(`git cannot be started (${error.message}).`, {
    next: 'Install git 2.31 or newer and make sure that the server finds it on its PATH.',
    cause: error,
  });

const tooSlow = (place: RepositoryPlace): AppError =>
  limitError('over_capacity', `git took too long in ${place.top} and was stopped.`, {
    next: 'Retry, name the directory of one repository in "path", or check whether "git status" alone is slow there.',
  });
