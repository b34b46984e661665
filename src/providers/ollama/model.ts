import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  SharedV4Warning,
} from '@ai-sdk/provider';
import type { JsonObject } from '../../core/json.ts';
import { jsonLines } from '../../models/extras/ollama/json-lines.ts';
import { ollamaFailure } from '../../models/extras/ollama/ollama-failure.ts';
import { ollamaMessages, ollamaTools } from '../../models/extras/ollama/ollama-messages.ts';
import { ollamaParts } from '../../models/extras/ollama/ollama-parts.ts';
import { vendorFetch } from '../../models/extras/wire/vendor-fetch.ts';
import { badUpstream } from '../../models/resilience/errors.ts';

/** Where an Ollama server is, and what it wants to see first. */
export interface OllamaServer {
  /** With the path of its interface, without a slash at the end. */
  baseUrl: string;
  headers: Readonly<Record<string, string>>;
}

/** A model of an Ollama server, asked through its own chat interface. */
export function ollamaModel(server: OllamaServer, id: string): LanguageModelV4 {
  const doStream = (options: LanguageModelV4CallOptions) => stream(server, id, options);
  return {
    specificationVersion: 'v4',
    provider: 'ollama',
    modelId: id,
    supportedUrls: {},
    doStream,
    async doGenerate(options) {
      const { stream: parts } = await doStream(options);
      return whole(parts);
    },
  };
}

async function stream({ baseUrl, headers }: OllamaServer, id: string, options: LanguageModelV4CallOptions) {
  const { body, warnings } = chatBody(id, options);
  const response = await vendorFetch(`${baseUrl}/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: options.abortSignal,
  });
  if (!response.ok) throw await ollamaFailure(response);
  const type = response.headers.get('content-type') ?? 'nothing';
  if (!response.body || !/json/.test(type)) {
    await response.body?.cancel();
    const next = 'Check that OLLAMA_HOST is the address of an Ollama server, and what stands between, such as a proxy.';
    throw badUpstream(`The answer was no stream of JSON lines, but ${type.slice(0, 60)}.`, true, next);
  }
  const parts = response.body.pipeThrough(jsonLines()).pipeThrough(ollamaParts(warnings));
  return { stream: parts, request: { body } };
}

function chatBody(id: string, options: LanguageModelV4CallOptions): { body: JsonObject; warnings: SharedV4Warning[] } {
  const { num_ctx: window, think } = options.providerOptions?.ollama ?? {};
  const warnings = unsupported(options);
  const messages = options.prompt.flatMap(message => ollamaMessages(message, warnings));
  const tools = ollamaTools(options);
  return {
    body: {
      model: id,
      messages,
      ...(tools.length > 0 ? { tools } : {}),
      stream: true,
      // Without these two the server drops what does not fit, from the front and without a word.
      truncate: false,
      shift: false,
      ...(typeof think === 'boolean' || typeof think === 'string' ? { think } : {}),
      options: {
        ...(typeof window === 'number' ? { num_ctx: window } : {}),
        ...(options.maxOutputTokens === undefined ? {} : { num_predict: options.maxOutputTokens }),
        ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
      },
    },
    warnings,
  };
}

const unused = ['topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'stopSequences', 'seed'] as const;

/** Whoever asks for more than the interface has shall know that it was left out. */
function unsupported(options: LanguageModelV4CallOptions): SharedV4Warning[] {
  const features: string[] = unused.filter(name => options[name] !== undefined);
  if (options.tools?.some(tool => tool.type !== 'function')) features.push('provider tools');
  if (options.responseFormat?.type === 'json') features.push('responseFormat');
  return features.map(feature => ({ type: 'unsupported', feature }));
}

/** The answer of a stream that was read to its end. */
async function whole(parts: ReadableStream<LanguageModelV4StreamPart>) {
  let text = '';
  let warnings: SharedV4Warning[] = [];
  for await (const part of parts) {
    if (part.type === 'text-delta') text += part.delta;
    if (part.type === 'stream-start') warnings = part.warnings;
    if (part.type === 'error') throw part.error;
    if (part.type === 'finish') {
      const { finishReason, usage } = part;
      return { content: [{ type: 'text' as const, text }], finishReason, usage, warnings };
    }
  }
  throw badUpstream('The stream ended before the answer was finished.');
}
