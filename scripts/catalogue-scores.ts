import type { Price } from '../src/core/model.ts';

/** What the score is made from. */
export interface Scored {
  provider: string;
  id: string;
  reasoning: boolean;
  price: Price | undefined;
  /** Half years after 2025 H1, at most 3; before it each counts twice, at most -6. */
  generation: number;
}

/**
 * The family's place in its vendor's range, first match wins.
 * 15 the largest, 13 the usual large one, 11 the quick middle, 8 the small, 5 what runs on a laptop.
 */
const tiers: readonly (readonly [RegExp, number])[] = [
  [/rnj|[-:]e?[1-9]b\b|prompt/, 5],
  [
    /nano|lite|luna|\bair\b|flashx|instant|gemma|ministral|nemo\b|oss.20b|[-:][123]\db|saba|8x22b|compound-mini|gpt-3/,
    8,
  ],
  [/haiku|terra|-mini\b|flash|spark|turbo|fast|mistral-(small|medium)|compound|build|coder|llama|oss.120b/, 11],
  [/fable|opus|astra|argon|(gpt|o)-?[\d.]+-pro/, 15],
  [/claude|gpt|\bo\d|sol|gemini|grok|kimi|glm|deepseek|minimax|mistral-large|qwen|nemotron|codex/, 13],
  [/./, 9],
];

/** For one trade or under conditions of its own: never a good automatic choice, whatever the family. */
const special = /cyber|daybreak|robotics|customtools|multi-agent|vision-exp/;

export function isSpecial(id: string): boolean {
  return special.test(id);
}

/** Rows the formula judges wrongly, corrected by hand, with the reason. */
const corrected: ReadonlyMap<string, number> = new Map([
  // An early design that costs seventy times what does better today.
  ['openai/o1-pro', 13],
  // Ahead of its year: still as good as models one generation younger.
  ['google/gemini-2.5-pro', 16],
  ['openrouter/google/gemini-2.5-pro', 16],
  // The oldest generation of its vendor, kept for those who still ask for it.
  ['moonshot/moonshot-v1-8k', 5],
  ['moonshot/moonshot-v1-32k', 5],
  ['moonshot/moonshot-v1-128k', 6],
  ['ollama/llama3.1', 6],
  ['ollama/llama3.2', 5],
  // Undated, but of its vendor's newest generation.
  ['openrouter/mistralai/mistral-large-4-0', 16],
  // A pointer to whatever the chat product uses: nothing is promised about it.
  ['openai/chat-latest', 12],
]);

/**
 * score = tier + generation + 1 if it reasons + 1 if three parts in and one part out cost $2 or more a million on average
 *         - 3 for a moving pointer, - 2 for a rate-limited free offer; from 4 to 20; special ones at most 8.
 */
export function scoreOf(row: Scored): number {
  const id = row.id.toLowerCase();
  const fixed = corrected.get(`${row.provider}/${row.id}`);
  if (fixed !== undefined) return fixed;
  const tier = tiers.find(([pattern]) => pattern.test(id))?.[1] ?? 9;
  const average = row.price ? (3 * row.price.in + row.price.out) / 4 : 0;
  const pointer = /latest$/.test(id) ? 3 : 0;
  const free = /:free$/.test(id) ? 2 : 0;
  const sum = tier + row.generation + (row.reasoning ? 1 : 0) + (average >= 2 ? 1 : 0) - pointer - free;
  return Math.max(4, Math.min(isSpecial(id) ? 8 : 20, sum));
}
