import { describe, expect, it } from 'vitest';
import { passedUse, type Use, usePart } from '../../src/models/fees.ts';

describe('what wrappers around vendors pass on of what was used', () => {
  const use: Use = { kind: 'web_search', amount: 2, of: 'search-prime', provisional: true };

  it('comes out as it was put in', () => {
    expect(passedUse(usePart(use))).toEqual(use);
  });

  it('is nothing that a vendor writes into its stream', () => {
    const rawValue: unknown = JSON.parse(JSON.stringify({ polylogueUse: use, use }));
    expect(passedUse({ type: 'raw', rawValue })).toBeUndefined();
    expect(passedUse({ type: 'raw', rawValue: null })).toBeUndefined();
  });
});
