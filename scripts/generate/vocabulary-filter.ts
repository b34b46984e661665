import ranks from 'gpt-tokenizer/bpeRanks/o200k_base';
import { probes, WordHash } from '../../src/core/tokens.ts';

const bitsPerWord = 10;

/** A Bloom filter of o200k's vocabulary: the estimate of tokens looks words up without loading the tokenizer. */
export function vocabularyFilter(): Buffer {
  // What is no text of its own is a part of a character.
  const words = ranks.filter(token => typeof token === 'string');
  const filter = Buffer.alloc(Math.ceil((words.length * bitsPerWord) / 8));
  const hash = new WordHash();
  for (const word of words) {
    hash.reset();
    for (let at = 0; at < word.length; at++) hash.add(word.charCodeAt(at));
    for (let probe = 0; probe < probes; probe++) {
      const bit = hash.bit(probe, filter.length * 8);
      filter[bit >>> 3] = (filter[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }
  return filter;
}
