import type {
  JSONObject,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FilePart,
  LanguageModelV4GenerateResult,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
  SharedV4FileDataData,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { isRecord, type JsonObject, jsonOf, recordIn } from '../../core/json.ts';
import type { Message, Part, SaidPart, ToolResult, VendorFacts } from '../../core/message.ts';
import type { ModelAnswer, ModelQuestion, ToolSpec } from '../ask-model.ts';
import { forcedChoice } from '../provider.ts';
import type { AssistantPart } from './repair-history.ts';

/** A question of a program that speaks to models by the AI SDK. */
export interface ServedQuestion
  extends Partial<
      Pick<ModelQuestion, 'toolChoice' | 'maxOutputTokens' | 'temperature' | 'topP' | 'onText' | 'onStart'>
    >,
    Required<Pick<ModelQuestion, 'program' | 'signal'>> {
  messages: Message[];
  tools: ToolSpec[];
  /** Polylogue's own options of this question (`providerOptions.polylogue`), as the program gave them. */
  options: JSONObject;
}

/** An answer, and the thread that it is stored in. */
export type ServedAnswer = ModelAnswer & { continuationId?: string };

type Ask = (question: ServedQuestion) => Promise<ServedAnswer>;

/** Polylogue's routing, fallbacks and limits as a model of the AI SDK: `ask` chooses who answers. */
export const servedModel = (modelId: string, ask: Ask): LanguageModelV4 => ({
  specificationVersion: 'v4',
  provider: 'polylogue',
  modelId,
  supportedUrls: {},
  async doGenerate(options) {
    const { question, warnings } = questionOf(options);
    try {
      return resultOf(await ask(question), warnings);
    } catch (error) {
      // Programs know the end that they wanted by their own reason.
      options.abortSignal?.throwIfAborted();
      throw error;
    }
  },
  async doStream(options) {
    options.abortSignal?.throwIfAborted();
    const { question, warnings } = questionOf(options);
    return { stream: streamOf(ask, question, warnings) };
  },
});

/** Warnings come with the first text, as far as they are known then; all of them are in the metadata of the end. */
function streamOf(ask: Ask, question: ServedQuestion, warnings: Left[]) {
  const gone = new AbortController();
  const signal = AbortSignal.any([question.signal, gone.signal]);
  return new ReadableStream<LanguageModelV4StreamPart>({
    async start(controller) {
      const tell = (...parts: LanguageModelV4StreamPart[]) => {
        if (!gone.signal.aborted) for (const part of parts) controller.enqueue(part);
      };
      const id = 'text';
      let known: SharedV4Warning[] = warnings;
      let begun = false;
      const onText = (delta: string) => {
        if (!begun) tell({ type: 'stream-start', warnings: known }, { type: 'text-start', id });
        begun = true;
        tell({ type: 'text-delta', id, delta });
      };
      const onStart = (messages: readonly string[]) => {
        known = [...warnings, ...messages.map(asWarning)];
      };
      try {
        const answer = await ask({ ...question, signal, onText, onStart });
        const { content, warnings: all, ...end } = resultOf(answer, warnings);
        known = all;
        if (!begun && answer.text !== '') onText(answer.text);
        const { providerMetadata } = content.find(({ type }) => type === 'text') ?? {};
        tell(begun ? { type: 'text-end', id, providerMetadata } : { type: 'stream-start', warnings: known });
        for (const [at, part] of content.entries()) if (part.type !== 'text') tell(...piecesOf(part, `${at}`));
        tell({ type: 'finish', ...end });
      } catch (error) {
        if (question.signal.aborted) return controller.error(question.signal.reason);
        if (!begun) tell({ type: 'stream-start', warnings: known });
        tell({ type: 'error', error });
      }
      if (!gone.signal.aborted) controller.close();
    },
    cancel: reason => gone.abort(reason),
  });
}

const asWarning = (message: string) => ({ type: 'other' as const, message });

function piecesOf(part: Exclude<LanguageModelV4Content, { type: 'text' }>, id: string): LanguageModelV4StreamPart[] {
  if (part.type !== 'reasoning') return [part];
  const { text: delta, providerMetadata } = part;
  return [
    { type: 'reasoning-start', id },
    { type: 'reasoning-delta', id, delta },
    { type: 'reasoning-end', id, providerMetadata },
  ];
}

/** What Polylogue does not pass on. */
type Left = Required<Extract<SharedV4Warning, { type: 'unsupported' }>>;

function questionOf(options: LanguageModelV4CallOptions): { question: ServedQuestion; warnings: Left[] } {
  const { prompt, tools = [], toolChoice, maxOutputTokens, temperature, topP, abortSignal, ...others } = options;
  const { responseFormat, stopSequences, seed, providerOptions = {}, ...rest } = others;
  const { includeRawChunks, headers = {}, reasoning, ...unknown } = rest;
  const { polylogue = {}, ...ofProviders } = providerOptions;
  const own = tools.flatMap(tool => (tool.type === 'function' ? [tool] : []));
  const left = new Set<string>();
  const messages = messagesOf(prompt, left);
  const unused = {
    ...unknown,
    includeRawChunks,
    reasoning: reasoning !== 'provider-default' && reasoning,
    // The SDK itself names its version there.
    headers: Object.keys(headers).some(name => name.toLowerCase() !== 'user-agent'),
    'tools of providers': own.length < tools.length,
    'strict tools': own.some(({ strict }) => strict),
    'examples of tools': own.some(({ inputExamples }) => inputExamples),
    ...Object.fromEntries(Object.keys(ofProviders).map(name => [`providerOptions.${name}`, true])),
  };
  for (const [feature, value] of Object.entries(unused)) if (value !== undefined && value !== false) left.add(feature);
  const question = {
    options: polylogue,
    messages,
    tools: own.map(({ name, description = '', inputSchema }) => {
      return { name, description, inputSchema: { ...jsonObject(inputSchema), type: 'object' as const } };
    }),
    ...(toolChoice?.type === 'none' && { toolChoice: toolChoice.type }),
    program: { responseFormat, stopSequences, seed, ...(own.length > 0 && { toolChoice: forcedChoice(toolChoice) }) },
    ...{ maxOutputTokens, temperature, topP, signal: abortSignal ?? new AbortController().signal },
  };
  const details = 'Polylogue left it out.';
  return { question, warnings: [...left].map(feature => ({ type: 'unsupported', feature, details })) };
}

const messagesOf = (prompt: LanguageModelV4Prompt, left: Set<string>): Message[] =>
  prompt.map((message): Message => {
    const { role } = message;
    if (role === 'system') return { role, section: 'preamble', parts: [{ type: 'text', text: message.content }] };
    if (role === 'user') return { role, section: 'turn', parts: message.content.map(part => partOf(part, left)) };
    if (role === 'assistant') return { role, section: 'turn', parts: [], said: saidIn(message.content, left) };
    const results = message.content.flatMap(part => (part.type === 'tool-result' ? [toolResultOf(part, left)] : []));
    return { role: 'user', section: 'turn', parts: [], results };
  });

function partOf(part: LanguageModelV4TextPart | LanguageModelV4FilePart, left: Set<string>): Part {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { data, mediaType } = part;
  if (data.type === 'data' && mediaType.startsWith('image/')) return { type: 'image', mediaType, data: bytesOf(data) };
  return { type: 'text', text: textOfFile(part, left) };
}

const bytesOf = ({ data }: SharedV4FileDataData): Uint8Array =>
  typeof data === 'string' ? Buffer.from(data, 'base64') : data;

/** Media types of text, parameters aside. */
const textKinds = /^(text\/|application\/([\w.-]+\+)?(json|xml|yaml|x-yaml|toml|javascript|x-sh|sql)(;|$))/i;

/** A file where only text can stand. */
function textOfFile({ data, mediaType }: Pick<LanguageModelV4FilePart, 'data' | 'mediaType'>, left: Set<string>) {
  if (data.type === 'text') return data.text;
  if (data.type === 'data' && textKinds.test(mediaType)) return Buffer.from(bytesOf(data)).toString();
  left.add(`file ${mediaType}`);
  return `[A file (${mediaType}) was left out.]`;
}

/** An answer as its vendor gave it: a stream tells thoughts and calls behind the text. */
const saidIn = (content: AssistantPart[], left: Set<string>): SaidPart[] =>
  content
    .map((part, index) => {
      const { at = index, vendor } = recordIn(part.providerOptions?.polylogue);
      const said = saidOf(part, left).map(each => ({ ...each, ...(isFacts(vendor) && { vendor }) }));
      return { at: Number(at), said };
    })
    .sort((a, b) => a.at - b.at)
    .flatMap(({ said }) => said);

const isFacts = (value: unknown): value is VendorFacts => isRecord(value) && Object.values(value).every(isRecord);

function saidOf(part: AssistantPart, left: Set<string>): SaidPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }];
  if (part.type === 'file') return [{ type: 'text', text: textOfFile(part, left) }];
  if (part.type === 'tool-call')
    return [{ type: 'call', id: part.toolCallId, name: part.toolName, args: jsonObject(part.input) }];
  if (part.type === 'reasoning' && part.providerOptions?.polylogue) return [{ type: 'thought', text: part.text }];
  left.add(`${part.type} of another provider`);
  return [];
}

function toolResultOf({ output, ...part }: LanguageModelV4ToolResultPart, left: Set<string>): ToolResult {
  const failed = output.type.startsWith('error') || output.type === 'execution-denied';
  return { id: part.toolCallId, name: part.toolName, text: textOfOutput(output, left), ...(failed && { failed }) };
}

function textOfOutput(output: LanguageModelV4ToolResultOutput, left: Set<string>): string {
  if (output.type === 'execution-denied') return output.reason ?? 'It was not allowed.';
  if (output.type !== 'content') return typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
  const texts = output.value.map(item => {
    if (item.type === 'custom') left.add('custom content of tool results');
    return item.type === 'text' ? item.text : item.type === 'file' ? textOfFile(item, left) : '';
  });
  return texts.join('\n');
}

const jsonObject = (value: unknown): JsonObject => (isRecord(value) ? jsonOf(value) : {});

const finishes = {
  stop: 'stop',
  tool_calls: 'tool-calls',
  length: 'length',
  content_filter: 'content-filter',
  other: 'other',
} as const;

function resultOf(answer: ServedAnswer, left: Left[]): LanguageModelV4GenerateResult {
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
    warnings: [...left.map(({ feature, details }) => `${feature}: ${details}`), ...answer.warnings],
  };
  return {
    content,
    finishReason: { unified: finishes[finish.kind], raw: finish.raw },
    usage: {
      inputTokens: { total: input, noCache: Math.max(0, input - cacheRead - cacheWrite), cacheRead, cacheWrite },
      outputTokens: { total: output, text: Math.max(0, output - (reasoning ?? 0)), reasoning },
    },
    warnings: [...left, ...answer.warnings.map(asWarning)],
    providerMetadata: { polylogue: facts },
  };
}
