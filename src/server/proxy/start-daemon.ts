import { type StdioOptions, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { dirname } from 'node:path';
import { type AppError, configError, errorCode, securityError, storageError } from '../../core/errors.ts';
import { parsedJson, recordIn, textIn } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import { isLoopback } from '../access/addresses.ts';
import { bytesWithin } from '../access/limits.ts';
import { isRunning } from '../daemon/health-file.ts';

/** The token of daemons that were given none, in a file that only their user can read. Errors name the file and what to do. */
export function createKeptToken(path: string) {
  /** What comes of a piece of work on the file; undefined where it fails for this reason, which is none to stop. */
  function attempt<Result>(what: string, work: () => Result, harmless?: string): Result | undefined {
    try {
      return work();
    } catch (cause) {
      const code = errorCode(cause);
      if (code !== undefined && code === harmless) return undefined;
      throw configError(`The token file "${path}" cannot be ${what}: ${String(code)}.`, {
        next: 'Correct its permissions, or those of its directory; or set POLYLOGUE_TOKEN.',
        cause,
      });
    }
  }

  /** Undefined where no daemon was started yet. */
  const read = () => attempt('read', () => fs.readFileSync(path, 'utf8').trim() || undefined, 'ENOENT');

  function make(): void {
    fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    fs.writeFileSync(path, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
  }

  return {
    path,
    read,
    readOrMake(): string {
      const kept = read();
      // Where another process is faster, its token is as good.
      if (kept === undefined) attempt('written', make, 'EEXIST');
      attempt('kept from other users', () => {
        // Whatever the umask, or a copy, made of it.
        if ((fs.statSync(path).mode & 0o077) !== 0) fs.chmodSync(path, 0o600);
      });
      return kept ?? read() ?? '';
    },
    /** At once: bridges read it from now on, and of two in a row the later one has to stay. */
    replace(token: string): void {
      const draft = `${path}.${process.pid}`;
      fs.writeFileSync(draft, `${token}\n`, { mode: 0o600 });
      fs.renameSync(draft, path);
    },
  };
}

export interface DaemonCommand {
  /** Absolute paths of Node and of the program, and what follows. */
  command: string;
  args: readonly string[];
  /** Nobody's project: a daemon is not of one of them. */
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Where it writes what it has to say. */
  log: string;
}

/** A log of more bytes is begun anew with the next start; what lasts is in the logs of the daemon itself. */
const maxLogged = 4_194_304;

/** Starts a program that outlives this one. */
export function startDaemon({ command, args, cwd, env, log }: DaemonCommand) {
  fs.mkdirSync(dirname(log), { recursive: true, mode: 0o700 });
  const size = fs.statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  const output = fs.openSync(log, size > maxLogged ? 'w' : 'a', 0o600);
  let failure: string | undefined;
  const stdio: StdioOptions = ['ignore', output, output];
  const child = spawn(command, args, { cwd, env, detached: true, stdio, windowsHide: true });
  fs.closeSync(output);
  child.once('error', error => {
    failure = error.message;
  });
  child.unref();
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    pid: child.pid ?? 0,
    /** The last lines that it wrote; undefined while it runs. */
    end: () => failure ?? (hasEnded() ? lastLines(log) : undefined),
  };
}

function lastLines(path: string): string {
  try {
    return fs.readFileSync(path, 'utf8').trimEnd().split('\n').slice(-3).join(' ').slice(-500);
  } catch {
    // Somebody cleared it away; that it ended is news enough.
    return '';
  }
}

/** What stands at a daemon's address: one that takes calls, one that does not yet or no more, nothing, or something else. */
export type Readiness = 'ready' | 'not_ready' | 'absent' | 'other';

const answerMs = 3_000;

/** A proxy between has no daemon behind it at the moment, or none that answers. */
const proxyStatuses = [502, 503, 504];

/** Asks a daemon whether it takes calls; never rejects. */
export const readinessOf = async (url: string): Promise<Readiness> => (await askReadiness(url)).state;

/** `error` says why for what is `absent` or `other`. */
function askReadiness(url: string): Promise<{ state: Readiness; error?: AppError }> {
  const { promise, resolve } = Promise.withResolvers<{ state: Readiness; error?: AppError }>();
  const request = url.startsWith('https:') ? secureRequest : plainRequest;
  const options = { signal: AbortSignal.timeout(answerMs), headers: { connection: 'close' } };
  const asked = request(`${url}/readyz`, options, response => {
    const { statusCode = 0, headers } = response;
    // A web server that answers every path with a page is no daemon.
    const isOurs = headers['content-type']?.startsWith('application/json');
    const isWaiting = statusCode === 429 || proxyStatuses.includes(statusCode);
    const state = statusCode === 200 && isOurs ? 'ready' : isWaiting ? 'not_ready' : 'other';
    if (state === 'other') void refusedBy(url, response).then(error => resolve({ state, error }));
    else resolve({ state });
    // What else it says nobody reads, however much it is.
    if (state !== 'other') response.on('error', () => {}).destroy();
  });
  asked.on('error', error =>
    resolve(
      errorCode(error) === 'ABORT_ERR' ? { state: 'not_ready' } : { state: 'absent', error: unreachable(url, error) },
    ),
  );
  asked.end();
  return promise;
}

const maxRefusalBytes = 16_384;

/** What became of a client that was answered so. Ends the connection. */
export async function refusedBy(url: string, response: IncomingMessage): Promise<AppError> {
  const { statusCode: status = 0 } = response;
  const bytes = await bytesWithin(response, maxRefusalBytes).catch(() => undefined);
  response.destroy();
  const { message, next } = recordIn(recordIn(parsedJson(bytes?.toString('utf8') ?? '')).error);
  const said = textIn(message);
  if (said === '' && !proxyStatuses.includes(status))
    return configError(`What answers at ${url} is no Polylogue daemon (HTTP ${status}).`, {
      next: 'Set POLYLOGUE_PORT to a port that nobody uses, or name the daemon with --url.',
    });
  if (status === 401)
    return securityError(`The daemon at ${url} does not let this client in: ${said}`, {
      next: 'Set POLYLOGUE_TOKEN to a token that it knows; of a daemon of another user, choose another POLYLOGUE_PORT.',
    });
  if (status === 403) return securityError(`The daemon at ${url} refuses: ${said}`, { next: textIn(next) });
  return storageError('unavailable', `The daemon at ${url} takes no client now: ${said || `HTTP ${status}`}`, {
    retryable: true,
    next: textIn(next) || 'Try again later.',
  });
}

/** Codes of certificates whose authority this machine does not know. */
const unknownAuthority = /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)/;

export function unreachable(url: string, cause?: Error): AppError {
  const start = 'Start one with "polylogue serve", or see with "polylogue status" what runs.';
  const next = isLoopback(new URL(url).hostname)
    ? start
    : 'Check the URL, and ask its operator whether the daemon runs.';
  const isUntrusted = unknownAuthority.test(errorCode(cause) ?? '');
  // Where each address of a name refuses, the message of the failure is empty.
  const why = cause?.message || errorCode(cause);
  return storageError('unavailable', `The daemon at ${url} cannot be reached${why ? `: ${why}` : ''}.`, {
    retryable: true,
    next: isUntrusted ? 'Let NODE_EXTRA_CA_CERTS name the certificate of the authority that signed its own.' : next,
    cause,
  });
}

export interface ReachOptions {
  /** As `http://127.0.0.1:8765`. */
  url: string;
  /** Starts a daemon, or answers undefined when another proxy is at it; absent: none may be started. */
  start?: (() => { daemon: ReturnType<typeof startDaemon>; release(): void } | undefined) | undefined;
  clock: Pick<Clock, 'sleep' | 'monotonic'>;
  onRemark(text: string): void;
}

/** A daemon that is told to stop lets calls end first. */
const maxMs = 60_000;

/** One that went away is given so long to come back by itself, by whoever looks after it; longer where nobody else can start it. */
const returnMs = { here: 3_000, elsewhere: 20_000 };

const askEveryMs = 100;

/** Resolves when a daemon takes calls at the address. `again`: one did before. */
export async function reachDaemon(options: ReachOptions, again: boolean, signal: AbortSignal): Promise<void> {
  const { url, start, clock, onRemark } = options;
  const began = clock.monotonic();
  let started: ReturnType<NonNullable<typeof start>>;
  try {
    for (;;) {
      const { state, error = nobodyReady(url) } = await askReadiness(url);
      if (state === 'ready') return;
      const waited = clock.monotonic() - began;
      const end = started?.daemon.end();
      if (end !== undefined)
        throw configError(`The daemon that was started ended at once. It said: ${end || 'nothing'}`, {
          next: 'Run "polylogue serve" to see the error.',
        });
      if (state === 'other' || waited > maxMs) throw error;
      if (state === 'absent' && !started && (!again || waited > returnMs[start ? 'here' : 'elsewhere'])) {
        if (!start) throw error;
        started = start();
        if (started) onRemark(`No daemon runs at ${url}; one is started (process ${started.daemon.pid}).`);
      }
      await clock.sleep(askEveryMs, signal);
    }
  } finally {
    started?.release();
  }
}

const nobodyReady = (url: string): AppError =>
  storageError('unavailable', `No daemon takes calls at ${url}.`, {
    retryable: true,
    next: 'See with "polylogue status" what it waits for, or ask its operator.',
  });

/** No start takes longer; a lock that is older was left behind. */
const maxStartMs = 60_000;

/** Lets one of several proxies start the daemon: how to let go, else undefined. Where two get in, the second finds its port taken. */
export function takeStartLock(path: string, pid: number, now: number): (() => void) | undefined {
  fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  for (const isLast of [false, true]) {
    try {
      fs.writeFileSync(path, String(pid), { flag: 'wx', mode: 0o600 });
      return () => fs.rmSync(path, { force: true });
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
      if (isLast || !isLeft(path, now)) return undefined;
      fs.rmSync(path, { force: true });
    }
  }
  return undefined;
}

function isLeft(path: string, now: number): boolean {
  try {
    if (now - fs.statSync(path).mtimeMs > maxStartMs) return true;
    const holder = Number(fs.readFileSync(path, 'utf8'));
    // Between its making and its first byte it belongs to somebody all the same.
    return holder > 0 && !isRunning(holder);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return true;
    throw error;
  }
}
