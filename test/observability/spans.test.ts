import { describe, expect, it } from 'vitest';
import { joinSpans } from '../../src/observability/secret-tokens.ts';

describe('joining finds', () => {
  it('covers everything that any find covers, and takes the kind of the surest', () => {
    expect(
      joinSpans([
        { start: 20, end: 30, kind: 'c', rank: 2 },
        { start: 4, end: 9, kind: 'b', rank: 1 },
        { start: 0, end: 5, kind: 'a', rank: 2 },
        { start: 6, end: 7, kind: 'd', rank: 0 },
      ]),
    ).toEqual([
      { start: 0, end: 9, kind: 'd', rank: 0 },
      { start: 20, end: 30, kind: 'c', rank: 2 },
    ]);
  });

  it('keeps neighbours apart and changes nothing that it was given', () => {
    const spans = [
      { start: 0, end: 5, kind: 'a', rank: 1 },
      { start: 5, end: 6, kind: 'b', rank: 1 },
    ];
    expect(joinSpans(spans)).toEqual(spans);
    expect(spans[0]?.end).toBe(5);
  });
});
