import { describe, expect, it } from 'vitest';
import { linesBetween } from '../../src/core/text.ts';

describe('linesBetween', () => {
  it.each(['', '\n', 'a', 'a\n', 'a\nb', 'a\n\nb\n', '\n\n\n', 'a\r\nb\r\nc'])(
    'gives the same lines of %j as cutting all of it does',
    text => {
      for (let from = 1; from <= 5; from++) {
        for (let to = from; to <= 6; to++) {
          const cut = text
            .split('\n')
            .slice(from - 1, to)
            .join('\n');
          expect(linesBetween(text, from, to), `${from}-${to}`).toBe(cut);
        }
      }
    },
  );
});
