import { createHash } from 'node:crypto';
import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { tailHeading } from '../../../core/message.ts';

/** One text of a prompt, in its order. */
export interface PromptPart {
  role: 'system' | 'user' | 'assistant';
  text: string;
}

export interface PromptParts {
  /** What grows only at its end from call to call. */
  stable: PromptPart[];
  /** What to do now. */
  tail: PromptPart[];
}

export function promptParts(prompt: LanguageModelV4Prompt): PromptParts {
  const stable: PromptPart[] = [];
  const tail: PromptPart[] = [];
  for (const message of prompt) {
    if (message.role === 'tool') continue;
    const { role, content } = message;
    const texts =
      typeof content === 'string' ? [content] : content.flatMap(part => (part.type === 'text' ? [part.text] : []));
    for (const text of texts) (text.startsWith(tailHeading) ? tail : stable).push({ role, text });
  }
  return { stable, tail };
}

const headings: Record<PromptPart['role'], string> = {
  system: '=== INSTRUCTIONS ===',
  user: '=== FROM THE CALLER ===',
  assistant: '=== EARLIER ANSWER ===',
};

/** Parts as the one text that a program reads. It begins with a word of ours: never with a slash, a dash or an at sign. */
export function promptText(parts: readonly PromptPart[]): string {
  return parts
    .map(({ role, text }) => (text.startsWith(tailHeading) ? text : `${headings[role]}\n${text}`))
    .join('\n\n');
}

/** Equal for equal parts; tells whether a prompt still begins as it did. */
export function partsDigest(parts: readonly PromptPart[]): string {
  const hash = createHash('sha256');
  for (const { role, text } of parts) hash.update(`${role} ${text.length} `).update(text);
  return hash.digest('hex');
}
