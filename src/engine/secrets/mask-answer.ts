import type { Mask } from '../../core/ports.ts';
import type { Originals } from '../../files/put-back/originals.ts';
import type { ModelAnswer } from '../../models/ask-model.ts';

/** Parts of a secret of several lines that are long enough to be known by themselves. */
const leastPart = 12;

/**
 * An answer as it may be stored and shown. Models make secrets up, and repeat what they found in ways the files did not have;
 * one that was `shown` secrets may repeat them without what they are known by.
 */
export async function maskAnswer(
  mask: Mask,
  scope: string,
  answer: ModelAnswer,
  shown: Originals = new Map(),
): Promise<ModelAnswer> {
  const hide = async (text: string) => (await mask(withoutShown(text, shown), scope, 'model')).text;
  const citations = answer.citations.map(async citation => ({
    ...citation,
    title: await hide(citation.title),
    url: await hide(citation.url),
    ...(citation.snippet !== undefined && { snippet: await hide(citation.snippet) }),
  }));
  return {
    ...answer,
    // As the store keeps it: half of a surrogate pair would come back as another character and change the prompt.
    text: await hide(answer.text.toWellFormed()),
    citations: await Promise.all(citations),
    warnings: await Promise.all(answer.warnings.map(hide)),
  };
}

/** The longest first, so that a secret within another leaves nothing of that. */
function withoutShown(text: string, shown: Originals): string {
  const parts = [...shown].flatMap(([placeholder, original]) =>
    [original, ...original.split('\n').filter(line => line.length >= leastPart)].map(part => ({ part, placeholder })),
  );
  parts.sort((a, b) => b.part.length - a.part.length);
  return parts.reduce((left, { part, placeholder }) => left.replaceAll(part, () => placeholder), text);
}
