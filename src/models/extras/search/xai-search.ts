import type { JSONObject, LanguageModelV4ProviderTool } from '@ai-sdk/provider';
import type { ModelInfo } from '../../../core/model.ts';
import { type UsesIn, use } from '../../fees/counted-uses.ts';
import type { CallParams } from '../../provider.ts';

/** From the fourth generation on. */
export function xaiSearches({ id }: ModelInfo): boolean {
  return /^grok-(?:[4-9]|\d\d)/.test(id);
}

export function xaiSearchTools({ webSearch }: CallParams): LanguageModelV4ProviderTool[] {
  return webSearch ? [{ type: 'provider', id: 'xai.web_search', name: 'web_search', args: {} }] : [];
}

/** A turn there is one round of the vendor's own tools. */
export function xaiSearchOptions({ webSearch }: CallParams): JSONObject {
  return webSearch ? { maxTurns: webSearch.maxRounds } : {};
}

/** Only what brought something is charged, which the vendor counts; its search is the one tool that it is given. */
export const xaiUses: UsesIn = part =>
  part.type === 'finish' ? use('web_search', part.usage.raw?.num_server_side_tools_used) : undefined;
