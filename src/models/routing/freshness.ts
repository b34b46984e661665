import { atHand, personal, programming, rewrites, timeless, wish } from '../manager/veto-phrases.ts';
import {
  asks,
  asksForTheWeb,
  eventWord,
  lately,
  liveFact,
  newsy,
  productState,
  readsPage,
  thisYear,
  today,
} from './freshness-phrases.ts';

/** Whether a text asks for what only a search of the web can tell, and why. */
export interface NowVerdict {
  verdict: 'yes' | 'maybe' | 'no';
  because: string;
}

/** A longer text carries its question at its beginning or its end; more of it is not looked at. */
const wholeUpTo = 800;
const endChars = 350;
const rawEndChars = 1_500;

const mostTopicWords = 8;

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

function endsOf(words: string): string {
  return words.length <= wholeUpTo ? words : `${words.slice(0, endChars)}\n${words.slice(-endChars)}`;
}

function withoutCode(text: string): string {
  return text
    .normalize('NFC')
    .replace(/```[\s\S]*?(?:```|$)/g, ' ')
    .replace(/`[^`\n]*`/g, ' ')
    .replace(/["“„«][^"“”„»\n]{0,300}["”“»]/g, ' ')
    .replace(/(?<=^|\s)'[^'\n]{1,200}'(?=$|[\s.,?!:;)])/g, ' ')
    .replace(/(?<![\p{L}\p{N}_$.])[\p{L}_$][\p{L}\p{N}_$.]{0,80}\(\s*[^)\s]{0,40}\)/gu, ' ')
    .replace(/[ \t]+/g, ' ')
    .trim();
}

const yes = (because: string): NowVerdict => ({ verdict: 'yes', because });
const maybe = (because: string): NowVerdict => ({ verdict: 'maybe', because });
const no: NowVerdict = { verdict: 'no', because: '' };

/**
 * Judges a text by its words alone. `narrow` is for tools whose texts are about code: then only a plain wish, or a thing that
 * code does not know, counts.
 */
export function aboutNow(text: string, { narrow, year }: { narrow: boolean; year: number }): NowVerdict {
  const words = ownWords(text);
  const plain = words.replace(urls, ' ');
  if (programming.test(plain)) return no;
  if (asksForTheWeb.test(plain)) return yes('asks for the web');
  if (rewrites.test(plain)) return no;
  if (cve.test(plain)) return yes('names a CVE');
  if (atHand.test(plain) || narrow) return no;
  if (asks.test(plain)) return judgeQuestion(plain, words, year);
  return liveFact.test(plain) && today.test(plain) ? yes('names what changes by the hour') : bareTopic(plain);
}

function judgeQuestion(plain: string, words: string, year: number): NowVerdict {
  const isToday = today.test(plain);
  const general = timeless.test(plain);
  if (general && !isToday) return no;
  if (liveFact.test(plain)) return yes('asks for what changes by the hour or with an office');
  if (productState.test(plain)) return yes('asks for the present state of a product');
  if (newsy.test(plain) && (isToday || lately.test(plain))) return yes('asks for news');
  if (isToday && !personal.test(plain) && !general) return yes('asks about today');
  if (url.test(words) && readsPage.test(plain)) return yes('asks what a page says');
  if (namesYear(plain, year) && eventWord.test(plain)) return yes(`asks about ${year} or the year before`);
  if (lately.test(plain) && !personal.test(plain)) return maybe('may be about the present');
  return no;
}

/** A few words without a question, as people type them into a search box. */
function bareTopic(plain: string): NowVerdict {
  const few = plain.length <= 80 && plain.split(' ').length <= mostTopicWords;
  if (!few || wish.test(plain) || personal.test(plain) || timeless.test(plain)) return no;
  if (liveFact.test(plain) || productState.test(plain)) return yes('names what changes');
  return newsy.test(plain) && (today.test(plain) || lately.test(plain)) ? yes('names news') : no;
}

function namesYear(plain: string, year: number): boolean {
  return thisYear.test(plain) || new RegExp(`(?<!\\d)(?:${year}|${year - 1})(?!\\d)`).test(plain);
}
