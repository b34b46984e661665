import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider';
import { paired } from '../asking/paired.ts';

type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>;
type AssistantPart = Assistant['content'][number];

/** Stands where a history begins or ends with an answer, which some vendors refuse. */
const before = '(The conversation began before this.)';
const goOn = 'Go on.';

/**
 * A history that every vendor takes, whatever happened to it: nothing blank, users and assistants in turns, each call
 * with its one result right after it, reasoning only where the vendor that is asked signed it itself (as
 * `signer`, the name under which its package keeps such things). A sound history comes back as it is, and a prefix of a
 * history is mended to a prefix, but for its end.
 */
export function repaired(prompt: LanguageModelV4Prompt, signer: string): LanguageModelV4Prompt {
  const readable = prompt.map(message => withoutUnreadable(message, signer));
  const joined: LanguageModelV4Message[] = [];
  for (const message of paired(readable, signer)) {
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
