import type { JsonObject } from '../../core/json.ts';
import type { VendorFiles, WebSearcher } from '../../models/vendor-services.ts';
import { filesApi } from '../shared/file-uploads.ts';
import { type VendorEndpoint, vendorJson } from '../shared/http.ts';
import { hitsOf, hitsToAsk } from './api.ts';

const maxBytes = 100 * 1024 * 1024;

const maxFiles = 100;

/** Files of GLM: kept for its agents. No model of it reads them in a chat, and their text can't be fetched. */
export function createZhipuFiles(endpoint: VendorEndpoint): VendorFiles {
  return filesApi({ endpoint, purpose: 'agent', maxBytes, maxFiles });
}

const timeoutMs = 60_000;

/** The search of Z.ai and BigModel that stands by itself. */
export function createZhipuWebSearch(endpoint: VendorEndpoint, engine: string): WebSearcher {
  return {
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
  };
}
