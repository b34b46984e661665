import { prefixWithin } from '../../core/tokens.ts';
import { modelName, type Seat } from '../modes/ask-many/seats.ts';

/** A verdict with the letter of the model that gave it. */
export interface Labelled {
  label: string;
  text: string;
}

const withheld = '[name withheld]';

/** Words by which models give away who they or their makers are. */
const brands =
  'gpt|chatgpt|openai|claude|anthropic|gemini|google|deepmind|grok|xai|llama|meta ai|mistral|deepseek|qwen|alibaba|kimi|moonshot|glm|zhipu|minimax|openrouter|ollama|groq|azure openai|microsoft copilot';
const brandWord = new RegExp(`(?<![\\p{L}\\p{N}])(?:${brands})(?![\\p{L}])[\\p{L}\\p{N}.:/_-]*(?<![.:/_-])`, 'giu');

/**
 * A verdict without the names of models and their makers, so that it is weighed by what it says. Names that the proposal
 * itself is about stay: without them the verdict would make no sense.
 */
export function unnamed(text: string, seats: readonly Seat[], proposal: string): string {
  const subject = proposal.toLowerCase();
  let out = text;
  for (const name of namesOf(seats)) {
    if (!subject.includes(name.toLowerCase())) out = out.replaceAll(new RegExp(bounded(name), 'giu'), withheld);
  }
  return out.replaceAll(brandWord, word => (subject.includes(word.toLowerCase()) ? word : withheld));
}

/** Longest first, so that no name is cut out of a longer one. Plain words are left: they may mean anything. */
function namesOf(seats: readonly Seat[]): string[] {
  const names = seats.flatMap(({ model, who }) => [
    model,
    ...('candidates' in who ? who.candidates.flatMap(next => [modelName(next), next.model.id, next.model.name]) : []),
  ]);
  return [...new Set(names)].filter(name => /[\d:/-]/.test(name)).toSorted((a, b) => b.length - a.length);
}

function bounded(name: string): string {
  return `(?<![\\p{L}\\p{N}])${name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}(?![\\p{L}\\p{N}])`;
}

/** Verdicts side by side, each cut to its share of the room. */
export function sideBySide(verdicts: readonly Labelled[], roomTokens: number): string {
  const share = Math.max(100, Math.floor(roomTokens / Math.max(1, verdicts.length)));
  return verdicts
    .map(({ label, text }) => {
      const shown = prefixWithin(text, share);
      const body = shown.length < text.length ? `${shown}\n[… cut]` : text;
      return `--- BEGIN VERDICT: Expert ${label} ---\n${body}\n--- END VERDICT: Expert ${label} ---`;
    })
    .join('\n\n');
}
