import { describe, expect, it } from 'vitest';
import type { Document } from '../../../support/product.ts';
import { step, workflowRig } from '../../../tools/workflow-rig.ts';
import { lastOf, stateRuns, told } from './workflow-state-runs.ts';

const rig = workflowRig();

describe.each(stateRuns)('two runs of $tool on two threads', ({ tool, one, other }) => {
  async function alone(run: readonly Record<string, unknown>[]): Promise<Document[]> {
    const replies: Document[] = [];
    for (const [index, more] of run.entries()) {
      const { continuation_id } = replies[0] ?? {};
      replies.push(
        told(
          await rig.call(tool, step(index + 1, run.length, { ...more, ...(continuation_id && { continuation_id }) })),
        ),
      );
    }
    return replies;
  }

  it('behave as if each were alone', async () => {
    rig.answers('The answer.', 'The answer.', 'The answer.', 'The answer.');
    const expected = { one: (await alone(one)).map(lastOf), other: (await alone(other)).map(lastOf) };
    expect(expected.one).not.toEqual(expected.other);

    const found: { one: Document[]; other: Document[] } = { one: [], other: [] };
    for (const index of one.keys()) {
      for (const [name, run] of [
        ['one', one],
        ['other', other],
      ] as const) {
        const { continuation_id } = found[name][0] ?? {};
        const args = { ...run[index], ...(continuation_id && { continuation_id }) };
        found[name].push(told(await rig.call(tool, step(index + 1, run.length, args))));
      }
    }
    expect(found.one.map(lastOf)).toEqual(expected.one);
    expect(found.other.map(lastOf)).toEqual(expected.other);
    expect(found.one[0]?.continuation_id).not.toBe(found.other[0]?.continuation_id);
  });
});
