import type { JSONObject, LanguageModelV4ProviderTool } from '@ai-sdk/provider';
import { isRecord } from '../../../core/json.ts';
import type { ModelInfo } from '../../../core/model.ts';
import { type UsesIn, use } from '../../fees/counted-uses.ts';
import type { CallParams } from '../../provider.ts';

/** The families that the vendor's documents name for its search; the small ones of older generations can't. */
const searching = /^(?:gpt-4o|gpt-4\.1(?!-nano)|gpt-[5-9]|o3(?!-mini)|o4)/;

export function openAiSearches({ id }: ModelInfo): boolean {
  return searching.test(id);
}

export function openAiSearchTools({ webSearch }: CallParams): LanguageModelV4ProviderTool[] {
  if (!webSearch) return [];
  const args = webSearch.contentSize === undefined ? {} : { searchContextSize: webSearch.contentSize };
  return [{ type: 'provider', id: 'openai.web_search', name: 'web_search', args }];
}

/** A search is charged; to open a page that it found, or to look for words in it, is not. */
export const openAiUses: UsesIn = part => {
  if (part.type !== 'tool-result' || part.toolName !== 'web_search') return undefined;
  const action = isRecord(part.result) ? part.result.action : undefined;
  return isRecord(action) && action.type !== 'search' ? undefined : use('web_search', 1);
};

/** Citations with titles come only where the bare list of addresses is not asked for. */
export function openAiSearchOptions({ webSearch }: CallParams): JSONObject {
  return webSearch ? { includeWebSearchSources: false, maxToolCalls: webSearch.maxRounds } : {};
}

/** The vendor refuses its search together with the effort `minimal`. */
export function withEffortForSearch(params: CallParams): CallParams {
  return params.webSearch && params.effort === 'minimal' ? { ...params, effort: 'low' } : params;
}
