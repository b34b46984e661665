import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import type { Message } from '../../src/core/message.ts';
import type { Candidate, ModelInfo } from '../../src/core/model.ts';
import type { Connection } from '../../src/models/provider.ts';

export type Scripted = LanguageModelV4StreamPart | { wait: Promise<unknown> } | { fail: unknown };

/** A vendor's adapter as the SDK packages give one: each call plays the next script; `calls` keeps what it was asked. */
export function scriptedConnection(scripts: (Scripted[] | { refuse: unknown })[], extra: Partial<Connection> = {}) {
  const calls: LanguageModelV4CallOptions[] = [];
  const doStream = async (options: LanguageModelV4CallOptions) => {
    calls.push(options);
    const script = scripts.length > 1 ? scripts.shift()! : scripts[0]!;
    if ('refuse' in script) throw script.refuse;
    const parts = script[Symbol.iterator]();
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      async pull(controller) {
        for (;;) {
          const { value, done } = parts.next();
          if (done) return controller.close();
          if ('wait' in value) {
            await value.wait;
            continue;
          }
          if ('fail' in value) return controller.error(value.fail);
          return controller.enqueue(value);
        }
      },
    });
    return { stream };
  };
  const model: LanguageModelV4 = {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('only streams')),
    doStream,
  };
  const connection: Connection = {
    languageModel: () => model,
    providerOptions: () => ({}),
    tailRole: () => 'user',
    ...extra,
  };
  return { connection, calls };
}

export const text = (delta: string): Scripted => ({ type: 'text-delta', id: '0', delta });

export const finish = (unified: 'stop' | 'length' | 'content-filter' | 'interrupted' = 'stop'): Scripted => ({
  type: 'finish',
  finishReason: { unified, raw: unified },
  usage: {
    inputTokens: { total: 100, noCache: 60, cacheRead: 30, cacheWrite: 10 },
    outputTokens: { total: 20, text: 15, reasoning: 5 },
  },
});

export const never = new Promise<never>(() => {});

/** What the AI SDK throws for an HTTP error, by shape. */
export function apiError(status: number, body: unknown = '', headers: Record<string, string> = {}) {
  return Object.assign(new Error('from the SDK'), {
    name: 'AI_APICallError',
    url: 'https://user:secret@vendor.test/v1',
    requestBodyValues: { prompt: 'the whole prompt' },
    statusCode: status,
    responseHeaders: headers,
    responseBody: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

export function modelInfo(overrides: Partial<ModelInfo> = {}): ModelInfo {
  return {
    provider: 'alpha',
    id: 'alpha-1',
    name: 'Alpha 1',
    aliases: [],
    window: 100_000,
    maxOutput: 8000,
    input: ['text', 'image'],
    efforts: [],
    reasoning: false,
    temperature: 'range',
    tools: true,
    score: 10,
    allowCodeGeneration: false,
    status: 'active',
    ...overrides,
  };
}

export function candidate(overrides: Partial<ModelInfo> = {}, more: Partial<Candidate> = {}): Candidate {
  return { model: modelInfo(overrides), reason: 'test', ...more };
}

export function say(role: Message['role'], words: string, more: Partial<Message> = {}): Message {
  return { role, section: role === 'system' ? 'preamble' : 'turn', parts: [{ type: 'text', text: words }], ...more };
}
