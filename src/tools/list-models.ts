import { z } from 'zod';
import { defineAction } from '../calls/tool.ts';
import { unknownProvider } from '../core/errors.ts';

export const listModels = defineAction({
  name: 'list_models',
  title: 'List provider models',
  description: 'List one provider\'s models, as written after "provider:".',
  toolset: 'wrapper',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: { provider: z.string().min(1).describe('Name or short name') },
  async run({ provider: wanted }, { models }) {
    const providers = await models.providers();
    const word = wanted.trim().replace(/:$/, '').toLowerCase();
    const found = providers.find(({ id }) => id === word) ?? providers.find(({ names }) => names.includes(word));
    if (!found) {
      const known = providers.map(({ id, names: [short] }) => (short ? `${id} (${short})` : id)).join(', ');
      const allowed = providers.map(({ id }) => id);
      throw unknownProvider(wanted, `Name one of ${known}.`, allowed);
    }
    const ids = found.models.toSorted((a, b) => b.score - a.score || a.id.localeCompare(b.id)).map(({ id }) => id);
    const missing = `${found.title} is not configured: ${found.setUp || 'set it up'} before its models are asked.`;
    return {
      tool_name: 'list_models',
      status: 'success',
      result: { provider: found.id, models: ids },
      ...(!found.configured && { metadata: { warnings: [missing] } }),
    };
  },
});
