import { resolve } from 'node:path';
import { z } from 'zod';
import { inputError, securityError } from '../../../../core/errors.ts';
import { printablePath } from '../../../../core/text.ts';
import type { AgentTool } from './agent-tool.ts';
import { commandProblem } from './command-policy.ts';
import { defineLocalTool, type LocalToolServices, pathIn } from './local-tool.ts';
import { runProcess } from './run-process.ts';

const maxBytes = 400_000;
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
    description: `Runs a program of the project: no shell, words as a list. Allowed beginnings: ${parts.commands.join(', ')}.`,
    effect: 'run',
    fields: {
      argv: z.array(z.string().max(4_000)).min(1).max(100).describe('["npm", "test"]'),
      cwd: z.string().describe('Default: the project').optional(),
    },
    show: ({ argv, cwd }) => `${argv.map(shownWord).join(' ')}${cwd === undefined ? '' : `   (in ${cwd})`}`,
    async verify({ argv, cwd = '.' }) {
      const own = ownTarget(parts, argv, cwd);
      if (own !== undefined) throw inOwnFolder(own);
      return commandProblem(argv, parts.commands);
    },
    async run({ argv: [program = '', ...args], cwd = '.' }, { signal, callId }) {
      const folder = await parts.sandbox.assertWithin(pathIn(parts, cwd));
      const { exitCode, output, late } = await runProcess({
        clock: parts.clock,
        argv: [program, ...args],
        cwd: folder,
        env: environment(parts.childEnv),
        timeMs: parts.commandMs,
        maxBytes,
        signal,
        mark: `${parts.reqId}-${callId.replace(/[^\w-]/g, '_')}-${++count}`,
        platform: process.platform,
      });
      const end = late
        ? `It took longer than ${Math.round(parts.commandMs / 1_000)} s and was ended.`
        : `Exit code: ${exitCode ?? 'none, it was ended'}`;
      return { text: `${end}\n${output}`, failed: exitCode !== 0 };
    },
  });
}

/** What a command names in this program's own data folder: a word, or what an option of it is set to. */
function ownTarget(parts: LocalToolServices, argv: readonly string[], cwd: string): string | undefined {
  const folder = pathIn(parts, cwd);
  const named = argv.flatMap(word => [word, word.slice(word.indexOf('=') + 1), word.replace(/^--?[a-z]/i, '')]);
  const places = new Set(['.', ...named, ...named.flatMap(word => word.split(/[,:;]/))]);
  const likely = [...places].filter(place => place !== '' && place.length <= maxPathLength);
  if (likely.length > maxPlaces) throw tooMuch();
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

function tooMuch(): Error {
  return inputError(`The command names more than ${maxPlaces} things; it was not looked through, and is not run.`, {
    next: 'Name fewer of them: a folder, or a part of them at a time.',
  });
}

function environment(own: LocalToolServices['childEnv']): Record<string, string> {
  const kept = passedOn.flatMap(name => (own[name] === undefined ? [] : [[name, own[name]] as const]));
  return { ...Object.fromEntries(kept), CI: '1', NO_COLOR: '1', GIT_TERMINAL_PROMPT: '0' };
}

function shownWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word);
}
