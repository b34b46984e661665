import ranks from 'gpt-tokenizer/bpeRanks/o200k_base';
import { segmentBits, slotBits, WordHash } from '../../src/core/tokens.ts';

/** Slots for each word: with fewer, some words would find no slot of their own. */
const slotsPerWord = 1.13;

interface Placed {
  mark: number;
  slots: readonly number[];
}

/** The order in which words can be given a slot that no later one needs: the reverse of taking away what alone has a slot. */
function inOrder(words: readonly Placed[], slots: number): { word: Placed; own: number }[] {
  const counts = new Int32Array(slots);
  const holders = new Int32Array(slots);
  const change = (at: number, by: number) => {
    for (const slot of words[at]?.slots ?? []) {
      counts[slot] = (counts[slot] ?? 0) + by;
      holders[slot] = (holders[slot] ?? 0) ^ at;
    }
  };
  for (const at of words.keys()) change(at, 1);
  const alone = [...counts.keys()].filter(slot => counts[slot] === 1);
  const order: { word: Placed; own: number }[] = [];
  for (let own = alone.pop(); own !== undefined; own = alone.pop()) {
    const at = holders[own] ?? 0;
    const word = words[at];
    if (counts[own] !== 1 || !word) continue;
    order.push({ word, own });
    change(at, -1);
    alone.push(...word.slots.filter(slot => counts[slot] === 1));
  }
  if (order.length < words.length) throw new Error('The filter has too few slots: raise slotsPerWord.');
  return order.reverse();
}

/** A binary fuse filter of o200k's vocabulary: the estimate of tokens looks words up without loading the tokenizer. */
export function vocabularyFilter(): Buffer {
  // What is no text of its own is a part of a character.
  const words = ranks.filter(token => typeof token === 'string');
  const segments = Math.ceil((words.length * slotsPerWord) / 2 ** segmentBits);
  const slots = segments * 2 ** segmentBits;
  const filter = Buffer.alloc(Math.ceil((slots * slotBits) / 8) + 1);
  const hash = new WordHash();
  const placed = words.map(word => {
    hash.reset();
    for (let at = 0; at < word.length; at++) hash.add(word.charCodeAt(at));
    return { mark: hash.locate(filter.length), slots: [...hash.slots] };
  });
  const values = new Uint8Array(slots);
  for (const { word, own } of inOrder(placed, slots))
    values[own] = word.slots.reduce((mark, slot) => mark ^ (slot === own ? 0 : (values[slot] ?? 0)), word.mark);
  for (const [slot, value] of values.entries()) {
    const bit = slot * slotBits;
    filter.writeUInt16LE(filter.readUInt16LE(bit >>> 3) | (value << (bit & 7)), bit >>> 3);
  }
  return filter;
}
