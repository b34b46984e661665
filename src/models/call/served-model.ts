import type {
  JSONObject,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4Prompt,
  LanguageModelV4Reasoning,
  LanguageModelV4StreamPart,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { isRecord, type JsonObject, jsonOf, recordIn } from '../../core/json.ts';
import type { Message, Part, SaidPart, ToolResult, VendorFacts } from '../../core/message.ts';
import type { ModelAnswer, ModelQuestion, ToolSpec } from '../ask-model.ts';

/** A question of a program that speaks to models by the AI SDK. */
export interface ServedQuestion {
  messages: Message[];
  tools: ToolSpec[];
  toolChoice?: 'none';
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  program: NonNullable<ModelQuestion['program']>;
  /** The thread that the program names with this one (`providerOptions.polylogue.continuation_id`). */
  continuationId?: string;
  signal: AbortSignal;
  onText?(delta: string): void;
}

/** An answer, and the thread that it is stored in. */
export interface ServedAnswer extends ModelAnswer {
  continuationId?: string;
}

/** Polylogue's routing, fallbacks and limits as a model of the AI SDK: `ask` chooses who answers. */
export const servedModel = (
  modelId: string,
  ask: (question: ServedQuestion) => Promise<ServedAnswer>,
): LanguageModelV4 => ({
  specificationVersion: 'v4',
  provider: 'polylogue',
  modelId,
  supportedUrls: {},
  async doGenerate(options) {
    const { question, warnings } = questionOf(options);
    return resultOf(await ask(question), warnings);
  },
  async doStream(options) {
    const { question, warnings } = questionOf(options);
    return { stream: streamOf(onText => ask({ ...question, onText }), warnings) };
  },
});

const streamOf = (ask: (onText: (delta: string) => void) => Promise<ServedAnswer>, warnings: SharedV4Warning[]) =>
  new ReadableStream<LanguageModelV4StreamPart>({
    async start(controller) {
      const id = 'text';
      let begun = false;
      const onText = (delta: string) => {
        if (!begun) controller.enqueue({ type: 'text-start', id });
        begun = true;
        controller.enqueue({ type: 'text-delta', id, delta });
      };
      controller.enqueue({ type: 'stream-start', warnings });
      try {
        const answer = await ask(onText);
        const { content, usage, finishReason, providerMetadata } = resultOf(answer, []);
        if (!begun && answer.text !== '') onText(answer.text);
        const text = content.find(part => part.type === 'text');
        if (begun) controller.enqueue({ type: 'text-end', id, providerMetadata: text?.providerMetadata });
        for (const [at, part] of content.entries()) {
          if (part.type === 'tool-call') controller.enqueue(part);
          else if (part.type === 'reasoning')
            for (const piece of thoughtParts(part, `thought ${at}`)) controller.enqueue(piece);
        }
        controller.enqueue({ type: 'finish', usage, finishReason, providerMetadata });
      } catch (error) {
        controller.enqueue({ type: 'error', error });
      }
      controller.close();
    },
  });

const thoughtParts = (
  { text, providerMetadata }: LanguageModelV4Reasoning,
  id: string,
): LanguageModelV4StreamPart[] => [
  { type: 'reasoning-start', id },
  { type: 'reasoning-delta', id, delta: text },
  { type: 'reasoning-end', id, providerMetadata },
];

function questionOf(options: LanguageModelV4CallOptions): { question: ServedQuestion; warnings: SharedV4Warning[] } {
  const { prompt, tools = [], toolChoice, maxOutputTokens, temperature, topP, abortSignal } = options;
  const { responseFormat, stopSequences, seed } = options;
  const warnings: SharedV4Warning[] = [];
  const left = (feature: string, isThere: boolean) => {
    if (isThere) warnings.push({ type: 'unsupported', feature });
  };
  const own = tools.flatMap(tool => (tool.type === 'function' ? [tool] : []));
  left('tools of providers', own.length < tools.length);
  left('toolChoice', toolChoice?.type === 'required' || toolChoice?.type === 'tool');
  const { continuation_id: continuationId } = options.providerOptions?.polylogue ?? {};
  const question = {
    ...(typeof continuationId === 'string' && { continuationId }),
    messages: messagesOf(prompt),
    tools: own.map(({ name, description = '', inputSchema }) => {
      return { name, description, inputSchema: { ...jsonObject(inputSchema), type: 'object' as const } };
    }),
    ...(toolChoice?.type === 'none' && { toolChoice: toolChoice.type }),
    program: { responseFormat, stopSequences, seed },
    ...{ maxOutputTokens, temperature, topP, signal: abortSignal ?? new AbortController().signal },
  };
  return { question, warnings };
}

const messagesOf = (prompt: LanguageModelV4Prompt): Message[] =>
  prompt.map((message): Message => {
    const { role } = message;
    if (role === 'system') return { role, section: 'preamble', parts: [{ type: 'text', text: message.content }] };
    if (role === 'user') return { role, section: 'turn', parts: message.content.flatMap(partOf) };
    if (role === 'assistant') return { role, section: 'turn', parts: [], said: saidIn(message.content) };
    return { role: 'user', section: 'turn', parts: [], results: message.content.flatMap(toolResultOf) };
  });

type ContentOf<Role> = Extract<
  LanguageModelV4Prompt[number],
  { role: Role; content: readonly unknown[] }
>['content'][number];

function partOf(part: ContentOf<'user'>): Part[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }];
  const { data, mediaType } = part;
  const bytes = data.type === 'data' ? data.data : undefined;
  if (bytes === undefined || !mediaType.startsWith('image/'))
    return [{ type: 'text', text: `[A file (${mediaType}) was left out.]` }];
  return [{ type: 'image', mediaType, data: typeof bytes === 'string' ? Buffer.from(bytes, 'base64') : bytes }];
}

/** An answer as its vendor gave it: a stream tells thoughts and calls behind the text. */
const saidIn = (content: ContentOf<'assistant'>[]): SaidPart[] =>
  content
    .map((part, index) => {
      const { at = index, vendor } = recordIn(part.providerOptions?.polylogue);
      return { at: Number(at), said: saidOf(part).map(said => ({ ...said, ...(isFacts(vendor) && { vendor }) })) };
    })
    .sort((a, b) => a.at - b.at)
    .flatMap(({ said }) => said);

const isFacts = (value: unknown): value is VendorFacts => isRecord(value) && Object.values(value).every(isRecord);

function saidOf(part: ContentOf<'assistant'>): SaidPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }];
  if (part.type === 'reasoning') return [{ type: 'thought', text: part.text }];
  if (part.type !== 'tool-call') return [];
  return [{ type: 'call', id: part.toolCallId, name: part.toolName, args: jsonObject(part.input) }];
}

function toolResultOf(part: ContentOf<'tool'>): ToolResult[] {
  if (part.type !== 'tool-result') return [];
  const { output, toolCallId: id, toolName: name } = part;
  const value = 'value' in output ? output.value : (output.reason ?? 'It was not allowed.');
  const failed = output.type.startsWith('error') || output.type === 'execution-denied';
  return [{ id, name, text: typeof value === 'string' ? value : JSON.stringify(value), ...(failed && { failed }) }];
}

const jsonObject = (value: unknown): JsonObject => (isRecord(value) ? jsonOf(value) : {});

const finishes = {
  stop: 'stop',
  tool_calls: 'tool-calls',
  length: 'length',
  content_filter: 'content-filter',
  other: 'other',
} as const;

function resultOf(answer: ServedAnswer, warnings: SharedV4Warning[]): LanguageModelV4GenerateResult {
  const { usage, finish, candidate, costUsd, continuationId } = answer;
  const { said = [{ type: 'text' as const, text: answer.text }] } = answer;
  const content = said.flatMap((part, at): LanguageModelV4Content[] => {
    const { type, vendor } = part;
    const providerMetadata = { polylogue: { at, ...(vendor && { vendor }) } };
    if (type === 'call') {
      const { id: toolCallId, name: toolName, broken, args } = part;
      return [{ type: 'tool-call', toolCallId, toolName, input: broken ?? JSON.stringify(args), providerMetadata }];
    }
    if (type === 'thought') return [{ type: 'reasoning', text: part.text, providerMetadata }];
    return part.text === '' ? [] : [{ type, text: part.text, providerMetadata }];
  });
  const { input, output, reasoning, cacheRead, cacheWrite } = usage;
  const facts: JSONObject = {
    model: `${candidate.model.provider}:${candidate.model.id}`,
    ...(costUsd !== undefined && { costUsd }),
    ...(continuationId !== undefined && { continuation_id: continuationId }),
  };
  return {
    content,
    finishReason: { unified: finishes[finish.kind], raw: finish.raw },
    usage: {
      inputTokens: { total: input, noCache: Math.max(0, input - cacheRead - cacheWrite), cacheRead, cacheWrite },
      outputTokens: { total: output, text: Math.max(0, output - (reasoning ?? 0)), reasoning },
    },
    warnings: [...warnings, ...answer.warnings.map(message => ({ type: 'other' as const, message }))],
    providerMetadata: { polylogue: facts },
  };
}
