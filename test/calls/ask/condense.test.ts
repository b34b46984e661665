import { describe, expect, it } from 'vitest';
import { summariseHistory } from '../../../src/calls/ask/summarise-history.ts';
import { estimateTokens } from '../../../src/core/tokens.ts';

const part = (n: number, words = 100) => Array.from({ length: words }, (_, at) => `word${n}x${at}`).join(' ');

/** Writes the first words of each text, and notes what it was given. */
function scribe(words = 5) {
  const read: { text: string; tokens: number }[] = [];
  const write = async (text: string, tokens: number) => {
    read.push({ text, tokens });
    return text.split(' ').slice(0, words).join(' ');
  };
  return { read, write };
}

describe('a summary of parts', () => {
  it('is written at once when all of it can be read at once', async () => {
    const { read, write } = scribe();
    const parts = [part(1), part(2)];
    expect(await summariseHistory({ parts, tokens: 300, room: 5_000, write })).toBe(part(1, 5));
    expect(read).toEqual([{ text: parts.join('\n\n'), tokens: 300 }]);
  });

  it('of what is too long is written piece by piece, and then of the pieces’ summaries', async () => {
    const { read, write } = scribe();
    const parts = Array.from({ length: 20 }, (_, n) => part(n));
    const room = 2_000;
    await summariseHistory({ parts, tokens: 300, room, write });
    expect(read.length).toBeGreaterThan(3);
    for (const { text } of read) expect(estimateTokens(text)).toBeLessThanOrEqual(room);
    const pieces = read.slice(0, -1);
    const all = pieces.map(({ text }) => text).join('\n\n');
    for (const whole of parts) expect(all).toContain(whole.slice(0, 40));
    for (const { text } of pieces) expect(read.at(-1)!.text).toContain(text.split(' ').slice(0, 5).join(' '));
    expect(read.at(-1)!.tokens).toBe(300);
  });

  it('of one part that is too long alone leaves none of it out', async () => {
    const { read, write } = scribe();
    const text = part(1, 2_000);
    await summariseHistory({ parts: [text], tokens: 300, room: 4_000, write });
    expect(
      read
        .slice(0, -1)
        .map(piece => piece.text)
        .join(''),
    ).toBe(text);
  });

  it('ends also where whoever writes makes nothing shorter', async () => {
    const write = async (text: string) => `${text} ${text}`;
    const parts = Array.from({ length: 9 }, (_, n) => part(n));
    expect(await summariseHistory({ parts, tokens: 300, room: 2_000, write })).toContain('word0x0');
  });

  it('is not even begun where it would take too many pieces', async () => {
    const { read, write } = scribe();
    const parts = Array.from({ length: 200 }, (_, n) => part(n));
    expect(await summariseHistory({ parts, tokens: 300, room: 700, write })).toBeUndefined();
    expect(read).toEqual([]);
  });

  it('fails with whoever writes', async () => {
    const write = async () => {
      throw new Error('nobody there');
    };
    await expect(summariseHistory({ parts: ['a text'], tokens: 300, room: 700, write })).rejects.toThrow(
      'nobody there',
    );
  });
});
