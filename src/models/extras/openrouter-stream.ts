import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import { isRecord } from '../../core/json.ts';

/**
 * The package's model with what it leaves out: a stream that ends without a reason is told as interrupted, the upstream
 * provider's own words stand in errors, and what the call cost is in the metadata as `costUsd`.
 */
export function toldWhole(model: LanguageModelV4): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: options => model.doGenerate(options),
    doStream: options => stream(model, options),
  };
}

async function stream(model: LanguageModelV4, options: LanguageModelV4CallOptions) {
  try {
    const result = await model.doStream(options);
    return { ...result, stream: result.stream.pipeThrough(new TransformStream({ transform: tell })) };
  } catch (error) {
    throw withUpstreamWords(error);
  }
}

function tell(
  part: LanguageModelV4StreamPart,
  controller: TransformStreamDefaultController<LanguageModelV4StreamPart>,
): void {
  if (part.type === 'error') controller.enqueue({ ...part, error: streamError(part.error) });
  else if (part.type === 'finish') controller.enqueue(finish(part));
  else if (part.type === 'source') controller.enqueue(source(part));
  else controller.enqueue(part);
}

type Source = Extract<LanguageModelV4StreamPart, { type: 'source' }>;

/** What stands on the page goes along as `snippet`. */
function source(part: Source): Source {
  const content = part.providerMetadata?.openrouter?.content;
  return typeof content === 'string' ? { ...part, providerMetadata: { openrouter: { snippet: content } } } : part;
}

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;

function finish(part: Finish): Finish {
  const { unified, raw } = part.finishReason;
  // `error` is the vendor's word for an answer that its upstream broke off.
  const broken = unified === 'other' && (raw === undefined || raw === 'error');
  const costUsd = costOf(part.usage, part.providerMetadata);
  return {
    ...part,
    finishReason: broken ? { unified: 'interrupted', raw } : part.finishReason,
    ...(costUsd === undefined ? {} : { providerMetadata: { openrouter: { costUsd } } }),
  };
}

/** With a key of the user's own at the upstream provider, that one's bill comes on top of OpenRouter's share. */
function costOf({ raw }: LanguageModelV4Usage, metadata: SharedV4ProviderMetadata | undefined): number | undefined {
  const usage = metadata?.openrouter?.usage;
  if (!isRecord(usage) || typeof usage.cost !== 'number') return undefined;
  const upstream = isRecord(usage.costDetails) ? usage.costDetails.upstreamInferenceCost : undefined;
  return usage.cost + (raw?.is_byok === true && typeof upstream === 'number' ? upstream : 0);
}

/** The vendor's error object of a stream: its code is the status that it would have had. */
function streamError(error: unknown): unknown {
  if (!isRecord(error) || error instanceof Error) return error;
  const words = upstreamWords(error);
  return words === undefined ? error : { ...error, message: `${String(error.message)}: ${words}` };
}

/** The body says "Provider returned error"; what the provider said stands beside it. */
function withUpstreamWords(error: unknown): unknown {
  if (!isRecord(error) || !isRecord(error.data) || !isRecord(error.data.error)) return error;
  const words = upstreamWords(error.data.error);
  if (words === undefined) return error;
  return Object.assign(new Error(`${String(error.data.error.message)}: ${words}`), {
    name: error.name,
    statusCode: error.statusCode,
    responseHeaders: error.responseHeaders,
  });
}

function upstreamWords({ metadata }: Record<string, unknown>): string | undefined {
  if (!isRecord(metadata)) return undefined;
  const { provider_name: name, raw, reasons } = metadata;
  const said = typeof raw === 'string' ? raw : isRecord(raw) ? JSON.stringify(raw) : undefined;
  const flagged = Array.isArray(reasons) ? `flagged for ${reasons.join(', ')}` : undefined;
  const words = [typeof name === 'string' ? name : undefined, said, flagged].filter(text => text !== undefined);
  return said === undefined && flagged === undefined ? undefined : words.join(': ');
}
