import { describe, expect, it } from 'vitest';
import { parseVerdict } from '../../../../src/engine/modes/ask-many/verdicts.ts';
import { ownTime } from '../../../support/own-time.ts';

describe('what is read from a verdict', () => {
  it.each([
    ['## Verdict\nDo it.\n**Position:** Support.\n## Confidence\n**8/10** – sure', 'Do it.', 8, 'support'],
    ['**Verdict:** No.\n\nPosition: opposed to it\nConfidence Score: 7.5 / 10', 'No.', 7.5, 'oppose'],
    ['# Verdict: Postgres\nPosition:\nPostgreSQL\n\nConfidence: 80%', 'Postgres', 8, 'postgresql'],
    ['Just do it.\nMy confidence is 9 out of 10.', 'Just do it.', 9, undefined],
    ['Yes.\nPosition: Support with conditions\nConfidence\n7/10: no numbers', 'Yes.', 7, 'support with conditions'],
    ['Yes.\nPosition: support, provided that it is measured', 'Yes.', undefined, 'support with conditions'],
    ['Yes.\nPosition: supported, if the tests pass.', 'Yes.', undefined, 'support with conditions'],
    ['Yes.\nPosition: support without hesitation', 'Yes.', undefined, 'support'],
    ['No.\nPosition: do not support', 'No.', undefined, 'oppose'],
    ['B.\n**Position:** "Option B"', 'B.', undefined, 'b'],
    ['B.\nPosition: *B*.', 'B.', undefined, 'b'],
    ['It.\nPosition: The Outbox-Table', 'It.', undefined, 'outbox table'],
    ['It.\nPosition: outbox table!', 'It.', undefined, 'outbox table'],
    ['Node.\nPosition: Node.js 24', 'Node.', undefined, 'node.js 24'],
    ['Confidence: 30/10', 'Confidence: 30/10', undefined, undefined],
  ])('%j', (text, short, confidence, position) => {
    expect(parseVerdict(text)).toEqual({ short, ...(confidence && { confidence }), ...(position && { position }) });
  });

  it('keeps a sentence without end short', () => {
    expect(parseVerdict('x'.repeat(5_000)).short.length).toBeLessThanOrEqual(400);
  });

  it.each([
    ['the words again and again', `${'confidence '.repeat(20_000)}${' #*_'.repeat(20_000)}`],
    ['blanks within a line', `a\nb${' '.repeat(100_000)}c`],
    ['empty lines', `confidence${'\n'.repeat(100_000)}`],
    ['carriage returns', `a${'\r'.repeat(60_000)}b`],
  ])('is quick on a long text with %s', (_, text) => {
    const before = ownTime();
    parseVerdict(text);
    expect(ownTime() - before).toBeLessThan(1_000);
  });
});
