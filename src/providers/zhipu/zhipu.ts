import type { JSONObject, LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { type JsonObject, recordIn, recordsIn } from '../../core/json.ts';
import type { ModelInfo } from '../../core/model.ts';
import { safeCut } from '../../core/text.ts';
import { passedUse, usePart } from '../../models/fees.ts';
import type { CallParams, ProviderSettings, VendorEndpoint } from '../../models/provider.ts';
import { keyedProvider, setting } from '../../models/provider.ts';
import type { SearchHit, WebSearcher } from '../../models/vendor-services.ts';
import { vendorJson } from '../shared/http.ts';
import { withSchemaInPrompt } from '../shared/json-schema.ts';
import { liveList } from '../shared/list-models.ts';
import { chatPackage } from '../shared/openai-dialect.ts';
import { mappedParts } from '../shared/stream-transforms.ts';
import { switchedThinking, withoutForcedChoice } from '../shared/thinking.ts';

/** GLM as its package gives it, with what that leaves out: hits of a search as sources, and searches by this engine. */
export const zhipuModel = (model: LanguageModelV4, engine: string): LanguageModelV4 =>
  mappedParts(model, ({ providerOptions }) => {
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
  baseUrl: 'https://api.z.ai/api/paas/v4',
  options: {
    searchEngine: setting(
      ['GLM_SEARCH_ENGINE'],
      'Search engine that GLM uses, by its id there; unset: search-prime at Z.ai, search_pro at BigModel.',
    ),
  },
  async connect(access) {
    const engine = searchEngineOf(access.settings, access.baseUrl);
    const vendor = await chatPackage('zhipu', access, { transformRequestBody: withSearch });
    return {
      languageModel: ({ id }) =>
        zhipuModel(
          withoutForcedChoice(withSchemaInPrompt(vendor.chatModel(id)), () => true),
          engine,
        ),
      providerOptions: params => ({ zhipu: { ...thinking(params), ...search(params, engine) } }),
      usesIn: passedUse,
      sendsStrings: () => true,
      echoesThoughts: 'wanted',
      list: signal => liveList(access, signal),
    };
  },
  searches: (model: ModelInfo) => model.tools,
});

function thinking(params: CallParams): JSONObject {
  const levelled = params.model.efforts.some(known => known === 'max' || known === 'low');
  return switchedThinking(params, sent => ({
    thinking: { type: 'enabled' },
    ...(levelled && { reasoningEffort: sent }),
  }));
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

/** The engine that is searched with: as set, else what the vendor at this address has. */
export function searchEngineOf({ searchEngine }: ProviderSettings, baseUrl: string): string {
  if (searchEngine !== undefined) return searchEngine;
  return URL.parse(baseUrl)?.hostname.endsWith('bigmodel.cn') ? 'search_pro' : 'search-prime';
}

/** How many hits the engine is asked for, 50 at the most: Sogou knows tens alone, and refuses what lies between. */
export function hitsToAsk(engine: string, wanted: number): number {
  const count = Math.max(1, Math.min(50, wanted));
  return engine === 'search_pro_sogou' ? Math.ceil(count / 10) * 10 : count;
}

/** Hits that are read of one answer, and characters of what each of them has. */
const most = { hits: 200, url: 4_000, title: 300, snippet: 4_000, word: 100 };

/** The hits of a `web_search` or `search_result` array. Those without an address of the web are left out. */
const hitsOf = (rows: unknown): SearchHit[] => recordsIn(rows).slice(0, most.hits).flatMap(hitOf);

function hitOf(row: Record<string, unknown>): SearchHit[] {
  const url = textOf(row.link, most.url + 1) ?? '';
  if (url.length > most.url || !/^https?:\/\//i.test(url)) return [];
  return [
    {
      title: textOf(row.title, most.title) ?? safeCut(url, most.title),
      url,
      snippet: textOf(row.content, most.snippet),
      date: textOf(row.publish_date, most.word),
      site: textOf(row.media, most.word),
    },
  ];
}

function textOf(value: unknown, maxLength: number): string | undefined {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : safeCut(text, maxLength);
}

const timeoutMs = 60_000;

/** The search of Z.ai and BigModel that stands by itself. */
export const createZhipuWebSearch = (endpoint: VendorEndpoint, engine: string): WebSearcher => ({
  provider: endpoint.provider,
  engine,
  async search({ query, count, recency, domain, engine: own = engine }, signal) {
    const body: JsonObject = {
      search_engine: own,
      search_query: query,
      // BigModel, whose engines these are, wants it said.
      ...(own.startsWith('search_') && { search_intent: false }),
      count: hitsToAsk(own, count),
      ...(domain !== undefined && { search_domain_filter: domain }),
      ...(recency !== undefined && { search_recency_filter: recency }),
      content_size: 'medium',
    };
    const headers = { 'accept-language': 'en-US,en' };
    const what = 'a search of the web';
    const answer = await vendorJson(endpoint, { path: '/web_search', body, headers, what, timeoutMs, signal });
    return hitsOf(answer.search_result).slice(0, count);
  },
});
