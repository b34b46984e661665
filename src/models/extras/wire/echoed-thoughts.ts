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

type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'];

/**
 * Sends the sealed thoughts of earlier answers back with them, as vendors of Responses without a store ask for: the model
 * goes on from what it thought, and its cache holds. They live as long as the connection, belong to one model and one
 * thread (its cache key), and are never kept without one; threads keep the text alone. `vendor` is the package's name for its
 * options.
 */
export function createEchoedThoughts(vendor: string): (model: LanguageModelV4) => LanguageModelV4 {
  const kept = new Map<string, LanguageModelV4ReasoningPart[]>();
  let chars = 0;

  function keep(key: string, thoughts: LanguageModelV4ReasoningPart[]): void {
    if (thoughts.length === 0 || kept.has(key)) return;
    kept.set(key, thoughts);
    chars += sizeOf(key, thoughts);
    for (const [oldest, its] of kept) {
      if (kept.size <= mostAnswers && chars <= mostChars) return;
      kept.delete(oldest);
      chars -= sizeOf(oldest, its);
    }
  }

  function withThoughts(message: LanguageModelV4Message, keyOf: (text: string) => string): LanguageModelV4Message {
    if (message.role !== 'assistant') return message;
    const content: AssistantContent = [];
    for (const part of message.content) {
      if (part.type === 'text') content.push(...(kept.get(keyOf(part.text)) ?? []));
      content.push(part);
    }
    return { ...message, content };
  }

  return model => ({
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: options => model.doGenerate(options),
    async doStream(options: LanguageModelV4CallOptions) {
      const thread = options.providerOptions?.[vendor]?.promptCacheKey;
      if (typeof thread !== 'string') return model.doStream(options);
      const keyOf = (text: string) => JSON.stringify([model.modelId, thread, text.trim()]);
      const prompt = options.prompt.map(message => withThoughts(message, keyOf));
      const result = await model.doStream({ ...options, prompt });
      const stream = result.stream.pipeThrough(collected(vendor, (text, thoughts) => keep(keyOf(text), thoughts)));
      return { ...result, stream };
    },
  });
}

function sizeOf(key: string, thoughts: readonly LanguageModelV4ReasoningPart[]): number {
  return key.length + JSON.stringify(thoughts).length;
}

/** Tells the answer and its sealed thoughts once the answer is finished. */
function collected(
  vendor: string,
  keep: (text: string, thoughts: LanguageModelV4ReasoningPart[]) => void,
): TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart> {
  let text = '';
  const words = new Map<string, string>();
  const thoughts: LanguageModelV4ReasoningPart[] = [];
  return new TransformStream({
    transform(part, controller) {
      if (part.type === 'text-delta') text += part.delta;
      if (part.type === 'reasoning-delta') words.set(part.id, (words.get(part.id) ?? '') + part.delta);
      // Words without a seal would be of no use to the vendor; sealed ones go back as they came.
      if (
        part.type === 'reasoning-end' &&
        typeof part.providerMetadata?.[vendor]?.reasoningEncryptedContent === 'string'
      )
        thoughts.push({ type: 'reasoning', text: words.get(part.id) ?? '', providerOptions: part.providerMetadata });
      if (part.type === 'finish' && part.finishReason.unified === 'stop') keep(text, thoughts);
      controller.enqueue(part);
    },
  });
}
