import type { ModelInfo } from '../domain/model.ts';
import { defineTool, type ProviderState } from '../engine/define.ts';

export const listmodels = defineTool({
  name: 'listmodels',
  title: 'List models',
  description: 'The models that can be asked now, by provider: names, aliases, context window, what they can do.',
  toolset: 'core',
  tier: 'user',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: {},
  shape: {
    kind: 'action',
    async run(_args, { models }) {
      const providers = await models.providers();
      const configured = providers.filter(provider => provider.configured);
      const others = providers.filter(provider => !provider.configured && provider.env.length > 0);
      const count = configured.reduce((sum, provider) => sum + provider.models.length, 0);
      return {
        status: 'success',
        content: [
          `# ${count} models of ${configured.length} providers`,
          ...configured.map(section),
          others.length > 0
            ? `## Not configured\n${others.map(({ title, env }) => `- ${title}: set ${env.join(' or ')}`).join('\n')}`
            : '',
          'Use a name, an alias, or provider:model; add :low, :medium, :high … for the effort. "auto" picks for you.',
        ]
          .filter(Boolean)
          .join('\n\n'),
        content_type: 'text',
        metadata: { configured_providers: configured.map(provider => provider.id), models: count },
      };
    },
  },
});

function section({ id, title, models }: ProviderState): string {
  const rows = models.toSorted((a, b) => b.score - a.score || a.id.localeCompare(b.id)).map(line);
  return `## ${title} (${id})\n${rows.join('\n') || '- none'}`;
}

function line(model: ModelInfo): string {
  const can = [
    `${thousands(model.window)} tokens`,
    `score ${model.score}`,
    model.reasoning ? 'reasons' : '',
    model.input.includes('image') ? 'sees images' : '',
    model.allowCodeGeneration ? 'writes code' : '',
  ].filter(Boolean);
  const aliases = model.aliases.length > 0 ? ` (${model.aliases.join(', ')})` : '';
  return `- ${model.id}${aliases}: ${can.join(', ')}`;
}

function thousands(tokens: number): string {
  return tokens >= 1_000_000 ? `${Math.round(tokens / 100_000) / 10}M` : `${Math.round(tokens / 1_000)}k`;
}
