import type * as sdk from '@ai-sdk/provider';
import { configError, isAppError } from '../../core/errors.ts';
import { isRecord, type JsonObject, jsonOf, parsedJson, recordIn, textIn } from '../../core/json.ts';
import {
  type CallParams,
  checkedBaseUrl,
  closestEffort,
  defineProvider,
  isLocalUrl,
  isLoopbackUrl,
  keySetting,
  notTaken,
  type ProviderSettings,
  setting,
} from '../../models/provider.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import { vendorFetch } from '../shared/http.ts';
import { firstCount } from '../shared/list-models.ts';
import { chatUsage } from '../shared/openai-dialect.ts';
import { type CallOptions, type Part, streamingModel } from '../shared/stream-transforms.ts';
import { createOllamaList, isCloudName, type OllamaServer } from './list-models.ts';

const ownPort = 11_434;

/** The base of Ollama's interface from OLLAMA_HOST: a host, `host:port`, `:port` or a URL; 0.0.0.0 means this machine. */
export function ollamaAddress(value: string): string {
  const text = value.trim().replace(/^["']+|["']+$/g, '');
  const url = new URL(checkedBaseUrl(/^[a-z]+:\/\//i.test(text) ? text : withPort(text), 'OLLAMA_HOST'));
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  const path = url.pathname.replace(/\/+$/, '').replace(/\/(api|v1)$/, '');
  return `${url.origin}${path}/api`;
}

function withPort(text: string): string {
  const [, authority = '', path = ''] = /^([^/]*)(.*)$/s.exec(text) ?? [];
  const bare = (authority.match(/:/g)?.length ?? 0) > 1 && !authority.startsWith('[');
  const host = bare ? `[${authority}]` : authority.replace(/^(?=:)/, '127.0.0.1');
  return `http://${/:\d+$/.test(host) && !bare ? host : `${host}:${ownPort}`}${path}`;
}

const defaultWindow = 32_768;

export const ollama = defineProvider({
  id: 'ollama',
  names: ['l'],
  title: 'Ollama',
  docs: {
    endpoint: 'POST {OLLAMA_HOST}/api/chat',
    quirks: [
      'Only what is pulled there is offered; the list is asked for at most once a minute.',
      'A model is loaded with the window that the prompt was made for (`num_ctx`), OLLAMA_NUM_CTX at the most.',
      'Models that the server forwards to ollama.com are left out unless OLLAMA_CLOUD_MODELS is set; it then no longer counts as local.',
    ],
    source: 'https://docs.ollama.com/api/chat',
  },
  options: {
    host: setting(
      ['OLLAMA_HOST', 'OLLAMA_BASE_URL'],
      'Address of an Ollama server, such as 127.0.0.1:11434; with it the models that are pulled there can be asked.',
      { operatorOnly: true },
    ),
    apiKey: keySetting(['OLLAMA_API_KEY'], 'Key of that server, where it wants one, as ollama.com does.'),
    numCtx: setting(
      ['OLLAMA_NUM_CTX'],
      'The widest context window in tokens that Ollama models are loaded with; wider ones need more memory.',
      { type: 'number', default: defaultWindow, min: 2048, max: 10_000_000 },
    ),
    cloudModels: setting(
      ['OLLAMA_CLOUD_MODELS'],
      'Also asks models that the Ollama server forwards to ollama.com; it then no longer counts as local.',
      { type: 'boolean', default: false, operatorOnly: true },
    ),
  },
  configured: settings => settings.host !== undefined,
  async connect(settings) {
    const { apiKey, host = '' } = settings;
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const server = { baseUrl: ollamaAddress(host), headers };
    const cloud = withCloud(settings);
    return {
      languageModel({ id }) {
        // By its name alone it would be asked, and what was meant to stay would leave.
        if (!cloud && isCloudName(id))
          throw configError(`${id} does not run on the Ollama server: it is forwarded to ollama.com.`, {
            provider: 'ollama',
            model: id,
            next: 'Name a model that is pulled there, or set OLLAMA_CLOUD_MODELS to true.',
          });
        return ollamaModel(server, id);
      },
      // The window that the prompt was made for: a smaller one would cut it, a larger one takes memory for nothing.
      providerOptions: params => ({ ollama: { num_ctx: params.model.window, ...thinkOption(params) } }),
      echoesThoughts: 'wanted',
      list: createOllamaList(server, firstCount(Number(settings.numCtx)) ?? defaultWindow, cloud),
    };
  },
  listDecides: true,
  local: settings => leads(settings, isLocalUrl),
  runsHere: settings => leads(settings, isLoopbackUrl),
});

const levels = ['low', 'medium', 'high', 'max'] as const;

/** A level where the model knows several, else on or off; nothing for models that don't think or whose ways are unknown. */
function thinkOption({ model, effort }: CallParams): sdk.JSONObject {
  const sent = closestEffort(effort, model.efforts);
  if (sent === undefined) return {};
  if (sent === 'none') return { think: false };
  const several = model.efforts.filter(word => word !== 'none').length > 1;
  return { think: several ? (closestEffort(sent, levels) ?? true) : true };
}

const withCloud = ({ cloudModels }: ProviderSettings): boolean => cloudModels === 'true';

/** Whether what is asked there stays where the address points. */
function leads(settings: ProviderSettings, where: (url: string) => boolean): boolean {
  const { host } = settings;
  try {
    return !withCloud(settings) && host !== undefined && where(ollamaAddress(host));
  } catch (error) {
    // What is wrong with the address is said when it is first used.
    if (isAppError(error)) return false;
    throw error;
  }
}

/** The JSON objects in the lines of a body. A line that is no JSON object ends it as bad upstream. */
export async function* jsonLines(body: AsyncIterable<Uint8Array>) {
  // Characters that are cut between two chunks are put together again.
  const decoder = new TextDecoder();
  /** Of the line that has no end yet: a long one in small pieces is not gone through again with each. */
  let pieces: string[] = [];
  for await (const chunk of body) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    pieces.push(first);
    for (const begun of others) {
      yield* objectIn(pieces.join(''));
      pieces = [begun];
    }
  }
  yield* objectIn(pieces.join('') + decoder.decode());
}

function objectIn(line: string): Record<string, unknown>[] {
  if (line.trim() === '') return [];
  const value = parsedJson(line);
  if (isRecord(value)) return [value];
  throw badUpstream('The answer has a line that is no JSON object.');
}

/** A message as the interface takes it: one text, images and calls beside it; each result is a message of its own. */
function ollamaMessages(message: sdk.LanguageModelV4Message, warnings: sdk.SharedV4Warning[]): JsonObject[] {
  const { role, content } = message;
  if (typeof content === 'string') return [{ role, content }];
  if (message.role === 'tool')
    return message.content.flatMap(part => (part.type === 'tool-result' ? [resultOf(part)] : []));
  const texts: string[] = [];
  const thoughts: string[] = [];
  const images: string[] = [];
  const calls: JsonObject[] = [];
  for (const part of content) {
    if (part.type === 'text') texts.push(part.text);
    else if (part.type === 'reasoning') thoughts.push(part.text);
    else if (part.type === 'tool-call')
      calls.push({ function: { name: part.toolName, arguments: jsonOf(recordIn(part.input)) } });
    else if (part.type === 'file' && part.data.type === 'data' && part.mediaType.startsWith('image'))
      images.push(base64(part.data.data));
    else warnings.push({ type: 'unsupported', feature: `${part.type} parts` });
  }
  return [
    {
      role,
      content: texts.join('\n\n'),
      ...(thoughts.length > 0 ? { thinking: thoughts.join('\n') } : {}),
      ...(images.length > 0 ? { images } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
  ];
}

/** The server pairs results with calls by their order and the tool's name. */
function resultOf({ toolName, output }: sdk.LanguageModelV4ToolResultPart): JsonObject {
  const isText = output.type === 'text' || output.type === 'error-text';
  return { role: 'tool', tool_name: toolName, content: isText ? output.value : JSON.stringify(output) };
}

/** A server knows no way to forbid calls but not to offer any. */
function ollamaTools({ tools = [], toolChoice }: CallOptions): JsonObject[] {
  if (toolChoice?.type === 'none') return [];
  return tools.flatMap(tool => {
    if (tool.type !== 'function') return [];
    const { name, description = '', inputSchema } = tool;
    return [{ type: 'function', function: { name, description, parameters: jsonOf(inputSchema) } }];
  });
}

const base64 = (data: string | Uint8Array): string =>
  typeof data === 'string' ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');

/** The lines of a chat answer → the parts of the AI SDK's stream. Without its last line an answer is not whole. */
async function* ollamaParts(
  lines: AsyncIterable<Record<string, unknown>>,
  warnings: sdk.SharedV4Warning[],
): AsyncGenerator<Part> {
  yield { type: 'stream-start', warnings };
  const blocks = openBlocks();
  let done = false;
  let calls = 0;
  for await (const line of lines) {
    if (done) continue;
    if (line.error !== undefined)
      throw new Error(typeof line.error === 'string' ? line.error : JSON.stringify(line.error));
    const { thinking, content, tool_calls: called } = recordIn(line.message);
    yield* blocks.add('reasoning', thinking);
    yield* blocks.add('text', content);
    for (const call of Array.isArray(called) ? called : []) {
      yield* blocks.close();
      yield callOf(call, calls++);
    }
    if (line.done !== true) continue;
    done = true;
    yield* blocks.close();
    yield { type: 'finish', finishReason: finishOf(line.done_reason, calls > 0), usage: usageOf(line) };
  }
  if (!done) throw badUpstream('The stream ended before the answer was finished.');
}

/** Keeps track of which block is open: thoughts and text may alternate. */
function openBlocks() {
  let open: { kind: 'text' | 'reasoning'; id: string } | undefined;
  let count = 0;
  function* close(): Generator<Part> {
    if (open) yield { type: `${open.kind}-end`, id: open.id };
    open = undefined;
  }
  function* add(kind: 'text' | 'reasoning', delta: unknown): Generator<Part> {
    if (typeof delta !== 'string' || delta === '') return;
    if (open?.kind !== kind) {
      yield* close();
      open = { kind, id: String(count++) };
      yield { type: `${kind}-start`, id: open.id };
    }
    yield { type: `${kind}-delta`, id: open.id, delta };
  }
  return { close, add };
}

/** Older servers give calls no ids. */
function callOf(call: unknown, number: number): Part {
  const { id, function: named } = recordIn(call);
  const { name, arguments: input } = recordIn(named);
  return {
    type: 'tool-call',
    toolCallId: typeof id === 'string' && id !== '' ? id : `call_${number}`,
    toolName: textIn(name),
    input: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
  };
}

/** The server has no word of its own for an answer that calls. */
function finishOf(reason: unknown, calls: boolean): sdk.LanguageModelV4FinishReason {
  const raw = typeof reason === 'string' ? reason : undefined;
  // Servers from before there was a reason end with `done` alone.
  if (raw === 'stop' || raw === undefined) return { unified: calls ? 'tool-calls' : 'stop', raw };
  return { unified: raw === 'length' ? 'length' : 'other', raw };
}

/** Both counts or none: an input of 0 would be taken for a free one. */
function usageOf({ prompt_eval_count: input, eval_count: output }: Record<string, unknown>) {
  const isReported = typeof input === 'number' && typeof output === 'number';
  return chatUsage(isReported ? { prompt_tokens: input, completion_tokens: output } : undefined);
}

/** A model of an Ollama server, asked through its own chat interface. */
export const ollamaModel = ({ baseUrl, headers }: OllamaServer, id: string): sdk.LanguageModelV4 =>
  streamingModel({ provider: 'ollama', modelId: id }, async options => {
    const warnings = unsupported(options);
    const body = chatBody(id, options, warnings);
    const response = await vendorFetch(`${baseUrl}/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: options.abortSignal,
    });
    if (!response.ok) {
      const responseBody = await response.text();
      const responseHeaders = Object.fromEntries(response.headers);
      throw Object.assign(new Error(responseBody), { statusCode: response.status, responseHeaders, responseBody });
    }
    const type = response.headers.get('content-type') ?? 'nothing';
    if (!response.body || !/json/.test(type)) {
      await response.body?.cancel();
      const next = 'Check that OLLAMA_HOST is the URL of an Ollama server, and check any proxy in between.';
      throw badUpstream(`The answer was no stream of JSON lines, but ${type.slice(0, 60)}.`, true, next);
    }
    return { stream: ReadableStream.from(ollamaParts(jsonLines(response.body), warnings)), request: { body } };
  });

function chatBody(id: string, options: CallOptions, warnings: sdk.SharedV4Warning[]): JsonObject {
  const { num_ctx: window, think } = options.providerOptions?.ollama ?? {};
  const tools = ollamaTools(options);
  return {
    model: id,
    messages: options.prompt.flatMap(message => ollamaMessages(message, warnings)),
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
  };
}

/** Whoever asks for more than the interface has shall know that it was left out. */
function unsupported(options: CallOptions): sdk.SharedV4Warning[] {
  const unused = ['topP', 'topK', 'presencePenalty', 'frequencyPenalty'] as const;
  const features: string[] = unused.filter(name => options[name] !== undefined);
  if (options.tools?.some(tool => tool.type !== 'function')) features.push('provider tools');
  return [...features.map(feature => ({ type: 'unsupported' as const, feature })), ...notTaken(options)];
}
