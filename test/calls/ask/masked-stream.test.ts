import { describe, expect, it } from 'vitest';
import { createMaskedStream } from '../../../src/calls/ask/redaction.ts';
import { createMask } from '../../../src/observability/secret-masking.ts';
import { canaries } from '../../support/canaries.ts';
import { ownTime } from '../../support/own-time.ts';
import { seededRandom } from '../../support/random.ts';

const { mask } = createMask({ secret: 'pepper', keys: ['OPERATORCANARY'] });
const text = `Here they are:\n${canaries.map(([canary]) => `${canary} and so on.`).join('\n')}\nThat is all`;

async function streamed(pieces: readonly string[]): Promise<string[]> {
  const out: string[] = [];
  const stream = createMaskedStream(mask, 'thread', piece => void out.push(piece));
  for (const piece of pieces) {
    stream.push(piece);
    await new Promise(resolve => setImmediate(resolve));
  }
  await stream.end();
  return out;
}

describe('an answer that is passed on as it arrives', () => {
  it('comes word by word', async () => {
    expect(await streamed(['One', ' two thr', 'ee fo', 'ur.\nFi', 've six'])).toEqual([
      'One two ',
      'three ',
      'four.\n',
      'Five ',
      'six',
    ]);
  });

  it('shows no secret, wherever it is cut, and in the end is what masking all of it gives', async () => {
    const whole = (await mask(text, 'thread')).text;
    const random = seededRandom(3);
    for (let round = 0; round < 20; round++) {
      const pieces: string[] = [];
      for (let at = 0; at < text.length; ) {
        const length = 1 + Math.floor(random.fraction() * 30);
        pieces.push(text.slice(at, at + length));
        at += length;
      }
      const out = (await streamed(pieces)).join('');
      for (const [, secret] of canaries) expect(out).not.toContain(secret);
      expect(out).toBe(whole);
    }
  });

  it('is quick for a line that does not end', async () => {
    const began = ownTime();
    const out = await streamed(Array.from({ length: 300 }, () => 'word '.repeat(200)));
    expect(out.join('')).toBe('word '.repeat(60_000));
    expect(ownTime() - began).toBeLessThan(5_000);
  });
});
