import { spawn } from 'node:child_process';
import { configError, throwIfAborted } from '../../../../core/errors.ts';
import type { Clock } from '../../../../core/ports.ts';
import { endProcesses } from '../../../../workspace/process-tree.ts';

export interface ProcessRun {
  clock: Clock;
  argv: readonly [string, ...string[]];
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** Milliseconds. */
  timeMs: number;
  /** Bytes that are kept of its output: the first half and the last. */
  maxBytes: number;
  signal: AbortSignal;
  /** Its processes bear this in their environment, and are ended in whatever group or session they are; absent: those of its group. */
  mark?: string;
  platform?: string;
}

export interface ProcessOutput {
  /** Undefined when it was ended from outside. */
  exitCode: number | undefined;
  /** What it wrote to both of its outputs, as it came. */
  output: string;
  /** It took longer than it had, and was ended with all that it started. */
  late: boolean;
}

/** Its children may keep its outputs open; they are ended soon after it. */
const lingerMs = 500;

/** Runs a program without a shell, in a process group of its own, all of which ends with the time limit or the signal. */
export function runProcess(run: ProcessRun): Promise<ProcessOutput> {
  throwIfAborted(run.signal);
  const [program, ...args] = run.argv;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: run.cwd,
      env: run.mark === undefined ? run.env : { ...run.env, [markName]: run.mark },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      windowsHide: true,
    });
    const kept = createKept(run.maxBytes);
    let late = false;
    const end = () => {
      killGroup(child.pid);
      // What left the group may hold the outputs open for ever.
      void endFamily(run, child.pid).then(() => {
        if (child.exitCode === null && child.signalCode === null) return;
        child.stdout.destroy();
        child.stderr.destroy();
      });
    };
    const stopTimer = run.clock.after(run.timeMs, () => {
      late = true;
      end();
    });
    let stopLinger = () => {};
    run.signal.addEventListener('abort', end, { once: true });
    const clean = () => {
      stopTimer();
      stopLinger();
      run.signal.removeEventListener('abort', end);
    };
    child.stdout.on('data', kept.add);
    child.stderr.on('data', kept.add);
    child.on('error', error => {
      clean();
      reject(cannotStart(program, error));
    });
    child.on('exit', () => {
      stopLinger = run.clock.after(lingerMs, end);
    });
    child.on('close', async exitCode => {
      clean();
      // What it left behind has lost its parent, but neither its group nor its mark.
      killGroup(child.pid);
      await endFamily(run, child.pid);
      if (run.signal.aborted) {
        try {
          return throwIfAborted(run.signal);
        } catch (error) {
          return reject(error);
        }
      }
      resolve({ exitCode: exitCode ?? undefined, output: kept.text(), late });
    });
  });
}

function createKept(limit: number) {
  const half = Math.floor(limit / 2);
  const head: Buffer[] = [];
  let headBytes = 0;
  let tail = Buffer.alloc(0);
  let all = 0;
  return {
    add(chunk: Buffer) {
      all += chunk.length;
      const first = chunk.subarray(0, Math.max(0, half - headBytes));
      head.push(first);
      headBytes += first.length;
      const rest = chunk.subarray(first.length);
      if (rest.length > 0) tail = Buffer.concat([tail, rest]).subarray(-half);
    },
    text() {
      const left = all - headBytes - tail.length;
      const gap = left > 0 ? `\n[… ${left} bytes left out …]\n` : '';
      return Buffer.concat(head).toString('utf8') + gap + tail.toString('utf8');
    },
  };
}

const markName = 'POLYLOGUE_COMMAND_RUN';

async function endFamily({ mark, platform = 'linux', clock }: ProcessRun, pid: number | undefined): Promise<void> {
  if (mark === undefined || pid === undefined) return;
  await endProcesses({ pid, mark: `${markName}=${mark}` }, { platform, clock, graceMs: 0 });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself; `close` comes in any case.
  }
}

function cannotStart(program: string, error: Error): Error {
  return configError(`${program} can't be started (${error.message}).`, {
    next: 'Run another program, or go on without.',
    cause: error,
  });
}
