import { createReadStream, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One run of the program, as `run-program.ts` asks for it. */
export interface WarmRun {
  main: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  input?: string;
  /** Its outputs are a terminal's. */
  terminal?: boolean;
  /** What it takes for the program that runs it, and starts itself with. */
  node?: string;
}

/** What this process says of the run under way. */
export type WarmNews = { stream: 'out' | 'err'; text: string } | { code: number };

class Ended extends Error {}

const leave = process.exit.bind(process);
const noInput = process.stdin;
const realNode = process.execPath;
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
let runs = 0;
let isBusy = false;

const tell = (news: WarmNews) => void process.send?.(news);

function end(code: number): void {
  if (!isBusy) return;
  isBusy = false;
  tell({ code });
}

function capture(stream: 'out' | 'err'): typeof process.stdout.write {
  return (chunk: string | Uint8Array, ...rest: unknown[]) => {
    if (isBusy) tell({ stream, text: typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8') });
    const done = rest.find(each => typeof each === 'function');
    if (done) queueMicrotask(() => done());
    return true;
  };
}

function fail(error: unknown): void {
  if (error instanceof Ended) return;
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  end(1);
}

process.stdout.write = capture('out');
process.stderr.write = capture('err');
process.exit = code => {
  end(Number(code ?? process.exitCode ?? 0));
  throw new Ended();
};
process.on('uncaughtException', fail);
process.on('disconnect', () => leave(0));

/** Standard input that holds this text, as a redirected file does. */
function inputOf(text: string) {
  const folder = mkdtempSync(join(tmpdir(), 'polylogue-input-'));
  const file = join(folder, 'input');
  writeFileSync(file, text);
  const fd = openSync(file, 'r');
  rmSync(folder, { recursive: true });
  return { fd, stream: Object.assign(createReadStream(file, { fd, autoClose: false }), { fd }) };
}

async function run({ main, args, cwd, env, input, terminal = false, node = realNode }: WarmRun): Promise<void> {
  isBusy = true;
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  process.execPath = node;
  process.argv = [node, main, ...args];
  process.exitCode = undefined;
  for (const stream of [process.stdout, process.stderr]) stream.isTTY = terminal;
  const given = input === undefined ? undefined : inputOf(input);
  Object.defineProperty(process, 'stdin', { value: given?.stream ?? noInput, configurable: true });
  try {
    // Another URL each time, so that the main file itself runs again; what it imports is loaded already.
    await import(`${main}?run=${++runs}`);
    end(Number(process.exitCode ?? 0));
  } catch (error) {
    fail(error);
  } finally {
    process.exitCode = undefined;
    for (const signal of signals) process.removeAllListeners(signal);
    process.stdout.removeAllListeners('error');
    // It closes its file. A second close could hit another file that has got the number by then.
    given?.stream.destroy();
  }
}

process.on('message', (asked: WarmRun) => void run(asked));
