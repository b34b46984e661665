import type { JsonObject } from '../../core/json.ts';
import { estimateTokens, prefixWithin } from '../../core/tokens.ts';
import { documentTokens } from '../answer/cap.ts';

/** A slot of a reply, and the answer that stands in it under `response`. */
export interface SlotEntry {
  facts: JsonObject;
  text?: string;
}

/** Where the whole of a slot's answer is kept: a turn of a thread, and where in it the answer begins. */
export interface Kept {
  thread: string;
  seq: number;
  offset: number;
}

/** A text is never cut shorter than this many tokens. */
const shortTokens = 60;
/** What a slot's words on its cut cost. */
const noteTokens = 90;

export function documentWith(entries: readonly SlotEntry[], make: (slots: JsonObject[]) => JsonObject): JsonObject {
  return make(entries.map(whole));
}

function whole({ facts, text }: SlotEntry): JsonObject {
  const { model, requested, ...rest } = facts;
  return text === undefined ? facts : { model, requested, response: text, ...rest };
}

/**
 * The reply with its answers cut so that it has at most `limit` tokens: the short ones stay whole, the long ones get equal
 * parts of what is left. No slot is lost; where its whole answer is kept, a cut one has the cursor to read on.
 */
export function capSlots(
  entries: readonly SlotEntry[],
  make: (slots: JsonObject[]) => JsonObject,
  limit: number,
  kept: readonly (Kept | undefined)[],
): JsonObject {
  const sizes = entries.map(({ text = '' }) => estimateTokens(JSON.stringify(text)));
  const empty = entries.map(entry => (entry.text === undefined ? entry : { ...entry, text: '' }));
  const around = documentTokens(documentWith(empty, make)) + noteTokens * entries.length;
  for (let room = limit - around; ; room = Math.floor(room * 0.8)) {
    const share = Math.max(shortTokens, equalShare(sizes, room));
    const document = make(entries.map((entry, index) => cut(entry, sizes[index] ?? 0, share, kept[index])));
    if (documentTokens(document) <= limit || share <= shortTokens) return document;
  }
}

/** The size that each may have at the most, so that all together take no more than `room`. */
function equalShare(sizes: readonly number[], room: number): number {
  let left = room;
  const ascending = sizes.toSorted((a, b) => a - b);
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Math.max(0, ...sizes);
}

function cut(entry: SlotEntry, size: number, share: number, kept: Kept | undefined): JsonObject {
  const { facts, text } = entry;
  if (text === undefined || size <= share) return whole(entry);
  const beginning = prefixWithin(text, share);
  return {
    ...whole({ facts, text: beginning }),
    truncated: {
      total_tokens: estimateTokens(text),
      shown_characters: beginning.length,
      ...(kept && {
        artifact: `polylogue://threads/${kept.thread}/turns/${kept.seq}`,
        next_cursor: `${kept.seq}:${kept.offset + beginning.length}`,
      }),
    },
  };
}
