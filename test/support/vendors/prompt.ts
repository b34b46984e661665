import { tailHeading } from '../../../src/core/message.ts';
import type { RecordedRequest } from './fake-vendor.ts';
import { o200kTokens } from './o200k-tokens.ts';
import { stableJson } from './wire-values.ts';

export interface PromptPart {
  /** `[image]` for an image. */
  text: string;
  /** Bytes that are no text, such as an image: they tell two parts apart, but count no tokens. */
  opaque?: string;
}

export interface PromptMessage {
  /** The vendor's own word. */
  role: string;
  parts: PromptPart[];
}

/** A request in the one form in which all dialects are compared. */
export interface Prompt {
  tools: unknown[];
  /** System texts that stand outside of the messages come first, as `system`. */
  messages: PromptMessage[];
}

/** A stretch of the prompt for the caches: equal segments have equal tokens. */
export interface Segment {
  label: string;
  tokens: readonly number[];
}

export function canonicalForm({ tools, messages }: Prompt): string {
  const kept = messages.map(({ role, parts }) => ({
    role: role === 'developer' ? 'system' : role,
    texts: beforeTail(parts).map(part => part.text),
  }));
  const filled = kept.filter(message => message.texts.length > 0);
  const firstTurn = filled.findIndex(message => message.role !== 'system');
  const leading = firstTurn === -1 ? filled.length : firstTurn;

  let form = tools.length > 0 ? `tools:${JSON.stringify(tools)}\n` : '';
  form += `system:${filled
    .slice(0, leading)
    .flatMap(message => message.texts)
    .join('\n')}`;
  let role = '';
  for (const message of filled.slice(leading)) {
    form += message.role === role ? '\n' : `\n[${message.role}]\n`;
    form += message.texts.join('\n');
    role = message.role;
  }
  return form;
}

/** The tail comes last: from its heading on, nothing of the message belongs to the stable part. */
function beforeTail(parts: readonly PromptPart[]): readonly PromptPart[] {
  const tail = parts.findIndex(part => part.text.startsWith(tailHeading));
  return tail === -1 ? parts : parts.slice(0, tail);
}

export function plainMessages({ messages }: Prompt): RecordedRequest['messages'] {
  return messages.map(({ role, parts }) => ({ role, text: parts.map(part => part.text).join('\n') }));
}

const known = new Map<string, readonly number[]>();
let knownTokens = 0;

/** Remembers the tokens of texts: a conversation that grows is sent again and again, and each one begins alike. */
export function tokensOf(text: string): readonly number[] {
  const found = known.get(text);
  if (found) return found;
  const tokens = o200kTokens(text);
  knownTokens += tokens.length;
  if (knownTokens > 4_000_000 || known.size > 20_000) {
    known.clear();
    knownTokens = tokens.length;
  }
  known.set(text, tokens);
  return tokens;
}

export function segmentsOf(prompt: Prompt, tokenize: (text: string) => readonly number[]): Segment[] {
  return [
    ...prompt.tools.map(tool => ({ label: 'tools', tokens: tokenize(stableJson(tool)) })),
    ...prompt.messages.flatMap(({ role, parts }) =>
      parts.map(part =>
        part.opaque === undefined
          ? { label: role, tokens: tokenize(part.text) }
          : { label: `${role}:${part.opaque}`, tokens: [] },
      ),
    ),
  ];
}

export function tokensIn(segments: readonly Segment[]): number {
  return segments.reduce((sum, segment) => sum + segment.tokens.length, 0);
}
