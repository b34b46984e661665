import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { Gathered } from '../../calls/call-record.ts';
import { type Message, textOf } from '../../core/message.ts';
import { estimateTokens, tokenFactor } from '../../core/tokens.ts';
import { type Originals, placeholdersIn } from '../../files/put-back/originals.ts';
import { putBack } from '../../workspace/restore-secrets.ts';
import { threadOriginals } from './thread-originals.ts';

/** A prompt whose files read as they are on the disk. */
export interface ClearPrompt {
  messages: Message[];
  /** What the model sees in clear, and the thread must not keep. */
  shown: Originals;
}

/**
 * For models that run on this machine: the stored, masked prompt with the secrets of its files put back as it is sent.
 * Undefined where there are none, where any candidate is elsewhere, or where it would not fit any more.
 */
export async function clearPrompt(
  options: ComposeOptions,
  gathered: Gathered,
  runsHere: (providerId: string) => boolean,
): Promise<ClearPrompt | undefined> {
  const { candidates, messages, thread, turn, signal } = gathered;
  if (!candidates.every(({ model }) => runsHere(model.provider))) return undefined;
  const wanted = placeholdersIn(messages.map(textOf).join('\n'));
  const shown = await threadOriginals(options, { thread, files: turn.files, signal }, wanted);
  if (shown.size === 0) return undefined;
  const clear = messages.map(message => ({
    ...message,
    parts: message.parts.map(part => (part.type === 'text' ? { ...part, text: putBack(part.text, shown).text } : part)),
  }));
  return fits(gathered, clear) ? { messages: clear, shown } : undefined;
}

/** Secrets are longer than what stands for them. */
function fits({ candidates: [{ model }], messages, budget }: Gathered, clear: readonly Message[]): boolean {
  const count = (all: readonly Message[]) => all.reduce((sum, each) => sum + estimateTokens(textOf(each)), 0);
  const more = (count(clear) - count(messages)) * tokenFactor(model.id);
  return budget.reserved + budget.historyUsed + budget.filesUsed + budget.answer + more <= model.window;
}
