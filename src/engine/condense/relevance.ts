/** Longer words tell more. */
function weightOf(word: string): number {
  return Math.min(4, word.length / 4);
}

/** How much of what is asked for a text speaks of: 0 when of nothing. Both are lower-case. */
export function relevance(words: readonly string[], text: string): number {
  let score = 0;
  for (const word of words) if (text.includes(word)) score += weightOf(word);
  return score;
}

/** The same for a file: its name tells more than its text. */
export function fileRelevance(words: readonly string[], path: string, text: string): number {
  return relevance(words, path.toLowerCase()) * 3 + relevance(words, text.toLowerCase());
}
