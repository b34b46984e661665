import { spawn } from 'node:child_process';

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
  input?: string;
  /** Sent as soon as something is on stdout. */
  interrupt?: NodeJS.Signals;
}

/** Runs the built program with nothing but this environment; HOME is the working directory unless told. */
export function runProgram(args: string[], { cwd, env = {}, input, interrupt }: RunOptions): Promise<Run> {
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
