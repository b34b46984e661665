export type Part =
  | { type: 'text'; text: string }
  /** `data` is the file's bytes. */
  | { type: 'image'; mediaType: string; data: Uint8Array };

/**
 * One message of a prompt. `preamble` and `turn` messages are the stable part that grows only at its end; the one `tail`
 * comes last, is never stored, and is not part of the canonical form.
 */
export interface Message {
  role: 'system' | 'user' | 'assistant';
  section: 'preamble' | 'turn' | 'tail';
  parts: Part[];
  /** Ends a stretch that the vendor should cache, where the vendor wants to be told. */
  cacheMark?: boolean;
  /** The text of a document: material, though some vendors want it as a system message. */
  document?: boolean;
}

/** The first line of every tail. Whoever compares prompts cuts there. */
export const tailHeading = '=== WHAT TO DO NOW ===';

export function textOf(message: Message): string {
  return message.parts.map(part => (part.type === 'text' ? part.text : '')).join('');
}
