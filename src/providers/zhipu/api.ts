import { isRecord } from '../../core/json.ts';
import { safeCut } from '../../core/text.ts';
import { checkedBaseUrl, type ProviderSettings } from '../../models/provider.ts';
import type { SearchHit } from '../../models/vendor-services.ts';
import type { CodeOf, VendorEndpoint } from '../shared/http.ts';

/** The numbers that Z.ai and BigModel put into error bodies, in words that the classifier knows; the status alone misleads. */
const codes: Readonly<Record<string, readonly number[]>> = {
  authentication: [1000, 1001, 1002, 1003, 1004, 1110, 1111, 1112, 1121],
  insufficient_balance: [1113],
  not_found: [1211],
  permission: [1220],
  context_length: [1261],
  content_filter: [1301],
  rate_limit: [1302, 1303, 1305],
  insufficient_quota: [1304, 1308, 1309, 1310, 1313],
};

const wordOf = new Map(Object.entries(codes).flatMap(([word, numbers]) => numbers.map(number => [`${number}`, word])));

export const zhipuErrorCode: CodeOf = ({ words, message }) => {
  const number = words.split(' ').find(word => wordOf.has(word));
  if (number !== undefined) return wordOf.get(number);
  return /prompt exceeds max length|exceeds the max(imum)? context/i.test(message) ? 'context_length' : undefined;
};

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
export function hitsOf(rows: unknown): SearchHit[] {
  if (!Array.isArray(rows)) return [];
  return rows.filter(isRecord).slice(0, maxHitsRead).flatMap(hitOf);
}

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
const zhipuBaseUrl = 'https://api.z.ai/api/paas/v4';

/** Where GLM is asked for searches, files and embeddings: where it is asked for answers. */
export function zhipuEndpoint({ apiKey = '', baseUrl }: ProviderSettings, now: () => number): VendorEndpoint {
  return {
    provider: 'zhipu',
    baseUrl: checkedBaseUrl(baseUrl ?? zhipuBaseUrl, 'ZHIPU_BASE_URL'),
    headers: { authorization: `Bearer ${apiKey}` },
    keyName: 'ZHIPUAI_API_KEY',
    now,
    codeOf: zhipuErrorCode,
  };
}
