import { describe, expect, it } from 'vitest';
import { explainRoute } from '../../../src/models/routing/explain.ts';
import type { ModelRequest } from '../../../src/models/routing/roster.ts';
import { noPolicy, rosterOf } from '../routing-fixtures.ts';

const task = { tool: 'chat', text: 'Name three birds', files: [], images: 0, estimatedTokens: 50 };
const request: ModelRequest = { category: 'fast_response', needs: {}, task };
const roster = rosterOf(['google', 'zhipu']);
const explain = (more: Partial<ModelRequest> = {}) => explainRoute({ ...request, ...more }, roster, noPolicy);
const isGlm = ({ provider }: { provider: string }) => provider === 'zhipu';

describe('an explanation', () => {
  it('puts what fails at this moment behind what is well, and says so of those left out', () => {
    expect(explain().candidates[0]?.model.provider).toBe('zhipu');
    const { candidates, leftOut, plan } = explain({ ailing: isGlm });
    expect(candidates[0]?.model.provider).toBe('google');
    expect(plan?.prefers.at(-1)).toBe('zhipu');
    expect(leftOut).toContainEqual(expect.objectContaining({ why: 'failing', provider: 'zhipu' }));
    expect(leftOut).not.toContainEqual(expect.objectContaining({ why: 'ranked_lower', provider: 'zhipu' }));
  });

  it('names every model that is not a candidate once, with one reason', () => {
    const { candidates, leftOut } = explain();
    const named = [
      ...candidates.map(({ model }) => `${model.provider}:${model.id}`),
      ...leftOut.flatMap(({ provider, models }) => models.map(id => `${provider}:${id}`)),
    ];
    expect(named.toSorted()).toEqual(roster.models.map(({ provider, id }) => `${provider}:${id}`).toSorted());
  });

  it('of a named model leaves the others out for that alone', () => {
    const { candidates, leftOut, plan } = explain({
      name: 'gemini-2.5-flash',
      task: { ...task, model: 'gemini-2.5-flash' },
    });
    expect(plan?.class).toBe('explicit');
    expect(candidates.map(({ model }) => model.id)).toEqual(['gemini-2.5-flash']);
    expect(new Set(leftOut.filter(isGlm).map(({ why }) => why))).toEqual(new Set(['not_named']));
  });
});
