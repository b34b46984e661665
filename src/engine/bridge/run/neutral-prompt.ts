import type { CliDefinition } from '../../../providers/external-cli/clis/cli.ts';

const atSign = '@';
/** The same letter in another width: people and models read it as an at sign, programs do not. */
const wideAtSign = '\uff20';

/** A prompt in which a CLI finds no commands, and how to read what it says to it. */
export interface NeutralPrompt {
  text: string;
  /** An answer, with the signs that were changed as they should be. */
  restored(answer: string): string;
}

/**
 * CLIs read commands out of prompts: `@path` puts a file in, a slash or a dash at the beginning does something else altogether.
 * What callers, files and models say must not: at signs are widened, and what is in front was put there by us.
 */
export function neutralPrompt({ plainAt }: Pick<CliDefinition, 'plainAt'>, prompt: string): NeutralPrompt {
  const text = prompt.replaceAll('\0', '');
  const same = (answer: string) => answer;
  if (plainAt || !text.includes(atSign)) return { text: safeStart(text), restored: same };
  const note = `In this text ${wideAtSign} stands for an at sign; write and use the ordinary one.`;
  const widened = safeStart(`${text.replaceAll(atSign, wideAtSign)}\n\n${note}`);
  // Where the prompt had wide ones of its own, nobody can tell which one is meant.
  const restored = text.includes(wideAtSign) ? same : (answer: string) => answer.replaceAll(wideAtSign, atSign);
  return { text: widened, restored };
}

/** Prompts of ours begin with a heading. */
function safeStart(text: string): string {
  return /^[\p{L}\p{N}=]/u.test(text) ? text : `Request:\n${text}`;
}
