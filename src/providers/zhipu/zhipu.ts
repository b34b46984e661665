import type { JSONObject, LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { recordIn } from '../../core/json.ts';
import type { ModelInfo } from '../../core/model.ts';
import { passedUse, usePart } from '../../models/fees.ts';
import { type CallParams, closestEffort, keyedProvider, setting } from '../../models/provider.ts';
import { liveList } from '../shared/list-models.ts';
import { answerFetch } from '../shared/non-streaming.ts';
import { adjustedModel, mappedParts } from '../shared/stream-transforms.ts';
import { hitsOf, hitsToAsk, searchEngineOf, zhipuBaseUrl, zhipuEndpoint } from './api.ts';

/**
 * GLM as its package gives it, with what that leaves out: hits of a search as sources, and that it searched with this engine.
 */
export function zhipuModel(model: LanguageModelV4, engine: string): LanguageModelV4 {
  const asking = adjustedModel(model, options => ({ ...options, includeRawChunks: true }));
  return mappedParts(asking, ({ providerOptions }) => {
    const search = { kind: 'web_search', amount: 1, of: engine } as const;
    // Hits may come in several chunks; they are of one search.
    let searched = false;
    return part => {
      const parts = part.type === 'raw' ? [...sourcesOf(part.rawValue), part] : [part];
      // It searches before it answers, and tells so at the end.
      if (part.type === 'text-start' && providerOptions?.zhipu?.vendorSearch)
        return [usePart({ ...search, provisional: true }), ...parts];
      if (searched || !parts.some(({ type }) => type === 'source')) return parts;
      searched = true;
      return [usePart(search), ...parts];
    };
  });
}

const sourcesOf = (chunk: unknown): LanguageModelV4StreamPart[] =>
  hitsOf(recordIn(chunk).web_search).map(({ title, url, snippet, date }) => ({
    type: 'source',
    sourceType: 'url',
    id: url,
    url,
    title,
    providerMetadata: { zhipu: { ...(snippet && { snippet }), ...(date && { date }) } },
  }));

export const zhipu = keyedProvider({
  id: 'zhipu',
  names: ['z', 'glm', 'zai'],
  title: 'Zhipu (GLM)',
  docs: {
    endpoint: 'POST https://api.z.ai/api/paas/v4/chat/completions',
    quirks: [
      'Its search of the web is a tool next to the messages (`web_search`); the hits come with the answer and are citations.',
      'Older models only switch thinking on and off; from 5.2 on it has levels, and from 5.3 on it is always on.',
      'The same models are at BigModel in China, with another address and other search engines.',
    ],
    source: 'https://docs.z.ai',
  },
  key: [
    ['ZHIPUAI_API_KEY', 'GLM_API_KEY', 'ZAI_API_KEY'],
    'Key of Z.ai or BigModel; with it the GLM models can be asked and the web can be searched.',
  ],
  address: [
    ['ZHIPU_BASE_URL', 'GLM_API_URL'],
    'Whole base address of GLM, version path included; unset: Z.ai. In China: https://open.bigmodel.cn/api/paas/v4.',
  ],
  baseUrl: zhipuBaseUrl,
  options: {
    searchEngine: setting(
      ['GLM_SEARCH_ENGINE'],
      'Search engine that GLM uses, by its id there; unset: search-prime at Z.ai, search_pro at BigModel.',
    ),
  },
  async connect({ settings }) {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    const endpoint = zhipuEndpoint(settings, () => 0);
    const engine = searchEngineOf(settings, endpoint.baseUrl);
    const vendor = createOpenAICompatible({
      name: 'zhipu',
      baseURL: endpoint.baseUrl,
      headers: { ...endpoint.headers },
      includeUsage: true,
      fetch: answerFetch,
      transformRequestBody: withSearch,
    });
    return {
      languageModel: ({ id }) => zhipuModel(vendor.chatModel(id), engine),
      providerOptions: params => ({ zhipu: { ...thinking(params), ...search(params, engine) } }),
      usesIn: passedUse,
      sendsStrings: () => true,
      tailRole: () => 'user',
      list: signal => liveList(endpoint, signal),
    };
  },
  searches: (model: ModelInfo) => model.tools,
});

/** Older models only switch it on and off; from 5.2 on it has levels, and from 5.3 on it can't be switched off. */
function thinking({ model, effort }: CallParams): JSONObject {
  const sent = closestEffort(effort, model.efforts);
  if (sent === undefined) return {};
  if (sent === 'none') return { thinking: { type: 'disabled' } };
  const levelled = model.efforts.some(known => known === 'max' || known === 'low');
  return { thinking: { type: 'enabled' }, ...(levelled && { reasoningEffort: sent }) };
}

/** The adapter knows no tools of the vendor's own: they travel as an option and become one when the body is made. */
function search({ model, webSearch }: CallParams, engine: string): JSONObject {
  if (!webSearch || !model.tools) return {};
  const count = hitsToAsk(engine, webSearch.maxResults);
  const settings = { enable: true, search_engine: engine, search_result: true, count, content_size: 'medium' };
  return { vendorSearch: settings };
}

function withSearch({ vendorSearch, ...body }: Record<string, unknown>): Record<string, unknown> {
  // There is no other word for it than `auto`: a model that is to call nothing has to be told so.
  if (vendorSearch === undefined) return Array.isArray(body.tools) ? { ...body, tool_choice: 'auto' } : body;
  // Without the word `auto` older models write the call of a tool into their text.
  return { ...body, tools: [{ type: 'web_search', web_search: vendorSearch }], tool_choice: 'auto' };
}
