import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import { isRecord } from '../../core/json.ts';
import type { Message, Part } from '../../core/message.ts';
import type { ModelInfo } from '../../core/model.ts';
import type { ImageLimits } from '../provider.ts';

/** What nearly all vendors take; those who take less, or document more, say so. */
const usualLimits: ImageLimits = { max: 50, bytes: 20_000_000, allBytes: 30_000_000 };

/** Stands where an image was, so that what is said about it makes sense. */
const gone: Part = { type: 'text', text: '[An image that stood here is not shown any more.]' };

/**
 * Leaves out what the vendor would refuse the request for: images of types that it does not take, those that are too large, and
 * the oldest ones where they are too many or too much together. The thread keeps them, and another model may see them.
 */
export function fitImages(messages: readonly Message[], model: ModelInfo, limits: ImageLimits = usualLimits) {
  const left = { ...limits, tooLarge: 0, tooMany: 0 };
  const refused: string[] = [];
  const keep = (part: Part): Part => {
    if (part.type !== 'image') return part;
    // As it travels: in base64.
    const size = Math.ceil(part.data.length / 3) * 4;
    if (limits.types && !limits.types.includes(part.mediaType)) refused.push(part.mediaType);
    else if (size > limits.bytes) left.tooLarge++;
    else if (left.max < 1 || size > left.allBytes) {
      left.tooMany++;
      // An older one that is small must not be seen where a newer one is not.
      left.max = 0;
    } else {
      left.max--;
      left.allBytes -= size;
      return part;
    }
    return gone;
  };
  const fit = (message: Message): Message => {
    if (!message.parts.some(({ type }) => type === 'image')) return message;
    return { ...message, parts: message.parts.toReversed().map(keep).toReversed() };
  };
  const fitted = messages.toReversed().map(fit).toReversed();
  return { messages: fitted, warnings: warningsOf(model, limits, { ...left, refused }) };
}

function warningsOf(
  { provider, id }: ModelInfo,
  { max, bytes, types = [] }: ImageLimits,
  { tooLarge, tooMany, refused }: { tooLarge: number; tooMany: number; refused: readonly string[] },
): string[] {
  const takes = `${provider}:${id} takes`;
  const kinds = [...new Set(refused)].map(kindOf).join(', ');
  const megabytes = ((bytes * 3) / 4_000_000).toFixed(1);
  const taken = types.map(kindOf).join(', ');
  return [
    refused.length > 0 && `Images left out: ${refused.length} (${kinds}). ${takes} ${taken} only; convert them.`,
    tooLarge > 0 && `Images left out as too large: ${tooLarge}. ${takes} ${megabytes} MB at the most.`,
    tooMany > 0 && `Older images left out: ${tooMany}. ${takes} ${max} in one request, and not all sizes.`,
  ].filter(warning => warning !== false);
}

/** `image/jpeg` is `JPEG`. */
const kindOf = (mediaType: string): string => mediaType.replace(/^image\//, '').toUpperCase();

export type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];

/** Stands where a call's result would, when the run was ended before there was one. */
const interrupted = 'There is no result: the call was interrupted.';

/** Of the ids and names of calls. */
const maxLength = 64;

/**
 * Each call with exactly one result in the messages right after it, under an id and a name that vendors take and no other call
 * has; a missing result is said to be missing, and one without a call is left out. `signer` is who reads it.
 */
function pairToolCalls(messages: readonly LanguageModelV4Message[], signer: string): LanguageModelV4Message[] {
  const out: LanguageModelV4Message[] = [];
  const used = new Set<string>();
  /** The calls of the message before that nobody answered yet, by their ids as they stood there. */
  const open = new Map<string, LanguageModelV4ToolCallPart>();
  const close = () => {
    const output = { type: 'error-text' as const, value: interrupted };
    const missing = Array.from(open.values(), ({ toolCallId, toolName }) => {
      return { type: 'tool-result' as const, toolCallId, toolName, output };
    });
    if (missing.length > 0) out.push({ role: 'tool', content: missing });
    open.clear();
  };
  const taken = (part: LanguageModelV4ToolCallPart): AssistantPart[] => {
    if (part.providerExecuted) return [part];
    if (open.has(part.toolCallId)) return [];
    const call = soundCall(part, used, signer);
    used.add(call.toolCallId);
    open.set(part.toolCallId, call);
    return [call];
  };
  for (const message of messages) {
    if (message.content.length === 0) continue;
    if (message.role === 'tool') {
      const content = message.content.flatMap(part => (part.type === 'tool-result' ? answering(part, open) : [part]));
      if (content.length > 0) out.push(same(content, message.content) ? message : { ...message, content });
      continue;
    }
    close();
    if (message.role !== 'assistant') {
      out.push(message);
      continue;
    }
    const content = message.content.flatMap(part => (part.type === 'tool-call' ? taken(part) : [part]));
    const whole = content.length === message.content.length ? content : withoutLoneThoughts(content);
    if (whole.length > 0) out.push(same(whole, message.content) ? message : { ...message, content: whole });
  }
  close();
  return out;
}

const same = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((part, at) => part === b[at]);

function answering(
  part: LanguageModelV4ToolResultPart,
  open: Map<string, LanguageModelV4ToolCallPart>,
): Extract<LanguageModelV4Message, { role: 'tool' }>['content'] {
  const call = open.get(part.toolCallId);
  if (!call) return [];
  open.delete(part.toolCallId);
  const { toolCallId, toolName } = call;
  const { output } = part;
  const blank = (output.type === 'text' || output.type === 'error-text') && output.value.trim() === '';
  if (toolCallId === part.toolCallId && toolName === part.toolName && !blank) return [part];
  return [{ ...part, toolCallId, toolName, output: blank ? { type: output.type, value: '(nothing)' } : output }];
}

function soundCall(part: LanguageModelV4ToolCallPart, used: ReadonlySet<string>, signer: string) {
  // Some vendors put dots and colons into ids and want them back; Anthropic refuses them.
  const plain = signer === 'anthropic' ? part.toolCallId.replace(/[^a-zA-Z0-9_-]/g, '_') : part.toolCallId;
  const toolCallId = freeId(plain, used);
  const toolName = part.toolName.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, maxLength) || 'unknown';
  const input = isRecord(part.input) ? part.input : {};
  if (toolCallId === part.toolCallId && toolName === part.toolName && input === part.input) return part;
  return { ...part, toolCallId, toolName, input };
}

/** The id, as far as vendors take it, or one like it that is not used yet, with a number from `next` on. */
export function freeId(id: string, used: ReadonlySet<string>, next = 2): string {
  for (let number = 1; ; number = Math.max(number + 1, next)) {
    const mark = number === 1 ? '' : `_${number}`;
    const free = `${(id || 'call').slice(0, maxLength - mark.length)}${mark}`;
    if (!used.has(free)) return free;
  }
}

/** Thoughts that led to a call which is gone lead nowhere. */
function withoutLoneThoughts(content: readonly AssistantPart[]): AssistantPart[] {
  const last = content.findLastIndex(part => part.type !== 'reasoning' && part.type !== 'reasoning-file');
  return content.slice(0, last + 1);
}

/** Stands where a history begins or ends with an answer, which some vendors refuse. */
const before = '(The conversation began before this.)';

const goOn = 'Go on.';

/**
 * A history that every vendor takes, whatever happened to it: nothing blank, users and assistants in turns, each call
 * with its one result right after it, reasoning only where the vendor that is asked signed it itself (as
 * `signer`, the name under which its package keeps such things). A sound history comes back as it is, and a prefix of a
 * history is mended to a prefix, but for its end. `echo`: the vendor refuses calls without the thoughts that led to them. `owner`:
 * the provider that is asked, under whose id such things are in `prompt`.
 */
export function repairHistory(
  prompt: LanguageModelV4Prompt,
  signer: string,
  { echo = false, owner = signer }: { echo?: boolean; owner?: string } = {},
): LanguageModelV4Prompt {
  const readable = prompt.map(message => withoutUnreadable(message, { signer, owner, echo }));
  const joined: LanguageModelV4Message[] = [];
  for (const message of pairToolCalls(readable, signer)) {
    if (message.role === 'assistant' && !joined.some(({ role }) => role === 'user' || role === 'tool'))
      joined.push(saying(before));
    append(joined, message);
  }
  const nothing = joined.every(({ role }) => role === 'system');
  if (nothing || joined.at(-1)?.role === 'assistant') joined.push(saying(goOn));
  return joined;
}

/** The name under which a package of the SDK keeps what only its vendor understands: `google` of `google.generative-ai`. */
export const signerOf = ({ provider }: { provider: string }, { signer }: { signer?: string } = {}): string =>
  signer ?? provider.split('.')[0] ?? provider;

const saying = (text: string): LanguageModelV4Message => ({ role: 'user', content: [{ type: 'text', text }] });

/** Stands before calls of another model, or of a program that keeps no thoughts. */
const unknownThought: AssistantPart = { type: 'reasoning', text: '(not kept)' };

type Reader = { signer: string; owner: string; echo: boolean };

/** Blank texts are refused, and so is what another vendor signed. */
function withoutUnreadable(message: LanguageModelV4Message, reader: Reader): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
    case 'tool':
      return message;
    case 'user': {
      const content = message.content.filter(part => part.type !== 'text' || part.text.trim() !== '');
      return same(content, message.content) ? message : { ...message, content };
    }
    case 'assistant': {
      const content = message.content.flatMap(part => readablePart(part, reader));
      const calls = content.some(({ type }) => type === 'tool-call');
      if (reader.echo && calls && !content.some(({ type }) => type === 'reasoning')) content.unshift(unknownThought);
      return same(content, message.content) ? message : { ...message, content };
    }
  }
}

function readablePart(given: AssistantPart, { signer, owner }: Reader): AssistantPart[] {
  const { providerOptions } = given;
  const own = providerOptions?.[owner];
  const renamed = own !== undefined && owner !== signer;
  const part = renamed ? { ...given, providerOptions: { ...providerOptions, [signer]: own } } : given;
  switch (part.type) {
    case 'text':
      return part.text.trim() === '' ? [] : [part];
    case 'reasoning':
    case 'reasoning-file':
    case 'custom':
      return own === undefined ? [] : [part];
    case 'tool-call':
      return [providerOptions && own === undefined ? { ...part, providerOptions: undefined } : part];
    default:
      return [part];
  }
}

/** Neighbours of one role become one message; their parts stay apart. */
export function append(prompt: LanguageModelV4Message[], message: LanguageModelV4Message): void {
  const last = prompt.at(-1);
  if (!last || last.role !== message.role || last.role === 'system' || message.role === 'system') prompt.push(message);
  else prompt[prompt.length - 1] = Object.assign({ ...last }, { content: [...last.content, ...message.content] });
}
