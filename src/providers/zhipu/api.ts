import { type JsonObject, recordsIn } from '../../core/json.ts';
import { safeCut } from '../../core/text.ts';
import { checkedBaseUrl, type ProviderSettings } from '../../models/provider.ts';
import type { SearchHit, WebSearcher } from '../../models/vendor-services.ts';
import { type VendorEndpoint, vendorJson } from '../shared/http.ts';

/** The engine that is searched with: as set, else what the vendor at this address has. */
export function searchEngineOf({ searchEngine }: ProviderSettings, baseUrl: string): string {
  if (searchEngine !== undefined) return searchEngine;
  return URL.parse(baseUrl)?.hostname.endsWith('bigmodel.cn') ? 'search_pro' : 'search-prime';
}

const maxHits = 50;

/** How many hits the engine is asked for: Sogou knows tens alone, and refuses what lies between. */
export function hitsToAsk(engine: string, wanted: number): number {
  const count = Math.max(1, Math.min(maxHits, wanted));
  return engine === 'search_pro_sogou' ? Math.ceil(count / 10) * 10 : count;
}

const maxUrlLength = 4_000;

const maxTitleLength = 300;

const maxSnippetLength = 4_000;

const maxWordLength = 100;

const maxHitsRead = 200;

/** The hits of a `web_search` or `search_result` array. Those without an address of the web are left out. */
export const hitsOf = (rows: unknown): SearchHit[] => recordsIn(rows).slice(0, maxHitsRead).flatMap(hitOf);

function hitOf(row: Record<string, unknown>): SearchHit[] {
  const url = textOf(row.link, maxUrlLength + 1) ?? '';
  if (url.length > maxUrlLength || !/^https?:\/\//i.test(url)) return [];
  return [
    {
      title: textOf(row.title, maxTitleLength) ?? safeCut(url, maxTitleLength),
      url,
      snippet: textOf(row.content, maxSnippetLength),
      date: textOf(row.publish_date, maxWordLength),
      site: textOf(row.media, maxWordLength),
    },
  ];
}

function textOf(value: unknown, maxLength: number): string | undefined {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : safeCut(text, maxLength);
}

/** Z.ai; in China the same stands at open.bigmodel.cn. */
export const zhipuBaseUrl = 'https://api.z.ai/api/paas/v4';

/** Where GLM is asked for searches and embeddings: where it is asked for answers. */
export const zhipuEndpoint = ({ apiKey = '', baseUrl }: ProviderSettings, now: () => number): VendorEndpoint => ({
  provider: 'zhipu',
  baseUrl: checkedBaseUrl(baseUrl ?? zhipuBaseUrl, 'ZHIPU_BASE_URL'),
  headers: { authorization: `Bearer ${apiKey}` },
  keyName: 'ZHIPUAI_API_KEY',
  now,
});

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
