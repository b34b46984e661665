import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** How a daemon is started. */
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

export interface StartedDaemon {
  pid: number;
  /** Set once it ended: the last lines that it wrote. */
  end(): string | undefined;
}

/** A log of more bytes is begun anew with the next start; what lasts is in the logs of the daemon itself. */
const mostLogged = 4_194_304;

/** Starts a program that outlives this one. */
export function startDaemon({ command, args, cwd, env, log }: DaemonCommand): StartedDaemon {
  mkdirSync(dirname(log), { recursive: true, mode: 0o700 });
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  const output = openSync(log, size > mostLogged ? 'w' : 'a', 0o600);
  let failure: string | undefined;
  let hasEnded = false;
  const child = spawn(command, args, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', output, output],
    windowsHide: true,
  });
  closeSync(output);
  child.once('error', error => {
    failure = error.message;
  });
  child.once('exit', () => {
    hasEnded = true;
  });
  child.unref();
  return { pid: child.pid ?? 0, end: () => failure ?? (hasEnded ? lastLines(log) : undefined) };
}

function lastLines(path: string): string {
  try {
    return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-3).join(' ').slice(-500);
  } catch {
    // Somebody cleared it away; that it ended is news enough.
    return '';
  }
}
