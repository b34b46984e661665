import type { Segment } from './prompt.ts';

const smallest = 1_024;
const step = 128;

export interface PrefixCache {
  /** Tokens of the longest beginning that an earlier request of the same key had too, as OpenAI counts them; remembers this one. */
  cached(key: string, segments: readonly Segment[]): number;
}

/** OpenAI's cache: by itself, from 1,024 tokens on, in steps of 128. Nothing is forgotten. */
export function createPrefixCache(): PrefixCache {
  const seen = new Map<string, (readonly Segment[])[]>();
  return {
    cached(key, segments) {
      const earlier = seen.get(key) ?? [];
      const longest = earlier.reduce((most, other) => Math.max(most, commonTokens(segments, other)), 0);
      seen.set(key, [...earlier, segments]);
      return longest < smallest ? 0 : longest - (longest % step);
    },
  };
}

function commonTokens(a: readonly Segment[], b: readonly Segment[]): number {
  let common = 0;
  for (const [index, { label, tokens }] of a.entries()) {
    const other = b[index];
    if (other?.label !== label) return common;
    const differs = tokens.findIndex((token, at) => token !== other.tokens[at]);
    if (differs !== -1) return common + differs;
    common += tokens.length;
    if (other.tokens.length !== tokens.length) return common;
  }
  return common;
}
