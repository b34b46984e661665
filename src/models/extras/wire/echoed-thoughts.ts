import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4ReasoningPart,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';

/** Answers whose thoughts are kept, and how much of them; what is forgotten is merely not sent along. */
const mostAnswers = 200;
const mostChars = 4_000_000;

/**
 * Sends the sealed thoughts of earlier answers back with them, as vendors of Responses without a store ask for: the model
 * goes on from what it thought, and its cache holds. They live as long as the connection; threads keep the text alone.
 */
export function createEchoedThoughts(): (model: LanguageModelV4) => LanguageModelV4 {
  const kept = new Map<string, LanguageModelV4ReasoningPart[]>();
  let chars = 0;

  function keep(text: string, thoughts: LanguageModelV4ReasoningPart[]): void {
    if (text === '' || thoughts.length === 0 || kept.has(text)) return;
    kept.set(text, thoughts);
    chars += sizeOf(text, thoughts);
    for (const [oldest, its] of kept) {
      if (kept.size <= mostAnswers && chars <= mostChars) return;
      kept.delete(oldest);
      chars -= sizeOf(oldest, its);
    }
  }

  function withThoughts(message: LanguageModelV4Message): LanguageModelV4Message {
    if (message.role !== 'assistant') return message;
    const content = message.content.flatMap(part =>
      part.type === 'text' ? [...(kept.get(part.text.trim()) ?? []), part] : [part],
    );
    return { ...message, content };
  }

  return model => ({
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: options => model.doGenerate(options),
    async doStream(options: LanguageModelV4CallOptions) {
      const result = await model.doStream({ ...options, prompt: options.prompt.map(withThoughts) });
      return { ...result, stream: result.stream.pipeThrough(collected(keep)) };
    },
  });
}

function sizeOf(text: string, thoughts: readonly LanguageModelV4ReasoningPart[]): number {
  return text.length + JSON.stringify(thoughts).length;
}

/** Tells the answer and its sealed thoughts once the answer is finished. */
function collected(
  keep: (text: string, thoughts: LanguageModelV4ReasoningPart[]) => void,
): TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart> {
  let text = '';
  const thoughts: LanguageModelV4ReasoningPart[] = [];
  return new TransformStream({
    transform(part, controller) {
      if (part.type === 'text-delta') text += part.delta;
      // Sealed: what the vendor needs is in the metadata, the words are not.
      if (part.type === 'reasoning-end' && part.providerMetadata)
        thoughts.push({ type: 'reasoning', text: '', providerOptions: part.providerMetadata });
      if (part.type === 'finish' && part.finishReason.unified === 'stop') keep(text.trim(), thoughts);
      controller.enqueue(part);
    },
  });
}
