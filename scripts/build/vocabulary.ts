import { isUtf8 } from 'node:buffer';

/** A token as text, or as bytes where these are no text of their own. Its place in the list is its rank. */
export type Token = string | readonly number[];

/** The first tokens are the bytes; each later one is two earlier ones, joined. */
const bytes = 256;

/** Bytes of a rank: there are fewer than 2²⁴ tokens. */
const planes = 3;

/** The two tokens that the last merge joins to the token of this rank. */
function partsOf(token: string, rank: number, ranks: ReadonlyMap<string, number>): [number, number] {
  const parts = [...token];
  while (parts.length > 2) {
    let [lowest, at] = [rank, -1];
    for (let next = 0; next + 1 < parts.length; next++) {
      const joined = ranks.get(`${parts[next]}${parts[next + 1]}`) ?? rank;
      if (joined < lowest) [lowest, at] = [joined, next];
    }
    if (at < 0)
      throw new Error(`Token ${rank} of the vocabulary is not made of two others: look at this packing again.`);
    parts.splice(at, 2, `${parts[at]}${parts[at + 1]}`);
  }
  const [left = -1, right = -1] = parts.map(part => ranks.get(part) ?? -1);
  return [left, right];
}

/** The vocabulary of a byte-level tokenizer in few bytes, before compression: each token by its parts, whose bytes stand in planes. */
export function packVocabulary(tokens: readonly Token[]): Buffer {
  const texts = tokens.map(token => Buffer.from(token as string).toString('latin1'));
  const ranks = new Map(texts.map((text, rank) => [text, rank]));
  const merged = texts.length - bytes;
  const packed = Buffer.alloc(bytes + merged * 2 * planes);
  packed.write(texts.slice(0, bytes).join(''), 'latin1');
  for (let at = 0; at < merged; at++) {
    const parts = partsOf(texts[bytes + at] ?? '', bytes + at, ranks);
    for (const [side, part] of parts.entries()) {
      for (let plane = 0; plane < planes; plane++)
        packed[bytes + (side * planes + plane) * merged + at] = part >>> (plane * 8);
    }
  }
  return packed;
}

/** Runs in the built program, as the list of tokens that its tokenizer imports. */
export function unpackVocabulary(packed: Buffer): Token[] {
  const merged = (packed.length - bytes) / (2 * planes);
  const texts = [...packed.toString('latin1', 0, bytes)];
  const [ends, mark] = [packed.subarray(bytes), '\xef\xbb\xbf'];
  const part = (at: number) =>
    texts[(ends[at] ?? 0) | ((ends[at + merged] ?? 0) << 8) | ((ends[at + 2 * merged] ?? 0) << 16)] ?? '';
  for (let at = 0; at < merged; at++) texts.push(part(at) + part(at + planes * merged));
  return texts.map(text => {
    if (/^[\0-\x7f]*$/.test(text)) return text;
    const token = Buffer.from(text, 'latin1');
    // As text it would lose its mark of the byte order.
    return isUtf8(token) && !text.startsWith(mark) ? token.toString() : [...token];
  });
}
