import { z } from 'zod';
import { defineAction } from '../calls/tool.ts';
import { configError } from '../core/errors.ts';

const ages = ['oneDay', 'oneWeek', 'oneMonth', 'oneYear', 'noLimit'] as const;
const usualCount = 10;

export const glmWebSearch = defineAction({
  name: 'glm_web_search',
  title: 'Web search',
  description: 'Search the web without a model; returns title, URL, excerpt and date.',
  toolset: 'files',
  tier: 'manager',
  needs: ['zhipu'],
  effects: { writes: false, destroys: false, network: true, idempotent: true },
  fields: {
    search_query: z.string().min(1).max(1_000),
    count: z.int().min(1).max(50).optional(),
    search_recency_filter: z.enum(ages).optional(),
    search_domain_filter: z.string().optional(),
  },
  accepts: {
    search_engine: z.string().max(60).optional(),
    /** Known to older callers; the vendor makes its own. */
    request_id: z.string().optional(),
    user_id: z.string().optional(),
  },
  renamed: { query: 'search_query', prompt: 'search_query' },
  async run(args, { web }) {
    if (!web)
      throw configError('No provider that searches the web is configured.', {
        next: 'Set ZHIPUAI_API_KEY, so that GLM can search.',
      });
    const { search_query: query, count = usualCount, search_engine: engine } = args;
    const { search_recency_filter: recency, search_domain_filter: domain } = args;
    const hits = await web.search({ query, count, recency, domain, engine });
    const citations = hits.map(hit => ({ ...hit, provider: web.provider }));
    return { status: 'success', query, results: citations.length, citations };
  },
});
