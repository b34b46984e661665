import { z } from 'zod';
import { defineAction, type ProviderState } from '../calls/tool.ts';
import { jsonOf, snakeCased } from '../core/json.ts';
import type { ModelInfo } from '../core/model.ts';
import { counted } from '../core/text.ts';

export const listmodels = defineAction({
  name: 'listmodels',
  title: 'List models',
  description: 'Models that can be asked, by provider: names, aliases, window, abilities.',
  toolset: 'core',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: { filter: z.string().optional() },
  renamed: { provider: 'filter', model: 'filter', search: 'filter', query: 'filter' },
  async run({ filter = '' }, { models }) {
    const providers = await models.providers({ fresh: true });
    const all = providers.filter(provider => provider.configured);
    const configured = filter === '' ? all : all.flatMap(provider => matching(provider, filter));
    const others = providers.filter(each => !each.configured && each.setUp !== '' && !each.onlyByPrefix);
    const count = configured.reduce((sum, provider) => sum + provider.models.length, 0);
    return {
      status: 'success',
      content: [
        `# ${counted(count, 'model')} of ${counted(configured.length, 'provider')}${filter && ` match "${filter}"`}`,
        ...configured.map(section),
        filter !== '' && count === 0 ? 'Call listmodels without filter for all of them.' : '',
        filter === '' && others.length > 0
          ? `## Not configured\n${others.map(({ title, setUp }) => `- ${title}: ${setUp}`).join('\n')}`
          : '',
        'Use a name, an alias, or provider:model; add :low, :medium, :high … for the effort. "auto" picks for you.',
      ]
        .filter(Boolean)
        .join('\n\n'),
      content_type: 'text',
      metadata: {
        configured_providers: configured.map(provider => provider.id),
        models: count,
        live_lists: Object.fromEntries(
          configured.flatMap(({ id, listing }) => (listing ? [[id, jsonOf(snakeCased(listing))]] : [])),
        ),
      },
    };
  },
});

/** The provider with the models whose lines, its own name included, have every word of a filter; none of it where there are none. */
function matching(provider: ProviderState, filter: string): ProviderState[] {
  const words = filter.toLowerCase().split(/\s+/);
  const models = provider.models.filter(model => {
    const text = `${provider.id}:${line(model)} ${provider.title}`.toLowerCase().replace('- ', '');
    return words.every(word => text.includes(word));
  });
  return models.length > 0 ? [{ ...provider, models }] : [];
}

function section({ id, title, models, listing, onlyByPrefix }: ProviderState): string {
  const best = models.toSorted((a, b) => b.score - a.score || a.id.localeCompare(b.id));
  const rows = best.map(model => (onlyByPrefix ? `- ${id}:${model.id}: asked only by this name` : line(model)));
  const listed = listing ? `\n${listingText(listing)}` : '';
  return `## ${title} (${id})${listed}\n${rows.join('\n') || '- none'}`;
}

/** Whether what stands below is what the vendor itself says, and since when. */
function listingText({ models, ageSeconds, failure }: NonNullable<ProviderState['listing']>): string {
  const age = ageSeconds === undefined ? undefined : ageText(ageSeconds);
  if (failure === undefined) return `Live list of ${models} models, ${age ?? 'of now'}.`;
  return `${age ? `List of ${models} models, ${age}` : 'No live list'}: the vendor did not answer with one now.`;
}

function ageText(seconds: number): string {
  if (seconds < 120) return `${seconds} s old`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min old`;
  return `${Math.round(seconds / 3_600)} h old`;
}

function line(model: ModelInfo): string {
  const can = [
    `${model.window >= 1_000_000 ? `${Math.round(model.window / 100_000) / 10}M` : `${Math.round(model.window / 1_000)}k`} tokens`,
    `score ${model.score}`,
    model.reasoning ? 'reasons' : '',
    model.input.includes('image') ? 'sees images' : '',
    model.allowCodeGeneration ? 'writes code' : '',
    model.status === 'deprecated' ? `until ${model.life?.retired}` : '',
  ].filter(Boolean);
  const aliases = model.aliases.length > 0 ? ` (${model.aliases.join(', ')})` : '';
  return `- ${model.id}${aliases}: ${can.join(', ')}`;
}
