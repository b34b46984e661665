import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { numberLines } from '../../src/domain/text.ts';
import { estimateTokens, tokenFactor } from '../../src/domain/tokens.ts';
import { seededRandom } from '../support/random.ts';
import { o200kTokens } from '../support/vendors/o200k-tokens.ts';

const random = seededRandom(7);
const bytes = (count: number) => Buffer.from(Array.from({ length: count }, () => Math.floor(random.fraction() * 256)));
const pick = (alphabet: string, count: number) =>
  Array.from({ length: count }, () => alphabet[Math.floor(random.fraction() * alphabet.length)]).join('');
const source = readFileSync(new URL('../../src/memory/threads.ts', import.meta.url), 'utf8');

const samples: Record<string, string> = {
  'source code': source,
  'numbered source code': numberLines(source),
  'minified code': source.replace(/\s+/g, ' '),
  prose: 'The server answers each request once, however long the conversation has become. '.repeat(60),
  markdown: readFileSync(new URL('../../README.md', import.meta.url), 'utf8'),
  JSON: readFileSync(new URL('../../package.json', import.meta.url), 'utf8').repeat(4),
  base64: bytes(9_000).toString('base64'),
  'base64 in lines': bytes(9_000).toString('base64').replace(/.{76}/g, '$&\n'),
  hex: bytes(6_000).toString('hex'),
  numbers: Array.from({ length: 1_500 }, () => Math.floor(random.fraction() * 1e9)).join(','),
  'random words': Array.from({ length: 900 }, () => pick('abcdefghijklmnopqrstuvwxyz0123456789', 8)).join(' '),
  punctuation: pick('!@#$%^&*(){}[]|:;"<>?,./~`', 4_000),
  Chinese: '这是一个测试文本，用来测量分词器的精度。我们需要很多不同的汉字来得到可靠的结果。'.repeat(60),
  Japanese: 'これはトークン数を測定するためのテスト文です。'.repeat(60),
  Russian: 'Это тестовый текст для оценки количества токенов в тексте.'.repeat(60),
  Arabic: 'هذا نص تجريبي لقياس عدد الرموز في النص'.repeat(60),
  Thai: 'นี่คือข้อความทดสอบสำหรับวัดจำนวนโทเค็น'.repeat(40),
  Hindi: 'यह टोकन की संख्या मापने के लिए एक परीक्षण पाठ है'.repeat(40),
  emoji: '😀🎉🚀👩‍👩‍👧‍👦'.repeat(150),
  'white space': '    \n\n\t  '.repeat(300),
};

describe('estimateTokens', () => {
  it.each(Object.entries(samples))('is not under o200k for %s, and at most three times it', (_name, text) => {
    const exact = o200kTokens(text).length;
    expect(estimateTokens(text)).toBeGreaterThanOrEqual(exact);
    expect(estimateTokens(text)).toBeLessThanOrEqual(exact * 3);
  });

  it('is never above the length in bytes, the most that a byte-level tokenizer needs', () => {
    expect(estimateTokens('\u{1F469}')).toBeLessThanOrEqual(4);
    expect(estimateTokens('')).toBe(0);
  });

  it('reads hostile text once', () => {
    const started = performance.now();
    estimateTokens('a'.repeat(2_000_000));
    estimateTokens(' '.repeat(2_000_000));
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe('tokenFactor', () => {
  it('charges families with finer tokenizers more', () => {
    expect(tokenFactor('claude-opus-5')).toBeGreaterThan(tokenFactor('gpt-5'));
    expect(tokenFactor('something-new')).toBeGreaterThan(1);
  });
});
