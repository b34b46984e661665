import { declaringWords, isTellingWord, stem, tellingWords } from '../words.ts';

/**
 * What stands in a text, a number for each word: its upper 28 bits tell words apart, the next says whether the word is in the path
 * of the file, and the lowest three how much it counts. No word can be read out of it, so that a secret that stands in a file does not stand in its terms.
 */
export type Terms = Uint32Array;

/** The bits that tell words apart. */
export const wordMask = ~0xf;
export const pathFlag = 0x8;
export const countMask = 0x7;
/** A text with more different words is data. */
const maxTerms = 40_000;
const maxSlots = 1 << 17;
/** Longer runs of letters and digits are data: hashes, keys, encoded pictures. */
const longestName = 64;
const longestRun = 4_000;
/** Words that are remembered. */
const knownWords = 1 << 16;
/** What a word counts where it is declared, and in a heading. */
const declaredWeight = 4;
const headingWeight = 3;

/** A text whose words are counted. */
export interface Counted {
  /** In UTF-8. */
  text: Buffer;
  /** What each of its words counts, at least. */
  weight: number;
  /** Lines that begin with # count more. */
  headings?: boolean;
  isPath?: boolean;
  /** Each of its words is the name of something that is declared, or that is looked for by its name. */
  names?: boolean;
}

/**
 * Counts words. Names count as a whole and by their parts, words in any of their forms as one. A name that is declared has a term more,
 * of its own, as it is written: many files speak of a class, and one has it.
 */
export class TermCounter {
  /** Pairs of what a word was hashed to and its term. */
  readonly #known = new Int32Array(2 * knownWords);
  readonly #slots = new Uint32Array(maxSlots);
  /** Of the slots, those that are taken. */
  readonly #used = new Uint32Array(maxTerms);
  #mask = 0;
  #flag = 0;
  #size = 0;

  /** The words of several texts as one. */
  termsOf(texts: readonly Counted[]): Terms {
    const length = texts.reduce((sum, { text }) => sum + text.length, 0);
    // As small as it may be, to stay near the processor: a word and what separates it from the next have four bytes or more.
    const used = Math.min(maxSlots, 2 ** Math.ceil(Math.log2(length / 2 + 64)));
    this.#mask = used - 1;
    this.#size = 0;
    for (const text of texts) this.#add(text);
    const terms = new Uint32Array(this.#size);
    for (let at = 0; at < this.#size; at++) {
      const slot = this.#used[at] ?? 0;
      terms[at] = this.#slots[slot] ?? 0;
      this.#slots[slot] = 0;
    }
    return terms;
  }

  #add({ text, weight, headings = false, isPath = false, names = false }: Counted): void {
    this.#flag = isPath ? pathFlag : 0;
    const weightOf = (line: number) => (headings && text[line] === hashSign ? weight * headingWeight : weight);
    const { length } = text;
    let times = weightOf(0);
    let isDeclared = false;
    for (let at = 0; at < length; at++) {
      let code = text[at] ?? newline;
      let kind = kinds[code] ?? foreign;
      if (kind === other) {
        if (code !== space) isDeclared = false;
        if (code === newline) times = weightOf(at + 1);
        continue;
      }
      // One run of letters, digits and what joins them, part by part.
      const counts = isDeclared ? times * declaredWeight : times;
      const from = at;
      let name = basis;
      let exact = basis;
      let part = basis;
      let partFrom = at;
      let before = other;
      while (kind !== other && kind !== foreign) {
        if (
          kind === joint ||
          (kind === upper && before !== other && (before !== upper || kinds[text[at + 1] ?? newline] === lower))
        ) {
          if (at > partFrom) {
            this.#part(text, partFrom, at, part, counts);
            name = Math.imul(name ^ part, prime);
          }
          part = basis;
          partFrom = kind === joint ? at + 1 : at;
        }
        if (kind !== joint) part = Math.imul(part ^ (kind === upper ? code | 0x20 : code), prime);
        exact = Math.imul(exact ^ code, prime);
        before = kind;
        code = ++at < length ? (text[at] ?? newline) : newline;
        kind = kinds[code] ?? foreign;
      }
      if (kind === foreign) {
        at = this.#foreign(text, from, counts);
        continue;
      }
      if (at > partFrom) this.#part(text, partFrom, at, part, counts);
      if (at - from <= longestName) {
        if (name !== basis) this.#count(termOf(Math.imul(name ^ part, prime)), counts);
        if (isDeclared || names) this.#count(termOf(~exact), countMask);
      }
      isDeclared = name === basis && (declares.has(part) || (part === constant && isOfFile(text, from)));
      at--;
    }
  }

  /** Counts a run in which not all is ASCII, and answers where it ends. */
  #foreign(text: Buffer, from: number, weight: number): number {
    let at = from;
    while (at < text.length && kinds[text[at] ?? newline] !== other) at++;
    for (const word of tellingWords(text.toString('utf8', from, Math.min(at, from + longestRun)))) {
      this.#count(termOf(hashOf(stem(word))), weight);
    }
    return at - 1;
  }

  #part(text: Buffer, from: number, to: number, hash: number, weight: number): void {
    if (to - from < 3 || to - from > longestName) return;
    const home = (hash ^ (hash >>> 16)) & (knownWords - 2);
    let slot = 2 * home;
    if (this.#known[slot] !== hash) slot += 2;
    if (this.#known[slot] !== hash) {
      const word = text.toString('latin1', from, to).toLowerCase();
      this.#known.copyWithin(slot, 2 * home, 2 * home + 2);
      slot = 2 * home;
      this.#known[slot] = hash;
      this.#known[slot + 1] = isTellingWord(word) ? termOf(hashOf(stem(word))) : 0;
    }
    const term = (this.#known[slot + 1] ?? 0) >>> 0;
    if (term !== 0) this.#count(term, weight);
  }

  #count(term: number, weight: number): void {
    let slot = (term >>> 4) & this.#mask;
    for (let entry = this.#slots[slot] ?? 0; entry !== 0; entry = this.#slots[slot] ?? 0) {
      if ((entry & wordMask) >>> 0 === term) {
        const count = Math.min(countMask, (entry & countMask) + weight);
        this.#slots[slot] = term + (((entry & pathFlag) | this.#flag) + count);
        return;
      }
      slot = (slot + 1) & this.#mask;
    }
    if (this.#size >= maxTerms) return;
    this.#slots[slot] = term + this.#flag + Math.min(countMask, weight);
    this.#used[this.#size++] = slot;
  }
}

const newline = 10;
const space = 32;
const hashSign = 35;

/** Kinds of characters. */
const other = 0;
const lower = 1;
const upper = 2;
const digit = 3;
const joint = 4;
const foreign = 5;

const kinds = Uint8Array.from({ length: 256 }, (_, code) => {
  if (code >= 128) return foreign;
  const character = String.fromCharCode(code);
  if (/[a-z]/.test(character)) return lower;
  if (/[A-Z]/.test(character)) return upper;
  if (/[0-9]/.test(character)) return digit;
  return /[_$]/.test(character) ? joint : other;
});

/** FNV-1a, and at its end a mix of all bits. */
const basis = 0x811c9dc5 | 0;
const prime = 0x01000193;

function hashOf(word: string): number {
  let hash = basis;
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), prime);
  return hash;
}

function termOf(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b);
  return ((mixed ^ (mixed >>> 16)) & wordMask) >>> 0;
}

const constant = hashOf('const');

/** What is declared within a function says nothing about a file. */
const isOfFile = (text: Buffer, at: number): boolean =>
  /(?:^|\n)(?:export )?$/.test(text.toString('latin1', Math.max(0, at - 8), at));

const declares = new Set(declaringWords.map(hashOf));
