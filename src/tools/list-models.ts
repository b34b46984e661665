import { z } from 'zod';
import { defineTool, type ProviderState } from '../calls/tool.ts';
import { AppError } from '../core/errors.ts';

export const listModels = defineTool({
  name: 'list_models',
  title: 'List provider models',
  description: 'List one provider\'s models, as written after "provider:".',
  toolset: 'wrapper',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: { provider: z.string().min(1).describe('Name or short name') },
  mode: {
    kind: 'action',
    async run({ provider: wanted }, { models }) {
      const providers = await models.providers();
      const word = wanted.trim().replace(/:$/, '').toLowerCase();
      const found = providers.find(({ id }) => id === word) ?? providers.find(({ names }) => names.includes(word));
      if (!found) throw unknown(wanted, providers);
      const ids = found.models.toSorted((a, b) => b.score - a.score || a.id.localeCompare(b.id)).map(({ id }) => id);
      const missing = `${found.title} is not configured: ${found.setUp || 'set it up'} before its models are asked.`;
      return {
        tool_name: 'list_models',
        status: 'success',
        result: { provider: found.id, models: ids },
        ...(!found.configured && { metadata: { warnings: [missing] } }),
      };
    },
  },
});

function unknown(wanted: string, providers: readonly ProviderState[]): AppError {
  const allowed = providers.map(({ id }) => id);
  return new AppError('input', `Unknown provider "${wanted}".`, {
    code: 'PROVIDER_NOT_FOUND',
    class: 'unknown',
    next: `Name one of ${providers.map(({ id, names }) => (names[0] ? `${id} (${names[0]})` : id)).join(', ')}.`,
    validationErrors: [{ field: 'provider', error: 'unknown provider', allowed }],
  });
}
