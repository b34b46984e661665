import type {
  LanguageModelV4,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';

/**
 * The same model, for packages that tell the end of a stream that was cut as an end like any other: without a reason from the
 * vendor, or with the one that is none, it is told as interrupted.
 */
export function withEndsTold(model: LanguageModelV4): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: options => model.doGenerate(options),
    async doStream(options) {
      const result = await model.doStream(options);
      return { ...result, stream: result.stream.pipeThrough(new TransformStream({ transform: tell })) };
    },
  };
}

type Controller = TransformStreamDefaultController<LanguageModelV4StreamPart>;

function tell(part: LanguageModelV4StreamPart, controller: Controller): void {
  controller.enqueue(part.type === 'finish' ? told(part) : part);
}

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;

function told({ finishReason, usage, ...part }: Finish): Finish {
  return { ...part, finishReason: endOf(finishReason), usage: usage.inputTokens.total ? usage : untold };
}

/** No prompt has no tokens: counts of zero stand for none. */
const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
const untold: LanguageModelV4Usage = {
  inputTokens: none,
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};

/** DeepSeek ends an answer for which its machines had no room left in words of its own. */
function endOf({ unified, raw }: LanguageModelV4FinishReason): LanguageModelV4FinishReason {
  const cut = (unified === 'other' && raw === undefined) || raw === 'insufficient_system_resource';
  return { unified: cut ? 'interrupted' : unified, raw };
}
