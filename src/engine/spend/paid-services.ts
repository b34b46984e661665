import type { Embedder } from '../../core/ports.ts';
import { estimateTokens } from '../../core/tokens.ts';
import type { SearchHit } from '../../models/extras/glm/search-hits.ts';
import type { Pay, Service } from '../../models/paid-services.ts';
import type { VendorEmbedder } from '../../providers/embeddings.ts';
import type { SearchRequest, WebSearcher } from '../../providers/zhipu/services.ts';

/** Searches the web for somebody who pays for it. */
export interface PaidSearcher {
  /** Id of the provider that searches. */
  provider: string;
  search(request: SearchRequest, payer: Service['payer'], signal: AbortSignal): Promise<SearchHit[]>;
}

export function paidSearcher({ provider, engine, search }: WebSearcher, tool: string, pay: Pay): PaidSearcher {
  return {
    provider,
    search(request, payer, signal) {
      const used = request.engine ?? engine;
      return pay({ payer, tool, provider, used, kind: 'web_search', most: 1 }, async tell => {
        const hits = await search(request, signal);
        tell(1);
        return hits;
      });
    },
  };
}

/** The vendor's own count is higher than the estimate where a text is no prose. */
const margin = 1.5;

/** The index belongs to whoever runs Polylogue: where nobody else is named, they pay. */
export function paidEmbedder(embedder: VendorEmbedder, tool: string, pay: Pay): Embedder {
  const { model: name } = embedder;
  const at = name.indexOf(':');
  return {
    model: name,
    embed(texts, signal, payer = { owner: 'local' }) {
      const most = Math.ceil(margin * texts.reduce((sum, text) => sum + 1 + estimateTokens(text), 0));
      const service = {
        payer,
        tool,
        provider: name.slice(0, at),
        used: name.slice(at + 1),
        kind: 'embedding' as const,
        most,
      };
      return pay(service, tell => embedder.embed(texts, signal, tell));
    },
  };
}
