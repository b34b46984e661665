import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { numberLines } from '../../src/core/text.ts';
import { estimateTokens, tokenFactor } from '../../src/core/tokens.ts';
import { ownTime } from '../support/own-time.ts';
import { seededRandom } from '../support/random.ts';
import { o200kTokens } from '../support/vendors/o200k-tokens.ts';

const random = seededRandom(7);
const bytes = (count: number) => Buffer.from(Array.from({ length: count }, () => Math.floor(random.fraction() * 256)));
const pick = (alphabet: string, count: number) =>
  Array.from({ length: count }, () => alphabet[Math.floor(random.fraction() * alphabet.length)]).join('');
const source = readFileSync(new URL('../../src/threads/threads.ts', import.meta.url), 'utf8');

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
  it.each(Object.entries(samples))(
    'is at most a twentieth under o200k for %s, and at most three times it',
    (_name, text) => {
      const exact = o200kTokens(text).length;
      expect(estimateTokens(text)).toBeGreaterThanOrEqual(exact * 0.95);
      expect(estimateTokens(text)).toBeLessThanOrEqual(exact * 3);
    },
  );

  it('is never above the length in bytes, the most that a byte-level tokenizer needs', () => {
    expect(estimateTokens('\u{1F469}')).toBeLessThanOrEqual(4);
    expect(estimateTokens('')).toBe(0);
  });

  it('reads hostile text once', () => {
    const started = ownTime();
    estimateTokens('a'.repeat(400_000));
    estimateTokens(' '.repeat(400_000));
    expect(ownTime() - started).toBeLessThan(2_000);
  });
});

const folder = (path: string, ending: RegExp) =>
  readdirSync(new URL(`../../${path}/`, import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter(name => ending.test(name) && !/data-|\.gen\./.test(name))
    .map(name => readFileSync(new URL(`../../${path}/${name}`, import.meta.url), 'utf8'));
const minified = (text: string) =>
  text
    .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{}()[\];,:=<>+?|&]) ?/g, '$1');
const eastAsian = [
  '服务器在回答之前会先把问题写入数据库，这样即使进程突然退出，用户也不会丢失已经付费的回答。为了避免重复发送同一个文件，系统会记录每个文件的大小、修改时间和哈希值。',
  '春天来了，院子里的桃花开得正好。祖母坐在门前的小凳上剥豆子，一边和邻居说着去年的收成。傍晚时分，炊烟从瓦檐间升起，远山被夕阳染成淡淡的紫色。',
  'サーバーは回答を返す前に、まず質問をデータベースに保存します。同じファイルを二度送らないように、システムは各ファイルの大きさ、更新日時、ハッシュ値を記録します。',
  '서버는 답변을 보내기 전에 먼저 질문을 데이터베이스에 저장합니다. 각 호출에는 시간 제한이 있으며, 제한을 넘으면 연결이 닫히고 호출자는 이유를 설명하는 메시지를 받습니다.',
];
const sources = folder('src', /\.ts$/);
const corpora: Record<string, string[]> = {
  code: sources,
  tests: folder('test/engine', /\.ts$/),
  'numbered code': sources.slice(0, 80).map(text => numberLines(text)),
  prose: [...folder('docs', /\.md$/), readFileSync(new URL('../../README.md', import.meta.url), 'utf8')],
  'minified programs': sources.map(minified),
  'East Asian texts': eastAsian,
  'base64 of random bytes': Array.from({ length: 8 }, () => bytes(3_000).toString('base64')),
  hex: Array.from({ length: 8 }, () => bytes(2_000).toString('hex')),
  'base64 of text': sources.slice(0, 20).map(text => Buffer.from(text.repeat(3)).toString('base64')),
};

const counted = new Map<string, number>();
function exactly(text: string): number {
  const count = counted.get(text) ?? o200kTokens(text).length;
  counted.set(text, count);
  return count;
}

/** How many times o200k's tokens the families' own tokenizers make, as measured. */
const families = [
  ['claude-opus-5', 1.43],
  ['glm-5', 1.3],
  ['gemini-3-pro', 1],
  ['a-model-nobody-knows', 1],
] as const;
const factors = new Set([1, ...families.map(([model]) => tokenFactor(model))]);

const estimated = new Map<string, Map<number, number>>();
/** Estimates a text for all factors at once: the function remembers what it read last, so that it reads the text only once. */
function estimate(text: string, factor: number): number {
  const estimates = estimated.get(text) ?? new Map(Array.from(factors, each => [each, estimateTokens(text, each)]));
  estimated.set(text, estimates);
  return estimates.get(factor) ?? Number.NaN;
}

describe('an estimate of real texts', () => {
  it.each(Object.entries(corpora))('is within a tenth of o200k, or one token, for each of %s', (_name, texts) => {
    const far = texts.filter(text => {
      const exact = exactly(text);
      return Math.abs(estimate(text, 1) - exact) > Math.max(1, exact / 10);
    });
    expect(far).toEqual([]);
    expect(texts.length).toBeGreaterThan(3);
  });

  it.each(families)('is never under what %s makes of any of them', (model, measured) => {
    const factor = tokenFactor(model);
    const under = Object.values(corpora)
      .flat()
      .filter(text => !(estimate(text, factor) >= exactly(text) * measured));
    expect(under).toEqual([]);
  });
});

describe('tokenFactor', () => {
  it('charges families with finer tokenizers more', () => {
    expect(tokenFactor('claude-opus-5')).toBeGreaterThan(tokenFactor('gpt-5'));
    expect(tokenFactor('something-new')).toBeGreaterThan(1);
  });
});
