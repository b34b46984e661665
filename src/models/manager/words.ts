/** One of these words or phrases, as whole words of any alphabet. */
export function words(...alternatives: string[]): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}_])(?:${alternatives.join('|')})(?![\\p{L}\\p{N}_])`, 'iu');
}

/** Scripts without spaces have no word boundaries. */
export function either(spaced: RegExp, ...unspaced: string[]): RegExp {
  return new RegExp(`${spaced.source}|${unspaced.join('|')}`, 'iu');
}

/** Up to three words. */
export const few = '(?:[^\\s.?!,;:]+ ){0,3}';
/** A stretch of the same sentence. */
export const nearby = '(?:[^.?!\\n]|\\.(?=\\w)){0,50}?';
