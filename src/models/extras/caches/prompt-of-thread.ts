import { hash } from 'node:crypto';
import { isRecord } from '../../../core/json.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import type { GooglePrefix } from '../../../providers/google/cached-contents.ts';
import { shownFiles } from '../../shown-files.ts';

/** What a request of a thread says before its newest message. */
export interface PromptOfThread extends GooglePrefix {
  thread: string;
}

/** A beginning by which a longer prompt is known. */
export interface Beginning {
  messages: number;
  hash: string;
}

export function beginningOf(prompt: GooglePrefix): Beginning {
  const { model, systemInstruction, contents } = prompt;
  return { messages: contents.length, hash: hash('sha256', JSON.stringify([model, systemInstruction, contents])) };
}

export function beginsLike(prompt: GooglePrefix, { messages, hash: wanted }: Beginning): boolean {
  if (messages > prompt.contents.length) return false;
  return beginningOf({ ...prompt, contents: prompt.contents.slice(0, messages) }).hash === wanted;
}

function textsOf({ systemInstruction, contents }: Omit<GooglePrefix, 'model'>): string[] {
  return [systemInstruction, ...contents].flatMap(message => {
    const parts = isRecord(message) && Array.isArray(message.parts) ? message.parts.filter(isRecord) : [];
    return parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
  });
}

/** An estimate; images are not counted. */
export function tokensOf(prefix: Omit<GooglePrefix, 'model'>): number {
  return textsOf(prefix).reduce((sum, text) => sum + estimateTokens(text), 0);
}

/** Paths of the files whose text stands there. */
export function filesOf(prefix: GooglePrefix): string[] {
  const shown = textsOf(prefix).flatMap(text => shownFiles(text).filter(({ lines }) => lines > 0));
  return [...new Set(shown.map(({ path }) => path))];
}
