import { z } from 'zod';
import { defineTool } from '../calls/tool.ts';
import { AppError } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import type { ProviderCapabilities } from '../core/model.ts';

export const providerCapabilities = defineTool({
  name: 'provider_capabilities',
  title: 'Provider capabilities',
  description: "Show each provider's key status, endpoints, models and capabilities.",
  toolset: 'ops',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: { provider: z.string().optional() },
  mode: {
    kind: 'action',
    async run({ provider }, { ops }) {
      const all = await ops.capabilities();
      const wanted = provider?.trim().toLowerCase();
      const found = wanted === undefined ? all : all.filter(({ id }) => id === wanted);
      if (wanted !== undefined && found.length === 0) throw unknown(wanted, all);
      return { status: 'success', providers: found.map(documentOf) };
    },
  },
});

function documentOf(provider: ProviderCapabilities): JsonObject {
  const { id, title, configured, local, keys, endpoints, models, can, listedSecondsAgo } = provider;
  return {
    provider: id,
    title,
    configured,
    local: local || undefined,
    keys: Object.fromEntries(Object.entries(keys).map(([name, set]) => [name, set ? 'set' : 'not set'])),
    endpoints: endpoints.length > 0 ? endpoints : undefined,
    models,
    can: Object.entries(can).flatMap(([word, able]) => (able ? [word] : [])),
    listing_age_s: listedSecondsAgo,
  };
}

function unknown(provider: string, all: readonly ProviderCapabilities[]): AppError {
  const allowed = all.map(({ id }) => id);
  return new AppError('input', `Unknown provider "${provider.slice(0, 60)}".`, {
    code: 'PROVIDER_NOT_FOUND',
    class: 'provider',
    next: `Name one of ${allowed.join(', ')}, or none for all of them.`,
    validationErrors: [{ field: 'provider', error: 'unknown', allowed }],
  });
}
