import type { ModelInfo } from '../../core/model.ts';
import { defineProvider, type ProviderDefinition } from '../../models/provider.ts';
import { type Program, type Programs, programProviderId, splitProgramId } from './program.ts';

/** Above any answer of an agent; it decides itself how much it writes. */
const mostOutput = 32_000;
/** The time limit as a whole counts: agents are silent for long while their tools work. */
const beyondMs = 60_000;

/** Programs as a provider, so that any tool can ask them: `cli:gemini`. Never chosen unasked, and never asked twice. */
export function programProvider(programs: Programs): ProviderDefinition {
  const limitOf = (id: string) => {
    const { name } = splitProgramId(id);
    const program = programs.list.find(each => each.name === name);
    return program?.timeLimitMs ?? Math.max(0, ...programs.list.map(({ timeLimitMs }) => timeLimitMs));
  };
  return defineProvider({
    id: programProviderId,
    names: [],
    title: 'Agents with a command line',
    options: {},
    onlyByName: true,
    onlyByPrefix: true,
    openEnded: true,
    configured: () => programs.list.length > 0,
    models: () => programs.list.map(infoOf),
    present: programs.installed,
    setUp: `install one of ${programs.list.map(({ name }) => name).join(', ')} where this server runs, and put it into PATH`,
    limits({ id }) {
      const totalMs = limitOf(id);
      return { firstByteMs: totalMs + beyondMs, idleMs: totalMs + beyondMs, totalMs };
    },
    async connect(_settings, around) {
      const { connectPrograms } = await import('./program-model.ts');
      return connectPrograms(programs, around);
    },
  });
}

function infoOf({ name, window }: Program): ModelInfo {
  return {
    provider: programProviderId,
    id: name,
    name,
    aliases: [],
    window,
    maxOutput: Math.min(mostOutput, Math.floor(window / 2)),
    input: ['text'],
    efforts: [],
    reasoning: false,
    temperature: 'none',
    tools: false,
    score: 5,
    allowCodeGeneration: false,
    status: 'active',
  };
}
