import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { waitUntil } from './wait-until.ts';

const script = fileURLToPath(new URL('./sqlite-child.ts', import.meta.url));

export interface SqliteProcess {
  child: ChildProcess;
  /** Complete lines that it has printed so far. */
  lines(): string[];
  /** Resolves when it printed a line that satisfies the test; rejects when it ends before. */
  said(test: (line: string) => boolean): Promise<void>;
  /** Resolves when it ended and all of its output was read. */
  ended: Promise<{ code: number | null; errors: string }>;
}

/** Starts test/support/sqlite-child.ts, which says what the arguments mean. */
export function startSqliteProcess(...args: string[]): SqliteProcess {
  return startBelow([], ...args);
}

/** The same below another program, which is given the command to run as its last arguments. */
export function startBelow(program: readonly string[], ...args: string[]): SqliteProcess {
  const [command = process.execPath, ...before] = [...program, process.execPath, script, ...args];
  const child = spawn(command, before, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.on('data', chunk => {
    output += chunk;
  });
  child.stderr.on('data', chunk => {
    errors += chunk;
  });
  const lines = () => output.split('\n').slice(0, -1);
  const ended = once(child, 'close').then(([code]) => ({ code, errors }));
  return {
    child,
    lines,
    ended,
    async said(test) {
      const isSo = () => {
        if (lines().some(test)) return true;
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`ended early: ${errors}`);
        return false;
      };
      const known = () => `it said ${JSON.stringify(lines().slice(-5))} ${errors}`;
      await waitUntil(`"sqlite-child ${args[0]}" said what was expected`, isSo, { everyMs: 2, known });
    },
  };
}
