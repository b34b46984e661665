import { z } from 'zod';
import { defineAction } from '../calls/tool.ts';
import { unknownProvider } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import type { ProviderCapabilities } from '../core/model.ts';

export const providerCapabilities = defineAction({
  name: 'provider_capabilities',
  title: 'Provider capabilities',
  description: "Show each provider's key status, endpoints, models and capabilities.",
  toolset: 'ops',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: { provider: z.string().optional() },
  async run({ provider }, { ops }) {
    const all = await ops.capabilities();
    const wanted = provider?.trim().toLowerCase();
    const found = wanted === undefined ? all : all.filter(({ id }) => id === wanted);
    const ids = all.map(({ id }) => id);
    if (wanted !== undefined && found.length === 0)
      throw unknownProvider(wanted, `Name one of ${ids.join(', ')}, or none for all of them.`, ids);
    return { status: 'success', providers: found.map(documentOf) };
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
