import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { waitUntil } from './wait-until.ts';

/** A program on a terminal of its own, as a person uses it. */
export interface PseudoTerminal {
  /** All that was written to it so far, control codes included. */
  raw(): string;
  /** Types this; resolves with what was shown since, without control codes, once it matches. */
  type(keys: string, until: RegExp): Promise<string>;
  /** Resolves with what was shown since the last keys, once it matches. */
  shows(pattern: RegExp): Promise<string>;
  /** Resolves with the exit code once it ended. */
  ended: Promise<number | null>;
}

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** The terminal is lent by `script` of util-linux; it does not tell its width. */
export function pseudoTerminal(
  command: readonly string[],
  options: { cwd: string; env: Record<string, string> },
): PseudoTerminal {
  const { cwd, env } = options;
  const line = command.map(quoted).join(' ');
  const child = spawn('script', ['-qefc', line, '/dev/null'], {
    cwd,
    env: { SHELL: '/bin/sh', TERM: 'xterm', ...env },
  });
  let raw = '';
  let from = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    raw += text;
  });
  const shown = () => stripVTControlCharacters(raw.slice(from)).replaceAll('\r', '');
  const shows = async (pattern: RegExp) => {
    const known = () => raw;
    await waitUntil(`the terminal showed ${pattern}`, () => pattern.test(shown()), { everyMs: 5, known });
    return shown();
  };
  return {
    raw: () => raw,
    shows,
    type(keys, until) {
      from = raw.length;
      child.stdin.write(keys);
      return shows(until);
    },
    ended: once(child, 'close').then(([code]) => code),
  };
}
