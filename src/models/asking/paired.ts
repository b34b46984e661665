import type {
  LanguageModelV4Message,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import { isRecord } from '../../core/json.ts';

type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>;
type AssistantPart = Assistant['content'][number];
type Tool = Extract<LanguageModelV4Message, { role: 'tool' }>;

/** Stands where a call's result would, when the run was ended before there was one. */
const interrupted = 'There is no result: the call was interrupted.';
const longestId = 64;
const longestName = 64;

/**
 * Each call with exactly one result in the messages right after it, under an id and a name that vendors take and no other call
 * has; a missing result is said to be missing, and one without a call is left out. `signer` is who reads it.
 */
export function paired(messages: readonly LanguageModelV4Message[], signer: string): LanguageModelV4Message[] {
  const out: LanguageModelV4Message[] = [];
  const used = new Set<string>();
  /** The calls of the message before that nobody answered yet, by their ids as they stood there. */
  const open = new Map<string, LanguageModelV4ToolCallPart>();
  const close = () => {
    if (open.size > 0) out.push({ role: 'tool', content: [...open.values()].map(missing) });
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

function same(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((part, at) => part === b[at]);
}

function missing({ toolCallId, toolName }: LanguageModelV4ToolCallPart): LanguageModelV4ToolResultPart {
  return { type: 'tool-result', toolCallId, toolName, output: { type: 'error-text', value: interrupted } };
}

function answering(
  part: LanguageModelV4ToolResultPart,
  open: Map<string, LanguageModelV4ToolCallPart>,
): Tool['content'] {
  const call = open.get(part.toolCallId);
  if (!call) return [];
  open.delete(part.toolCallId);
  const { toolCallId, toolName } = call;
  const { output } = part;
  const blank = (output.type === 'text' || output.type === 'error-text') && output.value.trim() === '';
  if (toolCallId === part.toolCallId && toolName === part.toolName && !blank) return [part];
  return [{ ...part, toolCallId, toolName, output: blank ? { type: output.type, value: '(nothing)' } : output }];
}

function soundCall(
  part: LanguageModelV4ToolCallPart,
  used: ReadonlySet<string>,
  signer: string,
): LanguageModelV4ToolCallPart {
  const toolCallId = freeId(soundId(part.toolCallId, signer), used);
  const toolName = part.toolName.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, longestName) || 'unknown';
  const input = isRecord(part.input) ? part.input : {};
  if (toolCallId === part.toolCallId && toolName === part.toolName && input === part.input) return part;
  return { ...part, toolCallId, toolName, input };
}

/** Some vendors put dots and colons into ids and want them back; Anthropic refuses them. */
function soundId(id: string, signer: string): string {
  const plain = signer === 'anthropic' ? id.replace(/[^a-zA-Z0-9_-]/g, '_') : id;
  return plain.slice(0, longestId) || 'call';
}

function freeId(id: string, used: ReadonlySet<string>): string {
  for (let number = 1; ; number++) {
    const mark = number === 1 ? '' : `_${number}`;
    const free = `${id.slice(0, longestId - mark.length)}${mark}`;
    if (!used.has(free)) return free;
  }
}

/** Thoughts that led to a call which is gone lead nowhere. */
function withoutLoneThoughts(content: readonly AssistantPart[]): AssistantPart[] {
  const last = content.findLastIndex(part => part.type !== 'reasoning' && part.type !== 'reasoning-file');
  return content.slice(0, last + 1);
}
