import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { type CodeOf, codedError } from './coded-error.ts';

/** The same model, whose failures carry codes that the classifier understands. */
export function codedModel(model: LanguageModelV4, codeOf: CodeOf): LanguageModelV4 {
  const coded = async <Result>(asked: PromiseLike<Result>): Promise<Result> => {
    try {
      return await asked;
    } catch (error) {
      throw codedError(error, codeOf);
    }
  };
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: options => coded(model.doGenerate(options)),
    async doStream(options) {
      const result = await coded(model.doStream(options));
      const tell = (part: LanguageModelV4StreamPart) =>
        part.type === 'error' ? { ...part, error: codedError(part.error, codeOf) } : part;
      const transform = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
        transform: (part, controller) => controller.enqueue(tell(part)),
      });
      return { ...result, stream: result.stream.pipeThrough(transform) };
    },
  };
}
