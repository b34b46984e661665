import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import ranks from 'gpt-tokenizer/bpeRanks/o200k_base';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { expect, it } from 'vitest';
import { packVocabulary, unpackVocabulary } from '../../scripts/build/vocabulary.ts';

it('packs the vocabulary of a tokenizer so that every token comes back', () => {
  const back = unpackVocabulary(packVocabulary(ranks));
  expect(back.length).toBe(ranks.length);
  expect(back.findIndex((token, rank) => JSON.stringify(token) !== JSON.stringify(ranks[rank]))).toBe(-1);
});

it('refuses a vocabulary whose tokens are not made of two others', () => {
  const bytes = Array.from({ length: 256 }, (_, byte) => [byte]);
  expect(() => packVocabulary([...bytes, 'abc'])).toThrow('Token 256 of the vocabulary');
});

it('counts in the built program as the tokenizer itself', async () => {
  const [piece = ''] = readdirSync('dist').filter(name => name.startsWith('count-tokens-'));
  const { countO200k } = await import(resolve('dist', piece));
  for (const text of ['\uFEFFusing 출장안마 λόγος', readFileSync('README.md', 'utf8').slice(0, 500)])
    expect(countO200k([text])).toBe(countTokens(text));
});
