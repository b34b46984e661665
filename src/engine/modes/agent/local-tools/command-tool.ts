import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { configError, inputError, securityError, throwIfAborted } from '../../../../core/errors.ts';
import { isDistinctiveSecret, printablePath } from '../../../../core/text.ts';
import { isIn } from '../../../../workspace/paths.ts';
import { runTree, type TreeRun } from '../../../../workspace/process-tree.ts';
import { programNamed, variablesFor } from '../../../../workspace/programs.ts';
import type { AgentTool } from './agent-tool.ts';
import { judgeCommand } from './command-policy.ts';
import { defineLocalTool, type LocalToolServices, pathIn } from './local-tool.ts';
import { answerGit } from './read-tools.ts';

const maxBytes = 400_000;
/** A form shows a command whole, or it is not run. */
const maxShownLength = 8_000;
/** A command that names more is not looked through. */
const maxPlaces = 1_000;
/** What toolchains need to find their way. */
const toolchains =
  'LC_ALL TZ JAVA_HOME GOPATH GOROOT GOCACHE CARGO_HOME RUSTUP_HOME NVM_DIR VIRTUAL_ENV PNPM_HOME'.split(' ');

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
    async run({ argv, cwd = '.' }, { signal }) {
      const { verdict, folder, project } = await judge(parts, argv, cwd);
      if ('form' in verdict && argv[0] === 'git') return answerGit(parts, argv, folder, signal);
      const [program = '', ...args] = argv;
      // A path was shown and approved as it is.
      const named = /[\\/]/.test(program) ? resolve(folder, program) : program;
      const search = { env: parts.childEnv, projects: [...parts.sandbox.roots, parts.root] };
      const { file, path } = await programNamed(named, search);
      const kept = variablesFor(parts.childEnv, toolchains);
      const mark = `${parts.reqId}-${++count}`;
      const isAsked = 'unknown' in verdict;
      const prepared = await parts.commandSandbox.prepare({
        ...{ argv: [file, ...args], cwd: folder, project, isAsked, id: mark },
        ...{ from: parts.clock.now(), timeMs: parts.commandMs },
        seesSecrets: isAsked || parts.sandbox.options.allowSecrets,
        env: { ...kept, CI: '1', NO_COLOR: '1', GIT_TERMINAL_PROMPT: '0', PATH: path },
      });
      const secrets = await Promise.all(prepared.secrets.map(secretsIn));
      parts.mask.remember?.(secrets.flat(), parts.scope);
      // Also of a command that was cancelled, or did not begin.
      let removed: string[] = [];
      const { exitCode, output, late } = await runProcess({
        ...{ argv: prepared.argv, cwd: folder, env: prepared.env, mark, signal },
        ...{ timeMs: parts.commandMs, clock: parts.clock, platform: process.platform, maxBytes },
      }).finally(async () => {
        removed = await prepared.end();
      });
      const end = late
        ? `It took longer than ${Math.round(parts.commandMs / 1_000)} s and was ended.`
        : `Exit code: ${exitCode ?? 'none, it was ended'}`;
      return { text: [end, ...removed, output].join('\n'), failed: exitCode !== 0 };
    },
  });
}

/** What things are set to in a secret file; but no addresses, paths and short words, which are in every other text. */
async function secretsIn(path: string): Promise<{ kind: string; value: string }[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  if (text.length > 65_536 || /\0|\ufffd|-----BEGIN CERT/.test(text)) return [];
  const set =
    /^[ \t]*(?!#)(?:export[ \t]+)?(?:[^\s=]+[ \t]*=|[^\s=:]+[ \t]*:|(?!.*[=:]))[ \t]*(["'`]?)(.{8,}?)\1[ \t\r]*$/gm;
  const usual = /^(?:\w+:\/\/[^@?#]{1,40}|[.~]{0,2}\/[\w./ -]{0,60}|[\d.:]+|(?=.{1,15}$)[a-z]+(?:[-_. ][a-z]+)*)$/i;
  const values = [...text.matchAll(set)].map(([, , value = '']) => value);
  return values
    .filter(each => isDistinctiveSecret(each) && !usual.test(each))
    .map(value => ({ kind: 'secret_file', value }));
}

/** Where a command runs, the project that it may change, and whether it has a known form there. */
async function judge(parts: LocalToolServices, argv: readonly string[], cwd: string) {
  const { sandbox, commands: entries } = parts;
  const folder = await sandbox.assertWithin(pathIn(parts, cwd));
  const own = await sandbox.assertWithin(parts.root);
  const project = isIn(folder, own) ? own : (sandbox.roots.find(root => isIn(folder, root)) ?? folder);
  return { verdict: await judgeCommand({ argv, cwd: folder, project, sandbox, entries }), folder, project };
}

/** What a command names in this program's own data folder: a word, or what an option of it is set to. */
function ownTarget(parts: LocalToolServices, argv: readonly string[], cwd: string): string | undefined {
  const folder = pathIn(parts, cwd);
  const named = argv.flatMap(word => [word, word.slice(word.indexOf('=') + 1), word.replace(/^--?[a-z]/i, '')]);
  const places = new Set(['.', ...named, ...named.flatMap(word => word.split(/[,:;]/))]);
  if (places.size > maxPlaces) throw tooMuch(`${maxPlaces} things`);
  return [...places].find(place => !place.includes('\0') && parts.sandbox.isOwn(resolve(folder, place)));
}

const tooMuch = (what: string): Error =>
  inputError(`The command has more than ${what}; it was not looked through, and is not run.`, {
    next: 'Name fewer of them: a directory, or a part of them at a time.',
  });

/** Each word so that no other one looks like it: whatever is not plain is quoted, and signs beyond ASCII are escaped. */
function shownWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return JSON.stringify(word).replace(/[^ -~]/gu, sign => `\\u{${sign.codePointAt(0)?.toString(16)}}`);
}

interface ProcessRun extends Pick<TreeRun, 'clock' | 'cwd' | 'env' | 'signal' | 'platform' | 'mark'> {
  argv: readonly [string, ...string[]];
  /** Milliseconds. */
  timeMs: number;
  /** Bytes that are kept of its output: the first half and the last. */
  maxBytes: number;
}

/**
 * Runs a program, all of which ends with the time limit or the signal. Answers its exit code, undefined when it was ended from outside;
 * what it wrote to both of its outputs, as it came; and whether it took longer than it had (`late`).
 */
export async function runProcess({ argv: [file, ...args], timeMs, maxBytes, mark, ...run }: ProcessRun) {
  throwIfAborted(run.signal);
  const kept = createKept(maxBytes);
  const time = new AbortController();
  const stopTimer = run.clock.after(timeMs, () => time.abort());
  const { code, failure } = await runTree({
    ...{ ...run, file, args, graceMs: 0, onOutput: kept.add },
    env: { ...run.env, [markName]: mark },
    mark: `${markName}=${mark}`,
    signal: AbortSignal.any([run.signal, time.signal]),
  }).finally(stopTimer);
  throwIfAborted(run.signal);
  if (failure !== undefined)
    throw configError(`${file} cannot be started (${failure}).`, { next: 'Run another program, or go on without.' });
  return { exitCode: code, output: kept.text(), late: time.signal.aborted };
}

function createKept(limit: number) {
  const half = Math.floor(limit / 2);
  let [head, tail, left] = [Buffer.alloc(0), Buffer.alloc(0), 0];
  return {
    add(chunk: Buffer) {
      const room = half - head.length;
      if (room > 0) head = Buffer.concat([head, chunk.subarray(0, room)]);
      const end = Buffer.concat([tail, chunk.subarray(room)]);
      tail = end.subarray(-half);
      left += end.length - tail.length;
    },
    text() {
      const gap = left > 0 ? `\n[… ${left} bytes left out …]\n` : '';
      return head.toString('utf8') + gap + tail.toString('utf8');
    },
  };
}

const markName = 'POLYLOGUE_COMMAND_RUN';
