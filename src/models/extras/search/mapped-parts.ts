import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';

/** The same model, each part of whose stream becomes what `map` makes of it. */
export function mappedParts(
  model: LanguageModelV4,
  map: (part: LanguageModelV4StreamPart) => LanguageModelV4StreamPart[],
): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: options => model.doGenerate(options),
    async doStream(options) {
      const result = await model.doStream(options);
      const mapping = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
        transform(part, controller) {
          for (const mapped of map(part)) controller.enqueue(mapped);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(mapping) };
    },
  };
}
