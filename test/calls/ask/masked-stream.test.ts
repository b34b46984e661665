import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { createMaskedStream } from '../../../src/calls/ask/redaction.ts';
import type { Mask } from '../../../src/core/ports.ts';
import { createMask } from '../../../src/observability/secret-masking.ts';
import { canaries } from '../../support/canaries.ts';
import { ownTime } from '../../support/own-time.ts';
import { seededRandom } from '../../support/random.ts';
import { waitUntil } from '../../support/wait-until.ts';

const { mask } = createMask({ secret: 'pepper', keys: ['OPERATORCANARY'] });
const text = `Here they are:\n${canaries.map(([canary]) => `${canary} and so on.`).join('\n')}\nThat is all`;

async function streamed(pieces: readonly string[], masked = mask): Promise<string[]> {
  const out: string[] = [];
  const stream = createMaskedStream(masked, 'thread', piece => void out.push(piece));
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

  it('shows the placeholder of a secret that turned out to have begun in what is out', async () => {
    const secret = 'two three end';
    const found: Mask = async text => {
      const start = text.indexOf(secret);
      const place = { kind: 'secret', start, end: start + secret.length, placeholder: '[masked]' };
      return { text: text.replace(secret, place.placeholder), found: {}, places: start < 0 ? [] : [place] };
    };
    expect(await streamed(['one two ', 'three end'], found)).toEqual(['one two ', 'three ', '[masked]']);
  });

  it('keeps nothing of its line in what is passed on: a client that reads slowly has many pieces waiting', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const heap = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const pieces = Array.from({ length: 1_500 }, (_, index) => `${index} words of a line `);
    await streamed(pieces.slice(0, 100));
    const before = heap();
    const out = await streamed(pieces);
    const bytes = heap() - before;
    expect(out.length).toBeGreaterThan(1_000);
    expect(bytes / 1_048_576).toBeLessThan(2);
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

  it.each([0, 300, 1_500, 2_500, 6_000])('shows no secret in one long line, %i characters apart', async apart => {
    const filler = `${'plain words, '.repeat(Math.ceil(apart / 13)).slice(0, apart)} `;
    const line = canaries.map(([canary]) => canary.replaceAll('\n', ' ') + filler).join('');
    const whole = (await mask(line, 'thread')).text;
    const shown = canaries.filter(([, secret]) => !whole.includes(secret));
    expect(shown.length).toBeGreaterThan(canaries.length / 2);
    const random = seededRandom(5);
    const pieces: string[] = [];
    for (let at = 0, length = 0; at < line.length; at += length) {
      length = 1 + Math.floor(random.fraction() * (apart > 2_000 ? 400 : 60));
      pieces.push(line.slice(at, at + length));
    }
    const out = (await streamed(pieces)).join('');
    for (const [, secret] of shown) expect(out).not.toContain(secret);
    expect(out).toBe(whole);
  });

  it('masks the new words of a long line with those near them, and not all of it again for each word', async () => {
    let seen = 0;
    const counting: typeof mask = (part, ...more) => {
      seen += part.length;
      return mask(part, ...more);
    };
    const words = Array.from({ length: 3_000 }, (_, at) => `word${at} `);
    words[10] = 'sk-ant-api03-q7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0JsAeUiOo ';
    const out = await streamed(words, counting);
    words[10] = (await mask(words[10], 'thread')).text;
    expect(out.length).toBeGreaterThan(2_500);
    expect(out.join('')).toBe(words.join(''));
    // All of it again for each word would be 40 million characters.
    expect(seen).toBeLessThan(words.length * 5_000);
  });

  it('goes on word by word behind a secret that is known by the words before it, wherever that stands', async () => {
    for (const before of [2_025, 2_030, 2_035, 2_040, 2_300]) {
      const header = 'Authorization: Custom YWJjZGVmZ2g= ';
      const words = `${'word '.repeat(before / 5)}${header}${'word '.repeat(900)}`.split(/(?<= )/);
      const out: string[] = [];
      const stream = createMaskedStream(mask, 'thread', piece => void out.push(piece));
      for (const word of words) {
        stream.push(word);
        await new Promise(resolve => setImmediate(resolve));
        await new Promise(resolve => setImmediate(resolve));
      }
      await waitUntil('all is out before the end', () => out.join('').split(' ').length === words.length + 1);
      // The next line begins as the first one did.
      for (const piece of ['\n', 'more ']) {
        stream.push(piece);
        await waitUntil(`${JSON.stringify(piece)} is out`, () => out.join('').endsWith(piece));
      }
      await stream.end();
      expect(out.join('')).not.toContain('YWJjZGVmZ2g');
    }
  });

  it('masks what comes in one turn together, and has all of it at the end', async () => {
    let passes = 0;
    const out: string[] = [];
    const stream = createMaskedStream(
      (part, ...more) => {
        passes += 1;
        return mask(part, ...more);
      },
      'thread',
      piece => void out.push(piece),
    );
    for (let at = 0; at < 500; at++) stream.push(`word${at} `);
    await stream.end();
    expect(passes).toBeLessThan(5);
    expect(out.join('')).toBe(Array.from({ length: 500 }, (_, at) => `word${at} `).join(''));
  });

  it('passes everything on once when lines end while others are masked', async () => {
    const out: string[] = [];
    const stream = createMaskedStream(mask, 'thread', piece => void out.push(piece));
    for (const piece of ['\n', 'one two', ' three\n', 'four', ' ']) stream.push(piece);
    await stream.end();
    expect(out.join('')).toBe('\none two three\nfour ');
  });

  it('passes everything on once when lines and words come while others are masked', async () => {
    const pieces = ['one\ntwo ', 'three\nfour ', 'five\nsix\n', 'seven eight nine\n', 'ten '];
    const left = [...pieces];
    const out: string[] = [];
    const slow: typeof mask = async (...args) => {
      const masked = await mask(...args);
      stream.push(left.shift() ?? '');
      return masked;
    };
    const stream = createMaskedStream(slow, 'thread', piece => void out.push(piece));
    stream.push(left.shift() ?? '');
    await waitUntil('all is pushed', () => left.length === 0);
    await stream.end();
    expect(out.join('')).toBe(pieces.join(''));
  });

  it('passes words on soon after a pause, a long line, a secret in it, and a private key', async () => {
    const out: string[] = [];
    const stream = createMaskedStream(mask, 'thread', piece => void out.push(piece));
    const token = `ghp_${'Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2'}`;
    const key = ['-----BEGIN PRIVATE KEY-----', 'M'.repeat(64), 'AbCd', '-----END PRIVATE KEY-----', ''].join('\n');
    const long = `${'word '.repeat(900)}${token} ${'word '.repeat(900)}${token} ${'word '.repeat(900)}`;
    for (const [text, last] of [
      ['one two ', 'two '],
      ['three\n', 'three\n'],
      ['four five six\nseven\n', 'seven\n'],
      ...long.split(/(?<= )/).map(word => [word, word.replace(token, '')]),
      ['\n', '\n'],
      ['eight ', 'eight '],
      [`before ${key}`, '-----END PRIVATE KEY-----\n'],
      ['nine ', 'nine '],
    ] as const) {
      stream.push(text);
      await waitUntil(`${text} is out`, () => out.join('').endsWith(last), { everyMs: 0 });
    }
    await stream.end();
    const text = `one two three\nfour five six\nseven\n${long}\neight before ${key}nine `;
    expect(out.join('')).toBe((await mask(text, 'thread', 'model')).text);
    expect(out).not.toContain('');
  });

  it('tells of a key whose end comes late what it is, behind what is out', async () => {
    const out = await streamed([
      `${'Ab1'.repeat(14)} `,
      `${'Cd2'.repeat(14)} -----END PRIVATE KEY----- and so on\nmore `,
    ]);
    expect(out.join('')).toMatch(/^(Ab1){14} \[masked:private_key:\w{8}\] -----END PRIVATE KEY----- and so on\nmore $/);
  });

  it('repeats nothing when what follows shows that a secret is of another kind', async () => {
    const line = `{"secret_key": "wJ9rXUt4nFEMI7K2MDENGb8PxRfiCYzE3XAQk5Lq"} and so on AKIA${'Z7QLM2K4XV5TR6PB'} then `;
    const whole = (await mask(line, 'thread', 'model')).text;
    const out = (await streamed(line.split(/(?<= )/))).join('');
    const withoutKinds = (text: string) => text.replaceAll(/\[masked:\w+:/g, '[masked:');
    expect(withoutKinds(out)).toBe(withoutKinds(whole));
  });

  it('tells at its end that masking failed', async () => {
    const stream = createMaskedStream(
      () => Promise.reject(new Error('no mask')),
      'thread',
      () => undefined,
    );
    for (const piece of ['one ', 'two ', 'three']) {
      stream.push(piece);
      await new Promise(resolve => setImmediate(resolve));
    }
    await expect(stream.end()).rejects.toThrow('no mask');
  });

  it('is quick for a line that does not end', async () => {
    const began = ownTime();
    const out = await streamed(Array.from({ length: 300 }, () => 'word '.repeat(200)));
    expect(out.join('')).toBe('word '.repeat(60_000));
    expect(ownTime() - began).toBeLessThan(5_000);
  });
});
