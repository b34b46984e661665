import { encode, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base';

// Its hits become slow in a large cache: src/workspace/workers/count-tokens.ts.
setMergeCacheSize(1_000);

/** Merging one unbroken run costs the square of its length, so that longer runs are cut; the count may be off by one a cut. */
const longestRun = 512;
const longRun = /[\p{L}\p{M}]{513}|\s{513}|[^\s\p{L}\p{M}\p{N}]{513}/u;
const runs = /[\p{L}\p{M}]+|\s+|\p{N}+|[^\s\p{L}\p{M}\p{N}]+/gu;
/** Text such as `<|endoftext|>` is text here, nothing else. */
const asText = { disallowedSpecial: new Set<string>() };

/** The tokens that o200k makes of a text. */
export function o200kTokens(text: string): number[] {
  if (!longRun.test(text)) return encode(text, asText);
  return pieces(text).flatMap(piece => encode(piece, asText));
}

function pieces(text: string): string[] {
  const found: string[] = [];
  let from = 0;
  for (const { 0: run, index } of text.matchAll(runs)) {
    if (run.length <= longestRun) continue;
    if (index > from) found.push(text.slice(from, index));
    const points = Array.from(run);
    for (let at = 0; at < points.length; at += longestRun) found.push(points.slice(at, at + longestRun).join(''));
    from = index + run.length;
  }
  if (from < text.length) found.push(text.slice(from));
  return found;
}
