import { abortError, asError, configError, limitError, throwIfAborted } from '../../core/errors.ts';
import type { Clock, Mask } from '../../core/ports.ts';
import { type ChildEnv, programNamed, variablesFor } from '../programs.ts';
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

export interface GitOptions {
  clock: Clock;
  /** The environment of this process; git gets only what it needs of it. */
  childEnv: ChildEnv;
  /** Nothing else is read, and no program inside its roots is taken for git. */
  sandbox: Sandbox;
  /** Home directory, for `~` in paths. */
  homeDir: string;
  /** Finds the secrets of every patch, and masks them. */
  mask: Mask;
  /** Patches of changes are shown as they are; the secrets in them are found all the same. */
  unmasked?: boolean;
}

export type GitOutput = Awaited<ReturnType<typeof runGit>>;

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

/** No setting of a repository may start a program; no setting, the user's included, may change what is read out of git's answers. */
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
  ['diff.orderFile', '/dev/null'],
  ['diff.submodule', 'short'],
  ['diff.suppressBlankEmpty', 'false'],
  ['i18n.logOutputEncoding', 'UTF-8'],
  ['log.diffMerges', 'separate'],
  ['log.showRoot', 'true'],
  ['protocol.allow', 'never'],
];

/**
 * Runs git on one repository: without a shell, and ended with all that it started at the time limit
 * or with the call. Where the repository and its files are is said outright, so that none of its settings can point elsewhere.
 */
export async function runGit(options: GitOptions, command: GitCommand) {
  throwIfAborted(command.signal);
  const { place, args, maxBytes = 8 * megabyte } = command;
  const search = { env: options.childEnv, projects: [...options.sandbox.roots, place.top] };
  const { file, path } = await programNamed('git', search);
  const env = { ...environment(options.childEnv, command), PATH: path };
  const { execa } = await import('execa');
  const ended = await execa(file, ['--no-pager', '--literal-pathspecs', ...args], {
    cwd: place.top,
    env,
    extendEnv: false,
    input: command.input ?? '',
    encoding: 'buffer',
    stripFinalNewline: false,
    maxBuffer: { stdout: maxBytes, stderr: megabyte },
    timeout: timeoutMs,
    cancelSignal: command.signal,
    cleanup: false,
    killDescendants: true,
    killSignal: 'SIGKILL',
    reject: false,
    windowsHide: true,
  });
  const { exitCode, signal, isMaxBuffer } = ended;
  if (ended.isCanceled) throw abortError(command.signal);
  if (ended.timedOut)
    throw limitError('over_capacity', `git took too long in ${place.top} and was stopped.`, {
      next: 'Retry, name the directory of one repository in "path", or check whether "git status" alone is slow there.',
    });
  if (exitCode === undefined && signal === undefined)
    throw configError(`git cannot be started (${asError(ended.cause).message}).`, {
      next: 'Install git 2.31 or newer and make sure that the server finds it on its PATH.',
      cause: ended.cause,
    });
  return {
    /** 0 when all went well. */
    exitCode: exitCode ?? 1,
    stdout: Buffer.from(ended.stdout).toString('utf8'),
    stderr: Buffer.from(ended.stderr).toString('utf8').slice(0, errorChars),
    /** False when git had more to say than `maxBytes`; it was ended then. */
    complete: !isMaxBuffer,
  };
}

function environment(own: ChildEnv, { place, settings = [] }: GitCommand): Record<string, string> {
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
