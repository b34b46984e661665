import { z } from 'zod';
import type { AgentTool } from '../agent.ts';
import { commandProblem } from './command-policy.ts';
import { hand } from './hand.ts';
import { type HandParts, pathIn } from './hand-parts.ts';
import { runProgram } from './run-program.ts';

const mostBytes = 400_000;
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

export function runCommandHand(parts: HandParts): AgentTool {
  let count = 0;
  return hand({
    name: 'run_command',
    description: `Runs a program of the project: no shell, words as a list. Allowed beginnings: ${parts.commands.join(', ')}.`,
    effect: 'run',
    fields: {
      argv: z.array(z.string().max(4_000)).min(1).max(100).describe('["npm", "test"]'),
      cwd: z.string().describe('Default: the project').optional(),
    },
    show: ({ argv, cwd }) => `${argv.map(shownWord).join(' ')}${cwd === undefined ? '' : `   (in ${cwd})`}`,
    verify: async ({ argv }) => commandProblem(argv, parts.commands),
    async run({ argv: [program = '', ...args], cwd = '.' }, { signal, callId }) {
      const folder = await parts.sandbox.assertWithin(pathIn(parts, cwd));
      const { exitCode, output, late } = await runProgram({
        clock: parts.clock,
        argv: [program, ...args],
        cwd: folder,
        env: environment(parts.programEnv),
        timeMs: parts.commandMs,
        mostBytes,
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

function environment(own: HandParts['programEnv']): Record<string, string> {
  const kept = passedOn.flatMap(name => (own[name] === undefined ? [] : [[name, own[name]] as const]));
  return { ...Object.fromEntries(kept), CI: '1', NO_COLOR: '1', GIT_TERMINAL_PROMPT: '0' };
}

function shownWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word);
}
