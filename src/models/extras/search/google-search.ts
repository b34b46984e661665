import type { LanguageModelV4ProviderTool } from '@ai-sdk/provider';
import { isRecord } from '../../../core/json.ts';
import type { ModelInfo } from '../../../core/model.ts';
import { passedUse, type UsesIn, use } from '../../fees/counted-uses.ts';
import type { CallParams } from '../../provider.ts';

const without = /^(?!gemini-)|^gemini-(?:1|2\.0-flash-lite|robotics)|-(?:image|tts|live|customtools)/;

export function googleSearches({ id }: ModelInfo): boolean {
  return !without.test(id);
}

/** How often and how much it searches, the vendor decides alone. */
export function googleSearchTools({ webSearch }: CallParams): LanguageModelV4ProviderTool[] {
  return webSearch ? [{ type: 'provider', id: 'google.google_search', name: 'google_search', args: {} }] : [];
}

/** The answer tells what was searched for; empty queries are not charged. */
export const googleUses: UsesIn = part => {
  if (part.type !== 'finish') return passedUse(part);
  const grounding = part.providerMetadata?.google?.groundingMetadata;
  const queries = isRecord(grounding) && Array.isArray(grounding.webSearchQueries) ? grounding.webSearchQueries : [];
  return use('web_search', queries.filter(query => typeof query === 'string' && query.trim() !== '').length);
};
