import { defineAction } from '../calls/tool.ts';

export const version = defineAction({
  name: 'version',
  title: 'Version',
  description: 'Show version, thread store, project and configured providers.',
  toolset: 'core',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: {},
  async run(_args, { product, models, principal }) {
    const configured = (await models.providers()).filter(provider => provider.configured);
    const lines = [
      `Polylogue ${product.version} (tools ${product.catalogueVersion}) on Node ${product.nodeVersion}, ${product.platform}`,
      `Threads: ${product.store}`,
      `Project: ${principal.root || 'none'}; readable: ${product.roots.join(', ') || 'nothing (set PROJECT_ROOT)'}`,
      `Default model: ${models.defaultModel}`,
      `Providers configured: ${configured.map(provider => provider.title).join(', ') || 'none'}`,
      `Client: ${principal.client ?? 'unnamed'}`,
    ];
    return {
      status: 'success',
      content: lines.join('\n'),
      content_type: 'text',
      metadata: {
        server_version: product.version,
        catalogue_version: product.catalogueVersion,
        default_model: models.defaultModel,
        tools: [...product.tools],
        providers_configured: configured.map(provider => provider.id),
      },
    };
  },
});
