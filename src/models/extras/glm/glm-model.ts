import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { isRecord } from '../../../core/json.ts';
import { usePart } from '../../fees/counted-uses.ts';
import { codedModel } from '../upstream/coded-model.ts';
import { glmCode } from './glm-codes.ts';
import { hitsOf } from './search-hits.ts';

/**
 * GLM as its package gives it, with what that leaves out: hits of a search as sources, the vendor's own words for how an answer
 * ended, its numbers in errors, and that it searched with this engine.
 */
export function glmModel(model: LanguageModelV4, engine: string): LanguageModelV4 {
  const coded = codedModel(model, glmCode);
  return {
    ...coded,
    async doStream(options) {
      const result = await coded.doStream({ ...options, includeRawChunks: true });
      let searched = false;
      const transform = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
        transform(part, controller) {
          for (const told of toldWhole(part)) {
            // Hits may come in several chunks; they are of one search.
            if (told.type === 'source' && !searched)
              controller.enqueue(usePart({ kind: 'web_search', amount: 1, of: engine }));
            searched ||= told.type === 'source';
            controller.enqueue(told);
          }
        },
      });
      return { ...result, stream: result.stream.pipeThrough(transform) };
    },
  };
}

function toldWhole(part: LanguageModelV4StreamPart): LanguageModelV4StreamPart[] {
  if (part.type === 'raw') return sourcesOf(part.rawValue);
  return part.type === 'finish' ? [finish(part)] : [part];
}

function sourcesOf(chunk: unknown): LanguageModelV4StreamPart[] {
  return hitsOf(isRecord(chunk) ? chunk.web_search : undefined).map(({ title, url, snippet, date }) => ({
    type: 'source',
    sourceType: 'url',
    id: url,
    url,
    title,
    providerMetadata: { zhipu: { ...(snippet && { snippet }), ...(date && { date }) } },
  }));
}

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;

const ends: Readonly<Record<string, Finish['finishReason']['unified']>> = {
  sensitive: 'content-filter',
  network_error: 'interrupted',
  model_context_window_exceeded: 'length',
};

function finish(part: Finish): Finish {
  const { raw } = part.finishReason;
  const unified = raw !== undefined && Object.hasOwn(ends, raw) ? ends[raw] : undefined;
  return unified === undefined ? part : { ...part, finishReason: { unified, raw } };
}
