import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createApprovals } from '../../../../src/engine/modes/agent/plan-run.ts';
import { agentOn, callLook, look, loopVendors, type VendorRun } from './agent-on-vendor.ts';

let on: VendorRun;
beforeEach(async () => {
  on = await agentOn(loopVendors[0]!);
});
afterEach(() => on.close());

describe('a program that lets a model work', () => {
  it.each([
    ['nothing', undefined, ''],
    ['a number', 7, '7'],
    ['an object of its own', { rows: 2 }, '{"rows":2}'],
    ['an output that is none', { text: 3 }, '{"text":3}'],
  ])('may bring %s, and the run goes on', async (_, brought, text) => {
    on.fake.script({ calls: [callLook('gate')], reasoning: 'Look.' }, { answer: 'Done.' });
    // Programs without types do this.
    const run = async (): Promise<string> => JSON.parse(JSON.stringify({ brought })).brought;
    const result = await on.run({ tools: [look({ run })] });
    expect(result).toMatchObject({ text: 'Done.', toolCalls: [{ outcome: 'ok', result: text }] });
  });

  it('may check arguments with a function that throws', async () => {
    on.fake.script({ calls: [callLook('gate')], reasoning: 'Look.' }, { answer: 'Done.' });
    const check = () => {
      throw new Error('no such gate');
    };
    const result = await on.run({ tools: [look({ check })] });
    expect(result.toolCalls).toMatchObject([{ outcome: 'invalid', result: expect.stringContaining('no such gate') }]);
  });

  it.each(['no', 7, true])(
    'may say %j of what an approval covers: the call is not run, and the run goes on',
    async word => {
      on.fake.script({ calls: [callLook('gate')], reasoning: 'Look.' }, { answer: 'Done.' });
      const approval = async () => JSON.parse(JSON.stringify(word));
      const result = await on.run({ tools: [look({ approval })] });
      const told = expect.stringContaining('"approval" of look has to bring an object');
      expect(result).toMatchObject({ text: 'Done.', toolCalls: [{ outcome: 'refused', result: told }] });
    },
  );

  it('may never say whether a call is allowed: the end of the run does not wait for it', async () => {
    on.fake.script({ calls: [callLook('gate')], reasoning: 'Look.' }, { answer: 'Done.' });
    const stop = new AbortController();
    const onToolCall = () => {
      stop.abort(new Error('enough'));
      return new Promise<never>(() => {});
    };
    await expect(on.run({ onToolCall, signal: stop.signal })).rejects.toThrow();
  });
});

describe('a question that is too long for a form', () => {
  it('says so first, and names every file of the patch, also one in the middle', async () => {
    const filler = (name: string) => `--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-a\n+${'x'.repeat(15_000)}\n`;
    const patch = `${filler('one.ts')}--- /dev/null\n+++ b/.github/workflows/theirs.yml\n@@ -0,0 +1 @@\n+x\n${filler('two.ts')}`;
    let shown = '';
    const gate = createApprovals('reads', 'r', { allowed: [], asked: 0, decided: {} }, async ({ message }) => {
      shown = message;
      return { action: 'decline', content: {} };
    });
    const tool = look({ name: 'apply_patch', effect: 'write', show: () => patch });
    await gate({
      tool,
      approval: {},
      id: 'c',
      name: 'apply_patch',
      args: { patch },
      signal: new AbortController().signal,
    });
    expect(shown).toContain('.github/workflows/theirs.yml');
    expect(shown.slice(0, 200)).toMatch(/\d+ characters are NOT shown/);
    expect(shown.length).toBeLessThan(20_000);
  });
});
