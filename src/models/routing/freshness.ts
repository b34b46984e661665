import { letter, likelyAboutNow, speaksOfNow } from './freshness-model.ts';
import rulesFile from './freshness-rules.json' with { type: 'json' };

const { rules } = rulesFile;

/** What phrases name in angle brackets. Counting to three or fewer words is copied into an expression that often: `few` is up to four. */
const pieces = new Map(Object.entries({ ...rulesFile.pieces, letter }));

const patterns = new Map<string, RegExp>();

/**
 * Whether a text has one of a rule's words or phrases: whole words of any alphabet, or words of scripts without spaces. The text
 * is in lower case: expressions that see to that by themselves take twice as long to be made, which happens with their first use,
 * because few calls come to all.
 */
function has(rule: keyof typeof rules, text: string): boolean {
  const pattern = patterns.get(rule) ?? patternOf(rules[rule]);
  patterns.set(rule, pattern);
  return pattern.test(text);
}

function patternOf({ words, unspaced }: { words: readonly string[]; unspaced: readonly string[] }): RegExp {
  const source = [`(?<!<letter>)(?:${words.join('|')})(?!<letter>)`, ...unspaced].join('|');
  return new RegExp(source.replace(/<(\w+)>/g, (whole, name) => pieces.get(name) ?? whole));
}

/** Beginnings of what is wanted from the model itself. */
const wish =
  /^(?:please )?(?:brainstorm|describe|write|suggest|draft|design|plan|help|create|explain|name|outline|think|imagine)/i;

/** Whether a text asks for what only a search of the web can tell, and why. */
export interface Freshness {
  verdict: 'yes' | 'maybe' | 'no';
  because: string;
}

/** A longer text carries its question at its beginning or its end; more of it is not looked at. */
const wholeUpTo = 800;

const endChars = 350;

const rawEndChars = 1_500;

const maxTopicWords = 8;

/** From which likelihood on a text counts as one about now, and from which it is left open. */
const sure = 0.75;
const doubtful = 0.45;

const cve = /\bCVE-\d{4}-\d{3,}\b/i;

const url = /https?:\/\/\S+/i;

const urls = /https?:\/\/\S+/gi;

/** The words that are the caller's own: without code, identifiers and what is quoted. */
function ownWords(text: string): string {
  if (text.length <= 2 * rawEndChars) return endsOf(withoutCode(text));
  const last = text.slice(-rawEndChars);
  const fences = text.slice(0, -rawEndChars).split('```').length - 1;
  // The end may begin inside of a block of code.
  const end = withoutCode(fences % 2 === 1 ? `\`\`\`${last}` : last);
  return `${withoutCode(text.slice(0, rawEndChars)).slice(0, endChars)}\n${end.slice(-endChars)}`;
}

const endsOf = (words: string): string =>
  words.length <= wholeUpTo ? words : `${words.slice(0, endChars)}\n${words.slice(-endChars)}`;

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

/**
 * Judges a text by its words alone. `narrow` is for tools whose texts are about code: then only a plain wish, or a thing that
 * code does not know, counts.
 */
export function freshnessOf(text: string, { narrow }: { narrow: boolean }): Freshness {
  const words = ownWords(text);
  const plain = words.replace(urls, ' ').toLowerCase();
  if (has('programming', plain)) return no;
  if (has('asksForTheWeb', plain)) return yes('asks for the web');
  if (has('rewrites', plain)) return no;
  if (cve.test(plain)) return yes('names a CVE');
  if (has('atHand', plain) || narrow) return no;
  if (url.test(words) && has('readsPage', plain)) return yes('asks what a page says');
  const likely = likelyAboutNow(plain);
  const byRules = has('asks', plain) ? judgeQuestion(plain) : bareTopic(plain);
  if (byRules?.verdict === 'yes' || (byRules?.verdict === 'no' && likely < sure)) return byRules;
  if (likely >= sure) return yes('sounds like one about what is true now');
  const isOpen = likely >= doubtful && speaksOfNow(plain);
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
