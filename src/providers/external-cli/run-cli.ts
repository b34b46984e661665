import { AppError, configError } from '../../core/errors.ts';
import { cutMiddle, safeCut, withoutKeys } from '../../core/text.ts';
import { runTree, type TreeEnd, type TreeRun } from '../../workspace/process-tree.ts';
import { type ChildEnv, variablesFor } from '../../workspace/programs.ts';
import type { CliDefinition } from './clis/cli.ts';
import type { CliOutput } from './command/output.ts';
import type { ConfiguredCli } from './configured-clis.ts';
import { markName, sessionLost } from './contract.ts';

/** What a CLI needs besides to find its settings, its language and its way out. */
const clis = [
  'LOGNAME LC_* TZ XDG_*',
  'HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy',
  'NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR',
].flatMap(names => names.split(' '));

/** The environment of one run: an allow-list of ours, and what belongs to this CLI. */
export function cliEnvironment(
  { env: own, set }: Pick<CliDefinition, 'env' | 'set'>,
  context: ChildEnv,
  mark: string,
): Record<string, string> {
  return { ...variablesFor(context, [...clis, ...own]), NO_COLOR: '1', TERM: 'dumb', ...set, [markName]: mark };
}

export interface CliExit extends TreeEnd {
  /** The end of what it wrote to standard error. */
  stderr: string;
}

/** What a program gets to end by itself once it is told to. */
const graceMs = 1_500;

const keptStderr = 16_000;

/** Runs a program with nothing on its standard input but the prompt. */
export async function runCli({ onOutput, ...run }: Omit<TreeRun, 'graceMs'>): Promise<CliExit> {
  let stderr = '';
  const end = await runTree({
    ...run,
    mark: `${markName}=${run.mark}`,
    graceMs,
    onOutput(chunk, from) {
      if (from === 'stderr') stderr = (stderr + chunk.toString('utf8')).slice(-keptStderr * 2);
      onOutput(chunk, from);
    },
  });
  return { ...end, stderr: safeCut(stderr.slice(-keptStderr), keptStderr) };
}

const lost =
  /invalid session identifier|no (?:rollout|conversation|session|thread) found|(?:session|thread|conversation)(?: \S+)? (?:was )?not found|error resuming/i;
const shown = 2_000;

/** Longer answers are no prompts for a login, whatever words they have. */
export const maxLoginLength = 800;

/** Some print what they want on their way out, and leave with a success. */
export const asksForLogin = ({ login, read }: CliDefinition, { text, failed }: CliOutput): boolean =>
  (!read || failed) && text.length <= maxLoginLength && login.test(text);

/** Why a CLI gave no answer. None is asked again: half of the work may be done. `resumed`: it was to continue a session. */
export function failureOf(cli: ConfiguredCli, output: CliOutput, exit: CliExit, resumed: boolean): AppError {
  const said = [...output.errors, exit.stderr, output.noise, output.text].join('\n');
  const data = {
    cli_name: cli.name,
    return_code: exit.code ?? null,
    ...(exit.signal !== undefined && { ended_by: exit.signal }),
    stdout: cutMiddle(withoutKeys((output.text || output.noise).trim()), shown),
    stderr: cutMiddle(withoutKeys(exit.stderr.trim()), shown),
  };
  if (exit.failure !== undefined) {
    const why = `${cli.executable} could not be started: ${withoutKeys(exit.failure)}`;
    return notRun(cli.name, why, 'not_started', 'Check that the file is a program that this user may run.');
  }
  if (resumed && lost.test(said)) {
    const next = 'Resend the call; it starts a new session.';
    return failed(`${cli.title} does not know its session any more.`, { class: sessionLost, next, data });
  }
  if (cli.login.test(said)) {
    const message = `${cli.title} is not logged in${reason(output, exit)}`;
    return failed(message, { class: 'auth', next: cli.loginHint, data });
  }
  const refusal = cli.refusals?.find(({ says }) => says.test(said));
  if (refusal) {
    const message = `${cli.title} refused to work here${reason(output, exit)}`;
    return configError(message, { class: refusal.class, next: refusal.hint, data });
  }
  return failed(`CLI '${cli.name}' execution failed: ${ended(exit)}${reason(output, exit)}`, { ...kindOf(said), data });
}

const failed = (message: string, details: { class: string; next: string; data: Record<string, unknown> }): AppError =>
  new AppError('model', message, { code: 'API_ERROR', retryable: false, ...details });

function ended({ code, signal }: CliExit): string {
  if (signal !== undefined) return `it was ended by ${signal}`;
  return code === 0 ? 'it ended without an answer' : `it ended with code ${code}`;
}

const maxReasonLength = 300;

/** Its own words, the last ones first to be trusted: what went before is often a warning. */
function reason({ errors, noise, text }: CliOutput, { stderr }: CliExit): string {
  const lines = stderr.split('\n').filter(line => line.trim() !== '');
  const said = errors.at(-1) ?? (lines.slice(-3).join(' ') || noise || text);
  const short = cutMiddle(withoutKeys(said.replace(/\s+/g, ' ').trim()), maxReasonLength);
  return short === '' ? '.' : `: ${short}`;
}

// biome-ignore format: a table has a row for each kind
const kinds: readonly (readonly [says: RegExp, kind: string, next: string])[] = [
  [/RESOURCE_EXHAUSTED|quota|usage limit|insufficient_quota/i, 'quota', 'The account of this CLI is used up; wait, or name another CLI or model.'],
  [/\b429\b|rate.?limit|too many requests/i, 'rate_limit', 'Retry later, or choose another CLI or model.'],
  [/context (?:length|window)|maximum context|input token count|prompt is too long/i, 'context_length', 'Send less in one call, or begin a new thread.'],
  [/ENOTFOUND|ECONNREFUSED|ETIMEDOUT|network|failed to lookup|fetch failed/i, 'network', 'Check the network of this machine, then retry.'],
];

function kindOf(said: string): { class: string; next: string } {
  const found = kinds.find(([says]) => says.test(said));
  const next = 'Look at stderr in this error, run the CLI by hand in the same directory, or name another one.';
  return found ? { class: found[1], next: found[2] } : { class: 'cli_failed', next };
}

export function notInstalled({ name, title, executable }: ConfiguredCli): AppError {
  const next = `Install ${title} where this server runs, put it into PATH, or name another CLI.`;
  return notRun(name, `Executable '${executable}' not found in PATH.`, 'not_installed', next);
}

function notRun(name: string, why: string, kind: string, next: string): AppError {
  const data = { cli_name: name, return_code: null };
  return configError(`CLI '${name}' execution failed: ${why}`, { class: kind, next, data });
}
