/** What a text may hold. It becomes a regular expression with its first use: that takes its time, and few calls come to all. */
export interface Phrases {
  readonly source: string;
  test(text: string): boolean;
}

function phrases(source: string): Phrases {
  let pattern: RegExp | undefined;
  return {
    source,
    test(text) {
      pattern ??= new RegExp(source, 'iu');
      return pattern.test(text);
    },
  };
}

/** One of these words or phrases, as whole words of any alphabet. */
export function words(...alternatives: string[]): Phrases {
  return phrases(`(?<![\\p{L}\\p{N}_])(?:${alternatives.join('|')})(?![\\p{L}\\p{N}_])`);
}

/** Scripts without spaces have no word boundaries. */
export function either(spaced: Phrases, ...unspaced: string[]): Phrases {
  return phrases(`${spaced.source}|${unspaced.join('|')}`);
}

/** Up to three words. */
export const few = '(?:[^\\s.?!,;:]+ ){0,3}';
/** A stretch of the same sentence. */
export const nearby = '(?:[^.?!\\n]|\\.(?=\\w)){0,50}?';
