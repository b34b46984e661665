import type {
  LanguageModelV4FilePart,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import { isRecord, jsonOf, parsedJson } from '../../core/json.ts';
import type { Message, Part, SaidPart, ToolCall, ToolResult, VendorFacts } from '../../core/message.ts';
import type { ModelInfo } from '../../core/model.ts';
import { piecesOf, safeCut } from '../../core/text.ts';
import type { ModelQuestion } from '../ask-model.ts';
import type { Connection } from '../provider.ts';
import { type AssistantPart, append, freeId } from './repair-history.ts';

/** All that a model says in one attempt, in its order, as it is to stand in the next question. */
export type ReplyAccumulator = ReturnType<typeof createReplyAccumulator>;

type Block = { type: 'text' | 'thought'; text: string; vendor?: VendorFacts };

/**
 * What the package keeps as `signer`, which packages of several vendors do, is kept as `owner`: the id of the provider. `echo`
 * marks thoughts that their vendor does not sign and wants to see again all the same as its own.
 */
export function createReplyAccumulator(signer: string, owner: string, echo: boolean) {
  const factsOf = (metadata: SharedV4ProviderMetadata = {}): { vendor?: VendorFacts } => {
    const entries = Object.entries(metadata).map(([name, facts]) => [name === signer ? owner : name, facts]);
    return entries.length === 0 ? {} : { vendor: JSON.parse(JSON.stringify(Object.fromEntries(entries))) };
  };
  const said: (Block | ({ type: 'call'; vendor?: VendorFacts } & ToolCall))[] = [];
  const ids = new Set<string>();
  const open = new Map<string, Block>();
  const takeText = (
    part: Extract<LanguageModelV4StreamPart, { type: `${'text' | 'reasoning'}-${'start' | 'delta' | 'end'}` }>,
  ) => {
    const type = part.type.startsWith('text') ? 'text' : 'thought';
    let block = open.get(`${type} ${part.id}`);
    if (!block || part.type.endsWith('start')) {
      block = { type, text: '' };
      open.set(`${type} ${part.id}`, block);
      said.push(block);
    }
    if ('delta' in part) block.text += part.delta;
    for (const [name, facts] of Object.entries(factsOf(part.providerMetadata).vendor ?? {}))
      block.vendor = { ...block.vendor, [name]: { ...block.vendor?.[name], ...facts } };
  };
  return {
    take(part: LanguageModelV4StreamPart) {
      switch (part.type) {
        case 'text-start':
        case 'text-delta':
        case 'text-end':
        case 'reasoning-start':
        case 'reasoning-delta':
        case 'reasoning-end':
          return takeText(part);
        case 'tool-call': {
          if (part.providerExecuted) return;
          // Vendors answer a call by its id; a server that gives none, or the same one twice, gets ids of ours.
          const id = freeId(part.toolCallId, ids, ids.size + 1);
          ids.add(id);
          const call = { id, name: part.toolName, ...argumentsOf(part.input) };
          return void said.push({ type: 'call', ...call, ...factsOf(part.providerMetadata) });
        }
      }
    },
    parts: () =>
      said.flatMap((part): SaidPart[] => {
        if (part.type === 'call') return [part];
        // What is blank and bears no signature says nothing.
        if (part.text.trim() === '' && part.vendor === undefined) return [];
        return [part.type === 'thought' && echo ? { ...part, vendor: part.vendor ?? { [owner]: {} } } : part];
      }),
    calls: () => ids.size,
  };
}

const maxPartialLength = 20_000;

/** No arguments at all are an empty object to some models. Of those that are none, whoever runs the call tells the model. */
function argumentsOf(input: string): Pick<ToolCall, 'args' | 'broken'> {
  const value = input.trim() === '' ? {} : parsedJson(input);
  return isRecord(value) ? { args: jsonOf(value) } : { args: {}, broken: input.slice(0, maxPartialLength) };
}

/** The tools of a question in the SDK's words; the last one ends a stretch that the vendor should cache, where it wants to be told. */
export const toolsOf = ({ tools = [] }: ModelQuestion, mark?: Connection['cacheMark']): LanguageModelV4FunctionTool[] =>
  tools.map(({ name, description, inputSchema }, index) => {
    const schema: LanguageModelV4FunctionTool['inputSchema'] = JSON.parse(JSON.stringify(inputSchema));
    return { type: 'function', name, description, inputSchema: schema, ...markAt(index, tools, mark) };
  });

/** What vendors with marks allow in one request. */
const maxMarks = 4;

/** Vendors with marks refuse longer system blocks. */
const maxSystemBlockLength = 120_000;

/**
 * The messages in the vendor's order and roles. System messages in front stay what they are; later ones are system messages
 * only where the model takes them there, else user text. The tail comes last. Messages of one role that follow each other
 * become one, because many chat templates insist on alternation; their texts stay separate parts, so that the beginning of
 * a growing conversation stays the same; where the wire takes strings, a message of texts alone is one string. Calls of tools are told as texts unless the question has tools.
 * `warnings`: what was left out, one sentence each.
 */
export function toPrompt(given: readonly Message[], connection: Connection, model: ModelInfo, callsTools = false) {
  // Vendors refuse calls in a conversation without tools; what came of them is still of use.
  const messages = callsTools ? given : given.map(withoutCalls);
  const warnings = new Set<string>();
  const lateRole = connection.tailRole?.(model) ?? 'user';
  const asString = connection.sendsStrings?.(model) ?? false;
  const cacheMark = asString ? undefined : connection.cacheMark;
  const marked = marksToKeep(messages, callsTools ? maxMarks - 1 : maxMarks, cacheMark);
  const ordered = [...messages.filter(isStable), ...messages.filter(message => !isStable(message))];
  const prompt: LanguageModelV4Message[] = [];
  let inFront = true;
  for (const message of ordered) {
    const asSystem = message.document && connection.documentRole === 'system';
    inFront &&= (message.role === 'system' && message.section !== 'tail') || asSystem === true;
    const mark = marked.has(message) ? cacheMark : undefined;
    if (message.said || message.results) {
      inFront = false;
      if (message.said) prompt.push({ role: 'assistant', content: message.said.map(saidPart) });
      if (message.results) prompt.push({ role: 'tool', content: resultParts(message.results, mark) });
      continue;
    }
    const parts = message.parts.filter(part => isVisible(part, model, warnings));
    if (parts.length === 0) continue;
    const role = asSystem ? 'system' : roleOf(message, inFront, lateRole);
    if (role === 'system') prompt.push(...systemMessages(parts, mark, cacheMark !== undefined));
    else append(prompt, { role, content: contentOf(parts, mark) });
  }
  return { prompt: asString ? prompt.map(withOneText) : prompt, warnings: [...warnings] };
}

/** Packages write a message with one text as a string, and one with several as a list or without anything between them. */
function withOneText(message: LanguageModelV4Message): LanguageModelV4Message {
  if (message.role !== 'user') return message;
  const texts = message.content.flatMap(part => (part.type === 'text' ? [part.text] : []));
  if (texts.length < 2 || texts.length < message.content.length) return message;
  return { ...message, content: [{ type: 'text', text: texts.join('\n\n') }] };
}

const roleOf = ({ role, section }: Message, inFront: boolean, lateRole: 'system' | 'user') =>
  role === 'system' || section === 'tail' ? (inFront ? 'system' : lateRole) : role;

const isStable = (message: Message) => message.section !== 'tail';

/** The first mark, which all threads share, and the newest ones, which the next call will hit. Never the tail's. */
function marksToKeep(messages: readonly Message[], most: number, cacheMark: Connection['cacheMark']): Set<Message> {
  if (!cacheMark) return new Set();
  const filled = ({ parts, results }: Message) => parts.some(isFilled) || (results?.length ?? 0) > 0;
  const marked = messages.filter(message => message.cacheMark && isStable(message) && filled(message));
  return new Set(marked.length <= most ? marked : [...marked.slice(0, 1), ...marked.slice(1 - most)]);
}

const isFilled = (part: Part) => part.type === 'image' || part.text.trim() !== '';

/** Vendors refuse blank text blocks, and images where the model does not see. */
function isVisible(part: Part, model: ModelInfo, warnings: Set<string>): boolean {
  if (part.type === 'image' && !model.input.includes('image')) {
    warnings.add(`Images were left out: ${model.provider}:${model.id} takes none.`);
    return false;
  }
  return isFilled(part);
}

function systemMessages(parts: readonly Part[], mark: Connection['cacheMark'], inBlocks: boolean) {
  const text = parts.map(part => (part.type === 'text' ? part.text : '')).join('');
  const blocks = inBlocks ? piecesOf(text, rest => safeCut(rest, maxSystemBlockLength)) : [text];
  return blocks.map((content, index) => ({ role: 'system' as const, content, ...markAt(index, blocks, mark) }));
}

/** The mark on the last of them, where the vendor wants one. */
const markAt = (index: number, of: readonly unknown[], mark: Connection['cacheMark']) =>
  mark && index === of.length - 1 ? { providerOptions: mark } : {};

const contentOf = (parts: readonly Part[], mark: Connection['cacheMark']) =>
  parts.map((part, index): LanguageModelV4TextPart | LanguageModelV4FilePart => {
    const options = markAt(index, parts, mark);
    if (part.type === 'text') return { type: 'text', text: part.text, ...options };
    return { type: 'file', mediaType: part.mediaType, data: { type: 'data', data: part.data }, ...options };
  });

function saidPart(part: SaidPart): AssistantPart {
  const options = part.vendor ? { providerOptions: part.vendor } : {};
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text, ...options };
    case 'thought':
      return { type: 'reasoning', text: part.text, ...options };
    case 'call':
      return { type: 'tool-call', toolCallId: part.id, toolName: part.name, input: part.args, ...options };
  }
}

/** Vendors refuse blank results as they do blank texts. */
const resultParts = (results: readonly ToolResult[], mark: Connection['cacheMark']): LanguageModelV4ToolResultPart[] =>
  results.map(({ id, name, text, failed }, index) => ({
    type: 'tool-result',
    toolCallId: id,
    toolName: name,
    output: { type: failed ? 'error-text' : 'text', value: text.trim() === '' ? '(nothing)' : text },
    ...markAt(index, results, mark),
  }));

function withoutCalls(message: Message): Message {
  const { said, results, ...rest } = message;
  if (!said && !results) return message;
  const called = (said ?? []).flatMap(part => {
    if (part.type === 'text') return [part.text];
    return part.type === 'call' ? [`[called ${part.name} with ${JSON.stringify(part.args)}]`] : [];
  });
  const texts = [...called, ...(results ?? []).map(({ name, text }) => `[what ${name} brought]\n${text}`)];
  return { ...rest, parts: texts.map(text => ({ type: 'text', text })) };
}
