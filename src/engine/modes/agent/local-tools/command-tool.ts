import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { z } from 'zod';
import { configError, inputError, securityError, throwIfAborted } from '../../../../core/errors.ts';
import type { Clock } from '../../../../core/ports.ts';
import { printablePath } from '../../../../core/text.ts';
import { isIn } from '../../../../workspace/paths.ts';
import { endProcesses } from '../../../../workspace/process-tree.ts';
import { programNamed } from '../../../../workspace/programs.ts';
import type { AgentTool } from './agent-tool.ts';
import { type CommandVerdict, judgeCommand } from './command-policy.ts';
import { defineLocalTool, environmentFor, type LocalToolServices, pathIn } from './local-tool.ts';
import { answerGit } from './read-tools.ts';

const maxBytes = 400_000;
/** A form shows a command whole, or it is not run. */
const maxShownLength = 8_000;
/** What a system takes as a path. */
const maxPathLength = 4_096;
/** A command that names more is not looked through. */
const maxPlaces = 1_000;
/** What toolchains need to find their way. */
const toolchains =
  'COMSPEC LC_ALL TZ JAVA_HOME GOPATH GOROOT GOCACHE CARGO_HOME RUSTUP_HOME NVM_DIR VIRTUAL_ENV PNPM_HOME'.split(' ');

export function commandTool(parts: LocalToolServices): AgentTool {
  let count = 0;
  return defineLocalTool({
    name: 'run_command',
    description: `Runs a program in the project: no shell, words as a list. Usual commands that test, check and build it${parts.commands ? ` (${parts.commands.join(', ')})` : ''} with files of the project are approved soonest; the user is asked about all others.`,
    effect: 'run',
    fields: {
      argv: z.array(z.string().max(4_000)).min(1).max(100).describe('["npm", "test"]'),
      cwd: z.string().describe('Default: project root').optional(),
    },
    show: ({ argv, cwd }) => `${argv.map(shownWord).join(' ')}${cwd === undefined ? '' : `   (in ${cwd})`}`,
    async approval({ argv, cwd = '.' }) {
      const own = ownTarget(parts, argv, cwd);
      if (own !== undefined)
        throw securityError(`${printablePath(own)} is inside the data directory of Polylogue (POLYLOGUE_HOME).`, {
          next: 'Go on without it: nothing there is changed for a model.',
        });
      if (argv.map(shownWord).join(' ').length > maxShownLength) throw tooMuch(`${maxShownLength} characters`);
      const { verdict, folder } = await judge(parts, argv, cwd);
      if ('form' in verdict) {
        const covers = `every "${verdict.form}" in a known form, with files of the project`;
        return { key: `run_command ${verdict.form}`, covers };
      }
      return {
        key: `run_command ${JSON.stringify([folder, ...argv])}`,
        covers: 'exactly these words in this directory',
        asked: `it needs a separate approval (${verdict.unknown}).`,
        instead: 'Use a usual command with files of the project, or let the user run it.',
      };
    },
    async run({ argv, cwd = '.' }, { signal, callId }) {
      const { verdict, folder, project } = await judge(parts, argv, cwd);
      if ('form' in verdict && argv[0] === 'git') return answerGit(parts, argv, folder, signal);
      const [program = '', ...args] = argv;
      // A path was shown and approved as it is.
      const named = /[\\/]/.test(program) ? resolve(folder, program) : program;
      const search = { env: parts.childEnv, projects: [...parts.sandbox.roots, parts.root] };
      const { file, path } = await programNamed(named, search);
      const prepared = await parts.commandSandbox.prepare({
        ...{ argv: [file, ...args], cwd: folder, project, isAsked: 'unknown' in verdict },
        env: {
          ...environmentFor(parts.childEnv, toolchains),
          CI: '1',
          NO_COLOR: '1',
          GIT_TERMINAL_PROMPT: '0',
          PATH: path,
        },
      });
      const { exitCode, output, late } = await runProcess({
        clock: parts.clock,
        argv: prepared.argv,
        cwd: folder,
        env: prepared.env,
        timeMs: parts.commandMs,
        maxBytes,
        signal,
        mark: `${parts.reqId}-${callId.replace(/[^\w-]/g, '_')}-${++count}`,
        platform: process.platform,
      });
      const removed = await prepared.end();
      const end = late
        ? `It took longer than ${Math.round(parts.commandMs / 1_000)} s and was ended.`
        : `Exit code: ${exitCode ?? 'none, it was ended'}`;
      return { text: [end, ...removed, output].join('\n'), failed: exitCode !== 0 };
    },
  });
}

/** Where a command runs, the project that it may change, and whether it has a known form there. */
async function judge(parts: LocalToolServices, argv: readonly string[], cwd: string) {
  const { sandbox, commands: entries } = parts;
  const folder = await sandbox.assertWithin(pathIn(parts, cwd));
  const own = await sandbox.assertWithin(parts.root);
  const project = isIn(folder, own) ? own : (sandbox.roots.find(root => isIn(folder, root)) ?? folder);
  const verdict: CommandVerdict = await judgeCommand({ argv, cwd: folder, project, sandbox, entries });
  return { verdict, folder, project };
}

/** What a command names in this program's own data folder: a word, or what an option of it is set to. */
function ownTarget(parts: LocalToolServices, argv: readonly string[], cwd: string): string | undefined {
  const folder = pathIn(parts, cwd);
  const named = argv.flatMap(word => [word, word.slice(word.indexOf('=') + 1), word.replace(/^--?[a-z]/i, '')]);
  const places = new Set(['.', ...named, ...named.flatMap(word => word.split(/[,:;]/))]);
  const likely = [...places].filter(place => place !== '' && place.length <= maxPathLength);
  if (likely.length > maxPlaces) throw tooMuch(`${maxPlaces} things`);
  return likely.find(place => isOwn(parts, resolve(folder, place)));
}

const isOwn = ({ sandbox }: LocalToolServices, path: string): boolean => !path.includes('\0') && sandbox.isOwn(path);

const tooMuch = (what: string): Error =>
  inputError(`The command has more than ${what}; it was not looked through, and is not run.`, {
    next: 'Name fewer of them: a directory, or a part of them at a time.',
  });

/** Each word so that no other one looks like it: whatever is not plain is quoted, and signs beyond ASCII are escaped. */
function shownWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return JSON.stringify(word).replace(/[^ -~]/gu, sign => `\\u{${sign.codePointAt(0)?.toString(16)}}`);
}

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
export async function runProcess(run: ProcessRun): Promise<ProcessOutput> {
  throwIfAborted(run.signal);
  const [program, ...args] = run.argv;
  const output = await new Promise<ProcessOutput>((resolve, reject) => {
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
      resolve({ exitCode: exitCode ?? undefined, output: kept.text(), late });
    });
  });
  throwIfAborted(run.signal);
  return output;
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

const cannotStart = (program: string, error: Error): Error =>
  configError(`${program} cannot be started (${error.message}).`, {
    next: 'Run another program, or go on without.',
    cause: error,
  });
