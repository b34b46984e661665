import type { PutBack } from '../../workspace/restore-secrets.ts';

/** What a model that may generate code is told of the form. */
export const generationProtocol = `If, and only if, the question asks for substantial new or rewritten code, put all of it into one element, with brief text before it:
<GENERATED-CODE>
Numbered instructions for the caller, and between them complete files:
<NEWFILE: path/of/file>…whole content…</NEWFILE>
<UPDATED_EXISTING_FILE: path/of/file>…whole changed functions or blocks, with enough around them to place them…</UPDATED_EXISTING_FILE>
</GENERATED-CODE>
No placeholders, no "rest as before" inside a block; say which code is to be deleted and why. For small fixes and discussion answer in plain Markdown without the element.`;

export const artifactName = 'polylogue_generated.code';

/** The last generated-code element of an answer, and the answer without it; undefined when there is none. */
export function splitGeneratedCode(text: string): { code: string; rest: string } | undefined {
  // Some letters of other alphabets are more than one in lower case, and all that follows them would be shifted.
  const lower = text.replace(/[A-Z]+/g, word => word.toLowerCase());
  const end = lower.lastIndexOf('</generated-code>');
  const start = end === -1 ? -1 : lower.lastIndexOf('<generated-code>', end);
  if (start === -1) return undefined;
  const after = end + '</generated-code>'.length;
  const rest = [text.slice(0, start).trim(), text.slice(after).trim()].filter(part => part !== '').join('\n\n');
  return { code: text.slice(start, after), rest };
}

/** What the caller is told to do with the artifact. */
export function artifactInstructions(path: string, replaced: boolean): string {
  return [
    `The generated code is in ${path}${replaced ? ' (an older file of that name was replaced)' : ''}.`,
    'It is a proposal: instructions and partial snippets among whole files, never to be pasted as it is.',
    'Read it in sections if it is long; apply the updates of existing files, then the new files; check partial snippets against the code; build and test; then delete the artifact.',
  ].join(' ');
}

/** What the caller must know of masked secrets in a file; empty when there is nothing to know. */
export function secretsNote({ left }: Pick<PutBack, 'left'>): string {
  if (left.length === 0) return '';
  const lines = [...new Set(left.map(({ line }) => line))].slice(0, 20).join(', ');
  return `Masked secrets stand in lines ${lines} of it as [masked:…]: what they stand for is in no file of this thread. Put the real values there before you use it.`;
}
