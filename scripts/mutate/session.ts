import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createVitest, ForksPoolWorker } from 'vitest/node';
import { longTests } from './modules.ts';
import type { FileReach, Plan, RunEvent } from './protocol.ts';

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** What tests print is not part of the report. */
const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });

/** Starts the worker of the mutation check, and lets nobody wait for the answer of one that was ended. */
class MutationWorker extends ForksPoolWorker {
  protected override readonly entrypoint = here('./worker.ts');
  #isGone = false;
  #listener: ((message: unknown) => void) | undefined;

  override on(event: string, callback: (message: unknown) => void): void {
    if (event === 'message') this.#listener = callback;
    super.on(event, callback);
  }

  override async start(): Promise<void> {
    await super.start();
    super.on('exit', () => {
      this.#isGone = true;
    });
  }

  override send(message: Parameters<ForksPoolWorker['send']>[0]): void {
    if (!this.#isGone) super.send(message);
    else if (message.type === 'stop') this.#listener?.({ type: 'stopped', __vitest_worker_response__: true });
  }
}

export type Outcome = 'killed' | 'timeout' | 'survived' | 'unreached';

export interface Session {
  root: string;
  /** Absolute path → instrumented code. */
  code: ReadonlyMap<string, string>;
  /** Patterns of test files, relative to the root. */
  tests: readonly string[];
  mutants: readonly number[];
  size: number;
  onOutcome(mutant: number, outcome: Outcome): void;
}

/** How long the tests of one file may take without a mutant. */
const measureMs = 240_000;

/** Runs the tests for each mutant, in one process as long as none of them hangs. Throws when tests fail without a mutant. */
export async function runMutants({ root, code, tests, mutants, size, onOutcome }: Session): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'mutate-'));
  const plan = join(folder, 'plan.json');
  // A mutant of what removes files may remove folders around those that are meant.
  const ofTests = join(folder, 'some', 'folders', 'deep');
  mkdirSync(ofTests, { recursive: true });
  // Some of them act as another user.
  chmodSync(folder, 0o755);
  chmodSync(ofTests, 0o1777);
  const sources = Object.fromEntries([...code].map(([path, text]) => [pathToFileURL(path).href, text]));
  process.env.MUTATION_PLAN = plan;
  const vitest = await createVitest(
    'test',
    {
      root,
      config: false,
      watch: false,
      include: [...tests],
      testNamePattern: `^(?!.*(?:${longTests.join('|')}))`,
      runner: here('./runner.ts'),
      pool: { name: 'mutation', createPoolWorker: options => new MutationWorker(options) },
      // Kept results of transforms would be those of another numbering.
      fsModuleCache: false,
      isolate: false,
      fileParallelism: false,
      maxWorkers: 1,
      maxConcurrency: 1,
      retry: 0,
      reporters: [{}],
      testTimeout: 60_000,
      hookTimeout: 60_000,
      expect: { poll: { timeout: 15_000, interval: 20 } },
      env: { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache'), MUTATION_PLAN: plan, TMPDIR: ofTests },
    },
    {
      plugins: [
        { name: 'mutation', enforce: 'pre', transform: { order: 'pre', handler: (_source, id) => code.get(id) } },
      ],
    },
    { stdout: nowhere(), stderr: nowhere() },
  );
  try {
    let left = [...mutants];
    let reach: FileReach[] | undefined;
    for (let round = 0; left.length > 0; round += 1) {
      const events = join(folder, `events-${round}.jsonl`);
      const next: Plan = { sources, mutants: left, size, events, ...(reach && { reach }) };
      writeFileSync(plan, JSON.stringify(next));
      let read = 0;
      let current: { mutant: number; until: number } | undefined;
      let measured: { filepath: string; until: number } | undefined;
      let pid: number | undefined;
      const end = () => {
        if (pid !== undefined) process.kill(pid, 'SIGKILL');
        pid = undefined;
      };
      const ended = new Set<number>();
      const failed: string[] = [];
      const look = () => {
        const lines = existsSync(events) ? readFileSync(events, 'utf8').split('\n').slice(0, -1) : [];
        for (const line of lines.slice(read)) {
          const event: RunEvent = JSON.parse(line);
          if (event.is === 'start') pid = event.pid;
          if (event.is === 'measure') measured = { filepath: event.filepath, until: Date.now() + measureMs };
          if (event.is === 'reach') {
            reach = event.reach;
            measured = undefined;
            failed.push(...event.failed);
          }
          if (event.is === 'begin') current = { mutant: event.mutant, until: Date.now() + event.limit };
          if (event.is === 'end') {
            current = undefined;
            ended.add(event.mutant);
            onOutcome(event.mutant, event.by !== undefined ? 'killed' : event.reached ? 'survived' : 'unreached');
          }
        }
        read = lines.length;
        if (measured !== undefined && Date.now() > measured.until) {
          failed.push(`${measured.filepath} takes too long`);
          measured = undefined;
          end();
        }
        if (current !== undefined && Date.now() > current.until) end();
      };
      const timer = setInterval(look, 200);
      await vitest.runTestSpecifications(await vitest.globTestSpecifications()).catch(() => undefined);
      clearInterval(timer);
      look();
      if (failed.length > 0) throw new Error(`Tests fail without a mutant:\n${failed.join('\n')}`);
      if (reach === undefined)
        throw new Error(`The tests did not start:\n${vitest.state.getUnhandledErrors().map(String).join('\n')}`);
      // It hung until its time was over, or it ended the process: its tests would not have passed.
      if (current !== undefined) {
        ended.add(current.mutant);
        onOutcome(current.mutant, 'timeout');
      }
      left = left.filter(mutant => !ended.has(mutant));
    }
  } finally {
    await vitest.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
