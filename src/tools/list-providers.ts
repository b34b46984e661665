import { defineAction } from '../calls/tool.ts';

export const listProviders = defineAction({
  name: 'list_providers',
  title: 'List providers',
  description: 'List providers with short names and whether each is configured.',
  toolset: 'wrapper',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: {},
  async run(_args, { models }) {
    const providers = await models.providers();
    return {
      tool_name: 'list_providers',
      status: 'success',
      result: {
        providers: providers.map(({ id, names, configured }) => ({ name: id, short: names[0] ?? id, configured })),
      },
    };
  },
});
