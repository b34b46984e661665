import { readFileSync } from 'node:fs';
import rulesFile from './freshness-rules.json' with { type: 'json' };
import lists from './freshness-words.json' with { type: 'json' };

/** Characters of a text that are looked at: what is asked is said within them. */
const maxChars = 400;

const maxGram = 5;

/** Buckets of features. Each has a weight of one byte. */
export const buckets = 1 << 16;

/** The closed classes of words in twenty languages: times, releases, prices and so on, and what speaks against the present. */
const classes = [...Object.values(lists.now), ...Object.values(lists.other)];

/** Signs are numbered: first each class of words, then each two of them. */
export const cueCount = (classes.length * (classes.length + 1)) / 2;

/** The size of the pieces of the file of weights, in bytes: scale and bias, the signs' weights; the buckets' follow. */
export const fileParts = { head: 8, sign: 4 };

/** Scripts without spaces between words, or with endings that are written to them: there a word counts inside of another. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/**
 * A character of a word, for expressions: what is neither space nor punctuation. `\p{L}` says it better, but with it each
 * expression takes ten times as long to compile, and all of them wait for the first call.
 */
export const letter = '[^\\s!-/:-@\\[-^`{-\u00bf\u2000-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]';

type Test = (text: string) => boolean;

/** Texts by which an expression is made at the latest: looking into it takes less time than at what its matches begin with. */
const maxUnmade = 50;

/** Making an expression of hundreds of words takes longer than all else here, and most are of none of a text's languages. */
function madeWhenNeeded(source: string, make: () => RegExp): Test {
  const leads = leadsOf(source.toUpperCase());
  let [texts, pattern]: [number, RegExp?] = [0];
  return text => {
    // In capitals two texts are the same that an expression takes as the same in either case.
    if (!pattern && ++texts < maxUnmade && !leads.some(lead => text.toUpperCase().includes(lead))) return false;
    pattern ??= make();
    return pattern.test(text);
  };
}

/** What the matches of an expression can begin with, and what else stands behind a bar; the empty text where that is anything. */
function leadsOf(source: string): string[] {
  // A group that a match may begin with, or leave out.
  const parts = source.replace(/(^|\|)\(\?:([^()]*)\)[?*]/g, '$1$2|').split('|');
  const leads = parts.map(part => {
    const start = part.replace(/^(?:\(\?:)+/, '');
    const [lead = ''] = /^[\p{L}\p{N} '’-]*/u.exec(start) ?? [];
    // So may a letter that may repeat.
    return /[?*{]/.test(start[lead.length] ?? '') ? lead.slice(0, -1) : lead;
  });
  return leads.includes('') ? [''] : leads;
}

/** In a list `*` stands for the rest of a word, and between two spaces for a few words. */
function wordPattern(list: string): RegExp {
  const { inside = [], whole = [] } = Object.groupBy(list.split('|'), word =>
    unspaced.test(word) ? 'inside' : 'whole',
  );
  const words = whole.join('|').replaceAll(' * ', ' [^.?!]{0,30}').replaceAll('*', `${letter}*`);
  return new RegExp([`(?<!${letter})(?:${words})(?!${letter})`, ...inside].join('|'), 'i');
}

const wordTests = classes.map(list => madeWhenNeeded(list, () => wordPattern(list)));

/** The signs that a text shows: the classes that it has words of, and each two of them. */
export function cuesIn(text: string): number[] {
  const shown = text.slice(0, maxChars);
  const found = wordTests.flatMap((isIn, at) => (isIn(shown) ? [at] : []));
  const before = (row: number) => row * classes.length - (row * (row + 1)) / 2;
  const pairs = found.flatMap((a, at) => found.slice(at + 1).map(b => classes.length + before(a) + b - a - 1));
  return [...found, ...pairs];
}

/** The buckets of a text's features: runs of up to five characters within a word, words, and neighbouring words. */
export function featuresOf(text: string): Set<number> {
  const found = new Set<number>();
  const shown = text
    .slice(0, maxChars)
    .toLowerCase()
    .replace(/\p{N}+/gu, '0');
  let before = 0;
  for (const word of shown.match(/[\p{L}\p{M}\p{N}]+|[?？؟]/gu) ?? []) {
    const marked = ` ${word} `;
    for (let from = 0; from < marked.length; from++) {
      let hash = offsetBasis;
      for (let at = from; at < Math.min(marked.length, from + maxGram); at++) {
        hash = Math.imul(hash ^ marked.charCodeAt(at), prime);
        found.add(bucketOf(hash));
      }
    }
    found.add(bucketOf(hashOf(marked, wholeWord)));
    found.add(bucketOf(hashOf(marked, before)));
    before = hashOf(marked, wholeWord);
  }
  found.add(bucketOf(before ^ lastWord));
  return found;
}

/** FNV-1a. */
const offsetBasis = 2_166_136_261;
const prime = 16_777_619;

/** Seeds that keep kinds of features apart. */
const wholeWord = 7;
const lastWord = 0x5bd1e995;

function hashOf(text: string, seed: number): number {
  let hash = offsetBasis ^ seed;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), prime);
  return hash;
}

function bucketOf(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 2_246_822_507);
  return (mixed ^ (mixed >>> 13)) & (buckets - 1);
}

let weights: ReturnType<typeof readWeights> | undefined;

/** Reads what `node scripts/train-freshness.ts` wrote. */
function readWeights() {
  const data = readFileSync(new URL('./freshness.gen.bin', import.meta.url));
  const { head, sign } = fileParts;
  return {
    scale: data.readFloatLE(0),
    bias: data.readFloatLE(4),
    signs: Array.from({ length: cueCount }, (_, at) => data.readFloatLE(head + at * sign)),
    buckets: new Int8Array(data.buffer, data.byteOffset + head + cueCount * sign, buckets),
  };
}

/** Whether a text has words of the present: of times, releases, prices and so on. */
export const hasCueOfNow = (text: string): boolean => cuesIn(text).some(sign => sign < Object.keys(lists.now).length);

/** A shorter text says too little for a sum of weights: "Go on." */
const minChars = 12;

/** How likely a text asks for what is true now in the world, from 0 to 1, by a linear model over its features and signs. */
export function probabilityAboutNow(text: string): number {
  if (text.length < minChars && !unspaced.test(text)) return 0;
  weights ??= readWeights();
  const features = featuresOf(text);
  let sum = 0;
  for (const feature of features) sum += weights.buckets[feature] ?? 0;
  let odds = weights.bias + (sum * weights.scale) / Math.sqrt(features.size);
  for (const sign of cuesIn(text)) odds += weights.signs[sign] ?? 0;
  return 1 / (1 + Math.exp(-odds));
}

const { rules } = rulesFile;

/** What phrases name in angle brackets. Counting to three or fewer words is copied into an expression that often: `few` is up to four. */
const pieces = new Map(Object.entries({ ...rulesFile.pieces, letter }));

const ruleTests = new Map<string, Test>();

/**
 * Whether a text has one of a rule's words or phrases: whole words of any alphabet, or words of scripts without spaces. The text
 * is in lower case: expressions that see to that by themselves take twice as long to be made.
 */
function has(rule: keyof typeof rules, text: string): boolean {
  const test = ruleTests.get(rule) ?? testOf(rules[rule]);
  ruleTests.set(rule, test);
  return test(text);
}

function testOf({ words, unspaced }: { words: readonly string[]; unspaced: readonly string[] }): Test {
  const whole = `(?<!<letter>)(?:${words.join('|')})(?!<letter>)`;
  return madeWhenNeeded([...words, ...unspaced].join('|'), () => {
    const source = [whole, ...unspaced].join('|');
    return new RegExp(source.replace(/<(\w+)>/g, (named, name) => pieces.get(name) ?? named));
  });
}

/** Beginnings of what is wanted from the model itself. */
const wish =
  /^(?:please )?(?:brainstorm|describe|write|suggest|draft|design|plan|help|create|explain|name|outline|think|imagine)/i;

/** Whether a text asks for what only a search of the web can tell, and why. */
export type Freshness = { verdict: 'yes' | 'maybe' | 'no'; because: string };

/** Characters. A text that is longer than `whole` carries its question at its beginning or its end; more of it is not looked at. */
const looked = { whole: 800, end: 350, rawEnd: 1_500 };

const maxTopicWords = 8;

/** From which likelihood on a text counts as one about now, and from which it is left open. */
const sure = 0.75;
const doubtful = 0.45;

const cve = /\bCVE-\d{4}-\d{3,}\b/i;

const urls = /https?:\/\/\S+/gi;

/** The words that are the caller's own: without code, identifiers and what is quoted. */
function ownWords(text: string): string {
  if (text.length <= 2 * looked.rawEnd) return endsOf(withoutCode(text));
  const last = text.slice(-looked.rawEnd);
  const fences = text.slice(0, -looked.rawEnd).split('```').length - 1;
  // The end may begin inside of a block of code.
  const end = withoutCode(fences % 2 === 1 ? `\`\`\`${last}` : last);
  return `${withoutCode(text.slice(0, looked.rawEnd)).slice(0, looked.end)}\n${end.slice(-looked.end)}`;
}

const endsOf = (words: string): string =>
  words.length <= looked.whole ? words : `${words.slice(0, looked.end)}\n${words.slice(-looked.end)}`;

const withoutCode = (text: string): string =>
  text
    .normalize('NFC')
    .replace(/```[\s\S]*?(?:```|$)/g, ' ')
    .replace(/`[^`\n]*`/g, ' ')
    .replace(/["“„«][^"“”„»\n]{0,300}["”“»]/g, ' ')
    .replace(/(?<=^|\s)'[^'\n]{1,200}'(?=$|[\s.,?!:;)])/g, ' ')
    .replace(/(?<![\p{L}\p{N}_$.])[\p{L}_$][\p{L}\p{N}_$.]{0,80}\(\s*[^)\s]{0,40}\)/gu, ' ')
    .replace(/[ \t]+/g, ' ')
    .trim();

const yes = (because: string): Freshness => ({ verdict: 'yes', because });

const maybe = (because: string): Freshness => ({ verdict: 'maybe', because });

const no: Freshness = { verdict: 'no', because: '' };

/** Judges a text by its words. `narrow`, for tools about code: only a plain wish counts, or a thing that code does not know. */
export function freshnessOf(text: string, { narrow }: { narrow: boolean }): Freshness {
  const words = ownWords(text);
  const plain = words.replace(urls, ' ').toLowerCase();
  if (has('programming', plain)) return no;
  if (has('asksForTheWeb', plain)) return yes('asks for the web');
  if (has('rewrites', plain)) return no;
  if (cve.test(plain)) return yes('names a CVE');
  if (has('atHand', plain) || narrow) return no;
  if (words.search(urls) >= 0 && has('readsPage', plain)) return yes('asks what a page says');
  const likely = probabilityAboutNow(plain);
  const byRules = has('asks', plain) ? judgeQuestion(plain) : bareTopic(plain);
  if (byRules?.verdict === 'yes' || (byRules?.verdict === 'no' && likely < sure)) return byRules;
  if (likely >= sure) return yes('sounds like one about what is true now');
  const isOpen = likely >= doubtful && hasCueOfNow(plain);
  return byRules ?? (isOpen ? maybe('may be about the present') : no);
}

/** Undefined: the rules have nothing to say. */
function judgeQuestion(plain: string): Freshness | undefined {
  const isToday = has('today', plain);
  const general = has('timeless', plain);
  if (general && !isToday) return no;
  if (has('liveFact', plain)) return yes('asks for what changes by the hour or with an office');
  if (has('productState', plain)) return yes('asks for the present state of a product');
  if (has('newsy', plain) && (isToday || has('lately', plain))) return yes('asks for news');
  if (isToday && !has('personal', plain) && !general) return yes('asks about today');
  if (has('lately', plain) && !has('personal', plain)) return maybe('may be about the present');
  return undefined;
}

/** A few words without a question, as people type them into a search box. */
function bareTopic(plain: string): Freshness | undefined {
  const few = plain.length <= 80 && plain.split(' ').length <= maxTopicWords;
  if (!few || wish.test(plain) || has('personal', plain) || has('timeless', plain)) return no;
  if (has('liveFact', plain) || has('productState', plain)) return yes('names what changes');
  return has('newsy', plain) && (has('today', plain) || has('lately', plain)) ? yes('names news') : undefined;
}
