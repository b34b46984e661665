import type { LanguageModelV4, LanguageModelV4ProviderTool, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { isRecord } from '../../../core/json.ts';
import type { ModelInfo } from '../../../core/model.ts';
import type { CallParams } from '../../provider.ts';
import { mappedParts } from './mapped-parts.ts';

const tooOld = /^claude-(?:2|instant|3-(?:opus|sonnet|haiku)-|3-5-sonnet-20240620)/;

export function anthropicSearches({ id }: ModelInfo): boolean {
  return !tooOld.test(id);
}

/** The plain search: the newer ones run code at the vendor to filter what they found. */
export function anthropicSearchTools({ webSearch }: CallParams): LanguageModelV4ProviderTool[] {
  if (!webSearch) return [];
  const args = { maxUses: webSearch.maxRounds };
  return [{ type: 'provider', id: 'anthropic.web_search_20250305', name: 'web_search', args }];
}

/**
 * The model with what the package leaves in corners: how old a page is, the words that were quoted of it, and that the vendor
 * paused a long search instead of ending the answer.
 */
export function withQuotes(model: LanguageModelV4): LanguageModelV4 {
  const quoting = mappedParts(model, part => {
    if (part.type === 'source') return [dated(part)];
    return part.type === 'text-end' ? [part, ...quotes(part)] : [part];
  });
  return { ...quoting, doStream: options => mappedParts(quoting, pausesTold()).doStream(options) };
}

/** `pause_turn`: what came is no whole answer. With a text it can be gone on with; without one it has to be asked for again. */
function pausesTold(): (part: LanguageModelV4StreamPart) => LanguageModelV4StreamPart[] {
  let written = false;
  return part => {
    if (part.type === 'text-delta') written ||= part.delta.trim() !== '';
    if (part.type !== 'finish' || part.finishReason.raw !== 'pause_turn') return [part];
    return [{ ...part, finishReason: { unified: written ? 'length' : 'interrupted', raw: part.finishReason.raw } }];
  };
}

type Source = Extract<LanguageModelV4StreamPart, { type: 'source' }>;

function dated(part: Source): Source {
  const age = part.providerMetadata?.anthropic?.pageAge;
  return typeof age === 'string' ? { ...part, providerMetadata: { anthropic: { date: age } } } : part;
}

function quotes({ id, providerMetadata }: Extract<LanguageModelV4StreamPart, { type: 'text-end' }>): Source[] {
  const told = providerMetadata?.anthropic?.citations;
  const citations: unknown[] = Array.isArray(told) ? told : [];
  return citations.flatMap((citation, index): Source[] => {
    if (!isRecord(citation) || citation.type !== 'web_search_result_location') return [];
    const { url, title, cited_text: snippet } = citation;
    if (typeof url !== 'string' || typeof snippet !== 'string') return [];
    const named = typeof title === 'string' ? { title } : {};
    const key = `${id}-${index}`;
    return [
      { type: 'source', sourceType: 'url', id: key, url, ...named, providerMetadata: { anthropic: { snippet } } },
    ];
  });
}
