import type { JsonObject } from '../../core/json.ts';
import { hitsToAsk } from '../../models/extras/glm/search-engine.ts';
import { hitsOf, type SearchHit } from '../../models/extras/glm/search-hits.ts';
import { type VendorDoor, vendorJson } from '../shared/http.ts';

/** One search of the web. */
export interface SearchRequest {
  query: string;
  /** 1 to 50. */
  count: number;
  /** How old pages may be; absent: any age. */
  recency?: 'oneDay' | 'oneWeek' | 'oneMonth' | 'oneYear' | 'noLimit';
  /** The only site to search. */
  domain?: string;
  /** The vendor's id of an engine; absent: the configured one. */
  engine?: string;
}

/** Searches the web without a model. Throws an `AppError`. */
export interface WebSearcher {
  /** Id of the provider that searches. */
  provider: string;
  /** Searched with where a request names none. */
  engine: string;
  search(request: SearchRequest, signal: AbortSignal): Promise<SearchHit[]>;
}

const timeoutMs = 60_000;

/** The search of Z.ai and BigModel that stands by itself. */
export function createGlmWebSearch(door: VendorDoor, engine: string): WebSearcher {
  return {
    provider: door.provider,
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
      const answer = await vendorJson(door, {
        method: 'POST',
        path: '/web_search',
        body,
        headers,
        what,
        timeoutMs,
        signal,
      });
      return hitsOf(answer.search_result).slice(0, count);
    },
  };
}
