import { safeCut } from '../core/text.ts';
import type { Turn } from '../core/thread.ts';

const maxQueryWords = 32;
const snippetChars = 160;
/** Occurrences are counted this far into a text; a word is looked for in all of it. */
const countedChars = 200_000;

/** Scripts that are written without spaces: each of their characters counts as a word. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu;

/** Words in lower case, without accents, one space between them: every store searches in this form, so that all find the same. */
export const foldWords = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]+/g, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(unspaced, ' $& ')
    .replace(/[^\p{L}\p{N}\p{M}]+/gu, ' ')
    .trim();

/** What a search text asks for; empty when it holds no word. */
export function queryWords(text: string): string[] {
  const folded = foldWords(text.slice(0, 10_000));
  return folded === '' ? [] : [...new Set(folded.split(' '))].slice(0, maxQueryWords);
}

/** How often the words occur, found by their beginnings, and the text around the first of them; undefined when one is missing. */
function matchWords(text: string, words: readonly string[]) {
  const missing = new Set(words);
  let first: number | undefined;
  let count = 0;
  for (const { 0: token, index } of text.matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
    if (index > countedChars && missing.size === 0) break;
    for (const piece of /^[a-z0-9]+$/i.test(token) ? [token.toLowerCase()] : foldWords(token).split(' ')) {
      for (const word of words) {
        if (!piece.startsWith(word)) continue;
        missing.delete(word);
        first ??= index;
        count++;
      }
    }
  }
  return first === undefined || missing.size > 0 ? undefined : { count, snippet: snippetAt(text, first) };
}

/** Of some turns the one that holds the words most often, with about 160 characters around the first; undefined when none has all. */
export function bestMatch(turns: readonly (Turn | undefined)[], words: readonly string[]) {
  const matches = turns.flatMap(turn => {
    const match = turn && matchWords(turn.content, words);
    return match ? [{ ...match, seq: turn.seq }] : [];
  });
  const [best] = matches.sort((a, b) => b.count - a.count);
  return best && { seq: best.seq, snippet: best.snippet };
}

function snippetAt(text: string, at: number): string {
  const wish = Math.max(0, at - 50);
  const gap = wish === 0 ? -1 : text.slice(wish, at).search(/\s/);
  const start = wish === 0 ? 0 : gap === -1 ? at : wish + gap + 1;
  const cut = safeCut(text.slice(start, start + snippetChars + 1), snippetChars);
  const end = start + cut.length < text.length ? '…' : '';
  return `${start > 0 ? '…' : ''}${cut.replace(/\s+/g, ' ').trim()}${end}`;
}
