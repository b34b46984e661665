import type { LanguageModelV4ProviderTool } from '@ai-sdk/provider';
import type { ModelInfo } from '../../../domain/model.ts';
import type { CallParams } from '../../provider.ts';

const without = /^(?!gemini-)|^gemini-(?:1|2\.0-flash-lite|robotics)|-(?:image|tts|live|customtools)/;

export function googleSearches({ id }: ModelInfo): boolean {
  return !without.test(id);
}

/** How often and how much it searches, the vendor decides alone. */
export function googleSearchTools({ webSearch }: CallParams): LanguageModelV4ProviderTool[] {
  return webSearch ? [{ type: 'provider', id: 'google.google_search', name: 'google_search', args: {} }] : [];
}
