import { describe, expect, it } from 'vitest';
import { workflowRig } from './workflow-rig.ts';

const rig = workflowRig();

describe('challenge', () => {
  it('hands the statement back, quoted, to be judged rather than agreed with', async () => {
    const reply = await rig.call('challenge', { prompt: 'This is slow.\nRewrite it in Rust.' });
    expect(reply).toMatchObject({
      isError: false,
      status: 'challenge_accepted',
      original_statement: 'This is slow.\nRewrite it in Rust.',
      instructions: expect.stringContaining('challenge_prompt'),
    });
    expect(reply.challenge_prompt).toContain('> This is slow.\n> Rewrite it in Rust.');
    expect(rig.asked()).toBe(0);
  });

  it('needs a statement', async () => {
    const reply = await rig.call('challenge', { prompt: '' });
    expect(reply).toMatchObject({ isError: true, status: 'error', error: { code: 'MISSING_PARAMETER' } });
  });
});
