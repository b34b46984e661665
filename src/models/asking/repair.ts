import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider';

type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>;
type AssistantPart = Assistant['content'][number];
type Tool = Extract<LanguageModelV4Message, { role: 'tool' }>;

/** Stands where a history begins or ends with an answer, which some vendors refuse. */
const before = '(The conversation began before this.)';
const goOn = 'Go on.';

/**
 * A history that every vendor takes, whatever happened to it: nothing blank, users and assistants in turns, tool results
 * right after their calls and none of either alone, reasoning only where the vendor that is asked signed it itself (as
 * `signer`, the name under which its package keeps such things). A sound history comes back as it is, and a prefix of a
 * history is mended to a prefix, but for its end.
 */
export function repaired(prompt: LanguageModelV4Prompt, signer: string): LanguageModelV4Prompt {
  const readable = prompt.map(message => withoutUnreadable(message, signer));
  const paired = readable.map((message, index) => withPairs(message, readable, index));
  const joined: LanguageModelV4Message[] = [];
  for (const message of paired) {
    if (message.content.length === 0) continue;
    if (message.role === 'assistant' && !joined.some(({ role }) => role === 'user' || role === 'tool')) {
      joined.push(saying(before));
    }
    append(joined, message);
  }
  const nothing = joined.every(({ role }) => role === 'system');
  if (nothing || joined.at(-1)?.role === 'assistant') joined.push(saying(goOn));
  return joined;
}

/** The name under which a package of the SDK keeps what only its vendor understands: `google` of `google.generative-ai`. */
export function signerOf({ provider }: { provider: string }): string {
  return provider.split('.')[0] ?? provider;
}

function saying(text: string): LanguageModelV4Message {
  return { role: 'user', content: [{ type: 'text', text }] };
}

/** Blank texts are refused, and so is what another vendor signed. */
function withoutUnreadable(message: LanguageModelV4Message, signer: string): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
    case 'tool':
      return message;
    case 'user': {
      const content = message.content.filter(part => part.type !== 'text' || part.text.trim() !== '');
      return content.length === message.content.length ? message : { ...message, content };
    }
    case 'assistant': {
      const content = message.content.flatMap(part => readablePart(part, signer));
      const same =
        content.length === message.content.length && content.every((part, at) => part === message.content[at]);
      return same ? message : { ...message, content };
    }
  }
}

function readablePart(part: AssistantPart, signer: string): AssistantPart[] {
  const { providerOptions } = part;
  const own = providerOptions?.[signer];
  switch (part.type) {
    case 'text':
      return part.text.trim() === '' ? [] : [part];
    case 'reasoning':
    case 'reasoning-file':
    case 'custom':
      return own === undefined ? [] : [part];
    case 'tool-call':
      return [isForeign(providerOptions, signer) ? { ...part, providerOptions: undefined } : part];
    default:
      return [part];
  }
}

function isForeign(options: SharedV4ProviderOptions | undefined, signer: string): boolean {
  return options !== undefined && options[signer] === undefined;
}

/** Calls without a result in the messages right after them, and results without a call right before, tell a model nothing. */
function withPairs(
  message: LanguageModelV4Message,
  all: readonly LanguageModelV4Message[],
  index: number,
): LanguageModelV4Message {
  if (message.role === 'assistant') {
    const answered = new Set(resultsAfter(all, index).map(({ toolCallId }) => toolCallId));
    const seen = new Set<string>();
    const content = message.content.filter(part => {
      if (part.type !== 'tool-call' || part.providerExecuted) return true;
      return answered.has(part.toolCallId) && !seen.has(part.toolCallId) && seen.add(part.toolCallId);
    });
    return content.length === message.content.length ? message : { ...message, content: withoutLoneThoughts(content) };
  }
  if (message.role === 'tool') {
    const called = callsBefore(all, index);
    const content = message.content.filter(part => part.type !== 'tool-result' || called.delete(part.toolCallId));
    return content.length === message.content.length ? message : { ...message, content };
  }
  return message;
}

/** Thoughts that led to a call which is gone lead nowhere. */
function withoutLoneThoughts(content: readonly AssistantPart[]): AssistantPart[] {
  const last = content.findLastIndex(part => part.type !== 'reasoning' && part.type !== 'reasoning-file');
  return content.slice(0, last + 1);
}

function resultsAfter(all: readonly LanguageModelV4Message[], index: number) {
  const found: Extract<Tool['content'][number], { type: 'tool-result' }>[] = [];
  for (const message of all.slice(index + 1)) {
    if (message.role !== 'tool') break;
    found.push(...message.content.filter(part => part.type === 'tool-result'));
  }
  return found;
}

/** Ids of the calls that the message at `index` may answer: those of the assistant before it that no other answered yet. */
function callsBefore(all: readonly LanguageModelV4Message[], index: number): Set<string> {
  let at = index - 1;
  while (all[at]?.role === 'tool') at--;
  const asked = all[at];
  if (asked?.role !== 'assistant') return new Set();
  const open = new Set(asked.content.flatMap(part => (part.type === 'tool-call' ? [part.toolCallId] : [])));
  for (const message of all.slice(at + 1, index)) {
    if (message.role !== 'tool') continue;
    for (const part of message.content) if (part.type === 'tool-result') open.delete(part.toolCallId);
  }
  return open;
}

/** Neighbours of one role become one message; their parts stay apart. */
function append(prompt: LanguageModelV4Message[], message: LanguageModelV4Message): void {
  const last = prompt.at(-1);
  if (last?.role === 'user' && message.role === 'user') {
    prompt[prompt.length - 1] = { ...last, content: [...last.content, ...message.content] };
  } else if (last?.role === 'assistant' && message.role === 'assistant') {
    prompt[prompt.length - 1] = { ...last, content: [...last.content, ...message.content] };
  } else if (last?.role === 'tool' && message.role === 'tool') {
    prompt[prompt.length - 1] = { ...last, content: [...last.content, ...message.content] };
  } else {
    prompt.push(message);
  }
}
