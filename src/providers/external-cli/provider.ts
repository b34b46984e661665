import type { ModelInfo } from '../../core/model.ts';
import { defineProvider, type ProviderDefinition, plainModel } from '../../models/provider.ts';
import { type CliRunner, cliProviderId, type ExternalCli, splitCliId } from './contract.ts';

/** Above any answer of an agent; it decides itself how much it writes. */
const maxOutput = 32_000;
/** The time limit as a whole counts: agents are silent for long while their tools work. */
const beyondMs = 60_000;

/** Programs as a provider, so that any tool can ask them: `cli:gemini`. Never chosen unasked, and never asked twice. */
export function cliProvider(runner: CliRunner): ProviderDefinition {
  const limitOf = (id: string) => {
    const { name } = splitCliId(id);
    const cli = runner.list.find(each => each.name === name);
    return cli?.timeLimitMs ?? Math.max(0, ...runner.list.map(({ timeLimitMs }) => timeLimitMs));
  };
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
      const totalMs = limitOf(id);
      return { firstByteMs: totalMs + beyondMs, idleMs: totalMs + beyondMs, totalMs };
    },
    async connect(_settings, context) {
      const { connectClis } = await import('./cli-model.ts');
      return connectClis(runner, context);
    },
  });
}

function infoOf({ name, window }: ExternalCli): ModelInfo {
  const most = Math.min(maxOutput, Math.floor(window / 2));
  return plainModel({ provider: cliProviderId, id: name, window, maxOutput: most, temperature: 'none', score: 5 });
}
