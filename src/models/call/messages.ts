import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { Message, Part, SaidPart, ToolResult } from '../../core/message.ts';
import type { ModelInfo } from '../../core/model.ts';
import { safeCut } from '../../core/text.ts';
import type { Connection } from '../provider.ts';

type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];

/** What vendors with marks allow in one request. */
const mostMarks = 4;
/** Vendors with marks refuse longer system blocks. */
const longestSystemBlock = 120_000;

export interface BuiltPrompt {
  prompt: LanguageModelV4Prompt;
  /** What was left out, one sentence each. */
  warnings: string[];
}

/**
 * The messages in the vendor's order and roles. System messages in front stay what they are; later ones are system messages
 * only where the model takes them there, else user text. The tail comes last. Messages of one role that follow each other
 * become one, because many chat templates insist on alternation; their texts stay separate parts, so that the beginning of
 * a growing conversation stays the same. Calls of tools are told as texts unless the question has tools.
 */
export function toPrompt(
  given: readonly Message[],
  connection: Connection,
  model: ModelInfo,
  callsTools = false,
): BuiltPrompt {
  // Vendors refuse calls in a conversation without tools; what came of them is still of use.
  const messages = callsTools ? given : given.map(withoutCalls);
  const warnings = new Set<string>();
  const lateRole = connection.tailRole(model);
  const marked = marksToKeep(messages, connection);
  const ordered = [...messages.filter(isStable), ...messages.filter(message => !isStable(message))];
  const prompt: LanguageModelV4Message[] = [];
  let inFront = true;
  for (const message of ordered) {
    const asSystem = message.document && connection.documentRole === 'system';
    inFront &&= (message.role === 'system' && message.section !== 'tail') || asSystem === true;
    if (message.said || message.results) {
      inFront = false;
      const mark = marked.has(message) ? connection.cacheMark : undefined;
      if (message.said) prompt.push({ role: 'assistant', content: message.said.map(saidPart) });
      if (message.results) prompt.push({ role: 'tool', content: resultParts(message.results, mark) });
      continue;
    }
    const parts = message.parts.filter(part => isVisible(part, model, warnings));
    if (parts.length === 0) continue;
    const role = asSystem ? 'system' : roleOf(message, inFront, lateRole);
    const mark = marked.has(message) ? connection.cacheMark : undefined;
    if (role === 'system') prompt.push(...systemMessages(parts, mark, connection.cacheMark !== undefined));
    else append(prompt, role, parts, mark);
  }
  return { prompt, warnings: [...warnings] };
}

function roleOf({ role, section }: Message, inFront: boolean, lateRole: 'system' | 'user') {
  return role === 'system' || section === 'tail' ? (inFront ? 'system' : lateRole) : role;
}

const isStable = (message: Message) => message.section !== 'tail';

/** The first mark, which all threads share, and the newest ones, which the next call will hit. Never the tail's. */
function marksToKeep(messages: readonly Message[], connection: Connection): Set<Message> {
  if (!connection.cacheMark) return new Set();
  const filled = ({ parts, results }: Message) => parts.some(isFilled) || (results?.length ?? 0) > 0;
  const marked = messages.filter(message => message.cacheMark && isStable(message) && filled(message));
  return new Set(marked.length <= mostMarks ? marked : [...marked.slice(0, 1), ...marked.slice(1 - mostMarks)]);
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

function systemMessages(parts: readonly Part[], mark: SharedV4ProviderOptions | undefined, inBlocks: boolean) {
  const text = parts.map(part => (part.type === 'text' ? part.text : '')).join('');
  const blocks = inBlocks ? blocksOf(text) : [text];
  return blocks.map((content, index) => ({
    role: 'system' as const,
    content,
    ...(mark && index === blocks.length - 1 ? { providerOptions: mark } : {}),
  }));
}

function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  for (let rest = text; rest !== ''; rest = rest.slice(blocks.at(-1)?.length))
    blocks.push(safeCut(rest, longestSystemBlock));
  return blocks;
}

function append(
  prompt: LanguageModelV4Message[],
  role: 'user' | 'assistant',
  parts: readonly Part[],
  mark: SharedV4ProviderOptions | undefined,
): void {
  const content = parts.map((part, index) => contentOf(part, index === parts.length - 1 ? mark : undefined));
  const last = prompt.at(-1);
  if (last?.role === 'user' && role === 'user') last.content.push(...content);
  else if (last?.role === 'assistant' && role === 'assistant') last.content.push(...content);
  else prompt.push({ role, content });
}

function contentOf(
  part: Part,
  mark: SharedV4ProviderOptions | undefined,
): LanguageModelV4TextPart | LanguageModelV4FilePart {
  const options = mark ? { providerOptions: mark } : {};
  if (part.type === 'text') return { type: 'text', text: part.text, ...options };
  return { type: 'file', mediaType: part.mediaType, data: { type: 'data', data: part.data }, ...options };
}

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
function resultParts(
  results: readonly ToolResult[],
  mark: SharedV4ProviderOptions | undefined,
): LanguageModelV4ToolResultPart[] {
  return results.map(({ id, name, text, failed }, index) => ({
    type: 'tool-result',
    toolCallId: id,
    toolName: name,
    output: { type: failed ? 'error-text' : 'text', value: text.trim() === '' ? '(nothing)' : text },
    ...(mark && index === results.length - 1 ? { providerOptions: mark } : {}),
  }));
}

function withoutCalls(message: Message): Message {
  const { said, results, ...rest } = message;
  if (!said && !results) return message;
  const texts = [
    ...(said ?? []).flatMap(part => {
      if (part.type === 'text') return [part.text];
      return part.type === 'call' ? [`[called ${part.name} with ${JSON.stringify(part.args)}]`] : [];
    }),
    ...(results ?? []).map(({ name, text }) => `[what ${name} brought]\n${text}`),
  ];
  return { ...rest, parts: texts.map(text => ({ type: 'text', text })) };
}
