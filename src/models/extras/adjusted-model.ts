import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';

/** The same model, each call of which is changed before the vendor's package sees it. */
export function adjustedModel(
  model: LanguageModelV4,
  adjust: (options: LanguageModelV4CallOptions) => LanguageModelV4CallOptions,
): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: options => model.doGenerate(adjust(options)),
    doStream: options => model.doStream(adjust(options)),
  };
}
