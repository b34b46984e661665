import { readFile } from 'node:fs/promises';
import { cancelledError, inputError } from '../../core/errors.ts';
import type { ModelInfo } from '../../core/model.ts';
import { safeCut } from '../../core/text.ts';
import { defineProvider, type ProviderDefinition, plainModel } from '../../models/provider.ts';
import type { AskCliParts } from './ask-cli.ts';
import type { ConfiguredCli } from './configured-clis.ts';
import { type CliRunner, cliProviderId, splitCliId } from './contract.ts';

/** What an agent is told to be, where its configuration has no prompt of its own for the role. */
export const builtInRoles: Readonly<Record<string, string>> = {
  default: [
    'Work on the request as a peer would: look at the code with your own tools before you judge it, and say which assumptions you made.',
    'Answer in concise Markdown. Refer to code as file:line, name the commands that you ran, and quote only what matters.',
    'What would do harm you do not do: say why, and what would be safer.',
  ].join('\n'),
  planner: [
    'Make a plan; change nothing. Look at the code until you know what the request touches.',
    'Give phases in their order, each with its goal, the files it changes, how it is checked and what could go wrong. Name what has to be decided first, and by whom.',
    'Where two ways are open, compare them in a few lines and choose one.',
  ].join('\n'),
  codereviewer: [
    'Review the code that the request names; change nothing. Read what calls it and what it calls as far as you need to judge it.',
    'Report each finding with its severity (critical, high, medium, low), file:line, what goes wrong and how to fix it; the worst first. Correctness and security count before style.',
    'Say what is good in one line, and what you did not look at.',
  ].join('\n'),
};

/** Told to every agent, whatever its role. */
export const guidance = (title: string): string =>
  [
    `You are running as ${title} without a terminal, asked by another agent. Nobody can answer questions or approve anything while you work: if something is missing, say so in your answer.`,
    'Files are named, not included: read them yourself, and search with your own tools. Do not ask the one who asked you to do it, and do not call clink.',
    'End a long answer with a summary of at most 500 words between <SUMMARY> and </SUMMARY>.',
  ].join('\n');

/** What the tool `clink` has to know of the CLIs. */
export type CliRegistry = ReturnType<typeof createCliRegistry>['cliRegistry'];

/** The CLIs of this machine, and the same as models: `cli:name`. Nothing is looked for, read or loaded before one of them is asked. */
export function createCliRegistry(parts: AskCliParts, clis: readonly ConfiguredCli[]) {
  const running = new Set<Promise<unknown>>();
  const closing = new AbortController();
  const names = clis.map(({ name }) => name);
  const find = (name: string): ConfiguredCli => {
    const found = clis.find(cli => cli.name === name.trim().toLowerCase());
    if (!found)
      throw inputError(`Unknown CLI "${safeCut(name, 80)}".`, {
        next: `Name one of ${names.join(', ')}; docs/clis.md says how another one is added.`,
        validationErrors: [{ field: 'cli_name', error: 'unknown', allowed: [...names] }],
      });
    return found;
  };
  let lookAgainAt = 0;
  let found: Promise<ReadonlySet<string>> = Promise.resolve(new Set());
  const cliRunner: CliRunner = {
    list: clis,
    installed() {
      const now = parts.clock.monotonic();
      if (now >= lookAgainAt) {
        lookAgainAt = now + lookEveryMs;
        found = look(parts, clis);
      }
      return found;
    },
    async ask(question) {
      const { askCli } = await import('./ask-cli.ts');
      const signal = AbortSignal.any([question.signal, closing.signal]);
      const answer = askCli(parts, find(question.name), { ...question, signal });
      running.add(answer);
      return answer.finally(() => running.delete(answer));
    },
    async close() {
      closing.abort(cancelledError('The server is closing.'));
      await Promise.allSettled(running);
    },
  };
  return { cliRegistry: { names, mayWrite: parts.mayWrite, find, rolePrompt }, cliRunner };
}

/** To look for all CLIs in all folders of PATH is a tenth of a small call: a CLI that was installed just now is found this much later. */
const lookEveryMs = 2_000;

async function look(parts: AskCliParts, clis: readonly ConfiguredCli[]): Promise<ReadonlySet<string>> {
  const { findProgram } = await import('../../workspace/programs.ts');
  const { searchOf } = await import('./ask-cli.ts');
  const found = await Promise.all(clis.map(({ executable }) => findProgram(executable, searchOf(parts))));
  return new Set(clis.filter((_, at) => found[at] !== undefined).map(({ name }) => name));
}

const maxPromptLength = 100_000;

/** What an agent is told to be in one of its roles, and what is wrong with that. */
async function rolePrompt({ roles }: Pick<ConfiguredCli, 'roles'>, name: string) {
  const role = roles.find(each => each.name === name);
  const builtIn = builtInRoles[name] ?? builtInRoles.default ?? '';
  if (role?.promptFile === undefined) return { prompt: builtIn, warnings: [] };
  try {
    const prompt = safeCut((await readFile(role.promptFile, 'utf8')).trim(), maxPromptLength);
    return { prompt: prompt || builtIn, warnings: [] };
  } catch {
    // Files that were copied from PAL name prompts that only PAL has.
    const warning = `The prompt of the role "${name}" cannot be read (${role.promptFile}); the built-in one is used.`;
    return { prompt: builtIn, warnings: [warning] };
  }
}

/** Above any answer of an agent; it decides itself how much it writes. */
const maxOutput = 32_000;
/** The time limit as a whole counts: agents are silent for long while their tools work. */
const beyondMs = 60_000;

/** Programs as a provider, so that any tool can ask them: `cli:gemini`. Never chosen unasked, and never asked twice. */
export function cliProvider(runner: CliRunner): ProviderDefinition {
  return defineProvider({
    id: cliProviderId,
    names: [],
    title: 'Agents with a command line',
    options: {},
    onlyByName: true,
    onlyByPrefix: true,
    openEnded: true,
    configured: () => runner.list.length > 0,
    models: () => runner.list.map(infoOf),
    present: runner.installed,
    setUp: `install one of ${runner.list.map(({ name }) => name).join(', ')} where this server runs, and put it into PATH`,
    limits({ id }) {
      const cli = runner.list.find(({ name }) => name === splitCliId(id).name);
      const totalMs = cli?.timeLimitMs ?? Math.max(0, ...runner.list.map(({ timeLimitMs }) => timeLimitMs));
      return { firstByteMs: totalMs + beyondMs, idleMs: totalMs + beyondMs, totalMs };
    },
    async connect(_settings, context) {
      const { connectClis } = await import('./cli-model.ts');
      return connectClis(runner, context);
    },
  });
}

function infoOf({ name, window }: Pick<ConfiguredCli, 'name' | 'window'>): ModelInfo {
  const most = Math.min(maxOutput, Math.floor(window / 2));
  return plainModel({ provider: cliProviderId, id: name, window, maxOutput: most, temperature: 'none', score: 5 });
}
