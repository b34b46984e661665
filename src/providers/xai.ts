import type { JSONObject } from '@ai-sdk/provider';
import { closestEffort } from '../models/effort.ts';
import { checkedBaseUrl } from '../models/extras/endpoint.ts';
import { xaiSearches, xaiSearchOptions, xaiSearchTools, xaiUses } from '../models/extras/search/xai-search.ts';
import { createEchoedThoughts } from '../models/extras/wire/echoed-thoughts.ts';
import { withEndsTold } from '../models/extras/wire/told-ends.ts';
import { type CallParams, type Connection, defineProvider, type ProviderSettings } from '../models/provider.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/plain-answer.ts';

const ownBaseUrl = 'https://api.x.ai/v1';
const group = 'Providers';

export const xai = defineProvider({
  id: 'xai',
  names: ['x'],
  title: 'xAI',
  docs: {
    endpoint: 'POST https://api.x.ai/v1/responses',
    quirks: [
      'Nothing is stored there (`store: false`); the sealed thoughts of earlier answers are sent back as long as this process lives.',
      'Roles come in any order, so that instructions stand behind the conversation.',
    ],
    source: 'https://docs.x.ai/docs/api-reference',
  },
  options: {
    apiKey: {
      env: ['XAI_API_KEY'],
      type: 'string',
      doc: 'Key of the xAI API; with it the Grok models can be asked.',
      group,
      secret: true,
    },
    baseUrl: {
      env: ['XAI_BASE_URL'],
      type: 'url',
      doc: 'Whole base address, version path included, of a server that speaks like xAI (Responses); unset: xAI itself.',
      group,
      operatorOnly: true,
    },
  },
  configured: settings => settings.apiKey !== undefined,
  connect,
  searches: xaiSearches,
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createXai } = await import('@ai-sdk/xai');
  // Both are always given: what is left out, the package would take from the environment.
  const apiKey = settings.apiKey ?? '';
  const baseUrl = checkedBaseUrl(settings.baseUrl ?? ownBaseUrl, 'XAI_BASE_URL');
  const vendor = createXai({ apiKey, baseURL: baseUrl, fetch: answerFetch });
  const echoed = createEchoedThoughts('xai');
  return {
    languageModel: ({ id }) => echoed(withEndsTold(vendor.responses(id))),
    providerOptions: params => ({ xai: { ...vendorOptions(params), ...xaiSearchOptions(params) } }),
    vendorTools: xaiSearchTools,
    usesIn: xaiUses,
    // xAI takes roles in any order.
    tailRole: () => 'system',
    imageLimits: () => ({ most: 50, bytes: 20_000_000, allBytes: 30_000_000, types: ['image/png', 'image/jpeg'] }),
    list: signal => liveList({ provider: 'xai', baseUrl, headers: { authorization: `Bearer ${apiKey}` } }, signal),
  };
}

function vendorOptions({ model, effort, cacheKey }: CallParams): JSONObject {
  const sent = effort === undefined ? undefined : closestEffort(effort, model.efforts);
  return {
    store: false,
    ...(cacheKey === undefined ? {} : { promptCacheKey: cacheKey }),
    ...(sent === undefined ? {} : { reasoningEffort: sent }),
  };
}
