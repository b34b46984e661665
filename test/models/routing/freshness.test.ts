import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { freshnessOf, probabilityAboutNow } from '../../../src/models/routing/freshness.ts';
import { ownTime } from '../../support/own-time.ts';

interface Labelled {
  language: string;
  isNow: boolean;
  text: string;
}

/** Written by somebody who had seen neither the rules nor the sentences that the model learnt from. */
const questions: Labelled[] = readFileSync(new URL('../../fixtures/questions-now.tsv', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map(line => line.split('\t'))
  .map(([language = '', label, text = '']) => ({ language, isNow: label === 'now', text }));

interface Confusion {
  found: number;
  missed: number;
  wrong: number;
  left: number;
  /** Left open, for a model to judge. */
  unclear: number;
}

function confusionOf(rows: readonly Labelled[]): Confusion {
  const counts: Confusion = { found: 0, missed: 0, wrong: 0, left: 0, unclear: 0 };
  for (const { isNow, text } of rows) {
    const { verdict } = freshnessOf(text, { narrow: false });
    if (verdict === 'maybe') counts.unclear += 1;
    if (verdict === 'yes') counts[isNow ? 'found' : 'wrong'] += 1;
    else counts[isNow ? 'missed' : 'left'] += 1;
  }
  return counts;
}

const recall = ({ found, missed }: Confusion) => found / (found + missed);
const precision = ({ found, wrong }: Confusion) => found / (found + wrong);

function row(name: string, counts: Confusion): string {
  const { found, missed, wrong, left, unclear } = counts;
  const shares = `recall ${recall(counts).toFixed(2)}  precision ${precision(counts).toFixed(2)}`;
  return `${name.padEnd(4)} found ${found}  missed ${missed}  wrong ${wrong}  left ${left}  unclear ${unclear}  ${shares}`;
}

describe('questions about now', () => {
  const languages = [...new Set(questions.map(({ language }) => language))];
  const tables = new Map<string, Confusion>();
  beforeAll(() => {
    for (const each of languages) tables.set(each, confusionOf(questions.filter(({ language }) => language === each)));
  });

  it('are told from others in twenty languages: recall and precision of at least 0.9 in all', () => {
    expect(languages).toHaveLength(20);
    const all = confusionOf(questions);
    process.stdout.write(`${[...tables].map(([name, counts]) => row(name, counts)).join('\n')}\n${row('all', all)}\n`);
    expect(recall(all)).toBeGreaterThanOrEqual(0.9);
    expect(precision(all)).toBeGreaterThanOrEqual(0.9);
  });

  it.each(languages)('are told in each language: %s', language => {
    const counts = tables.get(language)!;
    expect(recall(counts)).toBeGreaterThanOrEqual(0.6);
    expect(precision(counts)).toBeGreaterThanOrEqual(0.6);
  });

  it.each(languages)('are judged the same by expressions that are not made yet: %s', async language => {
    vi.resetModules();
    const fresh: typeof import('../../../src/models/routing/freshness.ts') = await import(
      '../../../src/models/routing/freshness.ts'
    );
    for (const { text } of questions.filter(row => row.language === language).slice(0, 45)) {
      expect(fresh.freshnessOf(text, { narrow: false }), text).toEqual(freshnessOf(text, { narrow: false }));
    }
  });

  it.each(['is github down?', '¿Ya salió Python 3.15?', 'czy npm ma awarię', 'ligt Slack eruit', 'o GitHub caiu'])(
    'are found without a word of the rules for five languages: %s',
    text => {
      expect(freshnessOf(text, { narrow: false }).verdict).toBe('yes');
    },
  );

  it('are left open where both hesitate', () => {
    const verdicts = questions.map(({ text }) => freshnessOf(text, { narrow: false }).verdict);
    expect(verdicts).toContain('maybe');
  });

  it.each(['Go on.', 'Keep.', 'Alone.', 'And then?', 'Slowly, for Ann.', 'And the window?'])(
    'are not suspected without a word of the present: %s',
    text => {
      expect(freshnessOf(text, { narrow: false }).verdict).toBe('no');
    },
  );

  it('are weighed in at most 0.2 ms of processor time', () => {
    const texts = questions.map(({ text }) => text);
    for (const text of texts) probabilityAboutNow(text);
    const began = ownTime();
    for (let round = 0; round < 5; round++) for (const text of texts) probabilityAboutNow(text);
    expect((ownTime() - began) / (5 * texts.length)).toBeLessThan(0.2);
  });

  it('need data of at most 200 kB', () => {
    const size = (name: string) => readFileSync(new URL(`../../../src/models/routing/${name}`, import.meta.url)).length;
    expect(size('freshness.gen.bin') + size('freshness-words.json')).toBeLessThanOrEqual(200_000);
  });
});
