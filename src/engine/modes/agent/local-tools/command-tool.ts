import { resolve } from 'node:path';
import { z } from 'zod';
import { inputError, securityError } from '../../../../core/errors.ts';
import { printablePath } from '../../../../core/text.ts';
import { isIn } from '../../../../workspace/paths.ts';
import { programNamed } from '../../../../workspace/programs.ts';
import type { AgentTool } from './agent-tool.ts';
import { type CommandVerdict, judgeCommand } from './command-policy.ts';
import { defineLocalTool, type LocalToolServices, pathIn } from './local-tool.ts';
import { answerGit } from './read-tools.ts';
import { runProcess } from './run-process.ts';

const maxBytes = 400_000;
/** A form shows a command whole, or it is not run. */
const maxShownLength = 8_000;
/** What a system takes as a path. */
const maxPathLength = 4_096;
/** A command that names more is not looked through. */
const maxPlaces = 1_000;
/** What programs need to find their way; keys and tokens stay here. */
const passedOn = [
  'PATH',
  'PATHEXT',
  'HOME',
  'USERPROFILE',
  'SYSTEMROOT',
  'COMSPEC',
  'TMPDIR',
  'TEMP',
  'TMP',
  'LANG',
  'LC_ALL',
  'TZ',
  'SHELL',
  'USER',
  'JAVA_HOME',
  'GOPATH',
  'GOROOT',
  'GOCACHE',
  'CARGO_HOME',
  'RUSTUP_HOME',
  'NVM_DIR',
  'VIRTUAL_ENV',
  'PNPM_HOME',
];

export function commandTool(parts: LocalToolServices): AgentTool {
  let count = 0;
  return defineLocalTool({
    name: 'run_command',
    description: `Runs a program in the project: no shell, words as a list. Usual commands that test, check and build it${parts.commands ? ` (${parts.commands.join(', ')})` : ''} with files of the project are approved soonest; the user is asked about all others.`,
    effect: 'run',
    fields: {
      argv: z.array(z.string().max(4_000)).min(1).max(100).describe('["npm", "test"]'),
      cwd: z.string().describe('Default: the project').optional(),
    },
    show: ({ argv, cwd }) => `${argv.map(shownWord).join(' ')}${cwd === undefined ? '' : `   (in ${cwd})`}`,
    async approval({ argv, cwd = '.' }) {
      const own = ownTarget(parts, argv, cwd);
      if (own !== undefined) throw inOwnFolder(own);
      if (argv.map(shownWord).join(' ').length > maxShownLength) throw tooMuch(`${maxShownLength} characters`);
      const { verdict, folder } = await judge(parts, argv, cwd);
      if ('form' in verdict) {
        const covers = `every "${verdict.form}" in a known form, with files of the project`;
        return { key: `run_command ${verdict.form}`, covers };
      }
      return {
        key: `run_command ${JSON.stringify([folder, ...argv])}`,
        covers: 'exactly these words in this folder',
        asked: `it needs an approval of its own (${verdict.unknown}).`,
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
        env: { ...environment(parts.childEnv), PATH: path },
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

function isOwn({ sandbox }: LocalToolServices, path: string): boolean {
  return !path.includes('\0') && sandbox.isOwn(path);
}

function inOwnFolder(place: string): Error {
  return securityError(`${printablePath(place)} is inside the data folder of Polylogue (POLYLOGUE_HOME).`, {
    next: 'Go on without it: nothing there is changed for a model.',
  });
}

function tooMuch(what: string): Error {
  return inputError(`The command has more than ${what}; it was not looked through, and is not run.`, {
    next: 'Name fewer of them: a folder, or a part of them at a time.',
  });
}

function environment(own: LocalToolServices['childEnv']): Record<string, string> {
  const kept = passedOn.flatMap(name => (own[name] === undefined ? [] : [[name, own[name]] as const]));
  return { ...Object.fromEntries(kept), CI: '1', NO_COLOR: '1', GIT_TERMINAL_PROMPT: '0' };
}

/** Each word so that no other one looks like it: whatever is not plain is quoted, and signs beyond ASCII are escaped. */
function shownWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return JSON.stringify(word).replace(/[^ -~]/gu, sign => `\\u{${sign.codePointAt(0)?.toString(16)}}`);
}
