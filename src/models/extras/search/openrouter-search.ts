import type { LanguageModelV4ProviderTool } from '@ai-sdk/provider';
import type { CallParams } from '../../provider.ts';

/** The server tool, which the model calls when it wants to; the older plugin searches whatever is asked. */
export function openRouterSearchTools({ webSearch }: CallParams): LanguageModelV4ProviderTool[] {
  if (!webSearch) return [];
  const { maxResults, maxRounds, contentSize } = webSearch;
  const parameters = {
    max_results: Math.min(25, maxResults),
    max_total_results: Math.min(25, maxResults) * maxRounds,
    ...(contentSize !== undefined && { search_context_size: contentSize }),
  };
  return [{ type: 'provider', id: 'openrouter.web_search', name: 'web_search', args: { parameters } }];
}
