import { describe, expect, it, vi } from 'vitest';
import { geminiAnswers, type StandInStep } from '../../support/stand-in-cli.ts';
import { type CliRig, cliRig } from './cli-rig.ts';

/** One child of each kind: obedient, deaf to signals, and a daemon in a session of its own that keeps the pipes open. */
const family: StandInStep[] = [{ child: 'plain' }, { child: 'deaf' }, { child: 'daemon' }];

async function running(rig: CliRig, count: number): Promise<void> {
  await vi.waitFor(async () => expect((await rig.left()).length).toBeGreaterThanOrEqual(count), { timeout: 30_000 });
}

// They wait for processes that end, or do not.
describe.concurrent('the processes of a CLI', () => {
  it('are all ended when the call is cancelled, those that ignore it and those in sessions of their own too', async ({
    onTestFinished: whenFinished,
  }) => {
    const rig = await cliRig({ whenFinished, clis: ['gemini'], steps: [...family, { deaf: true, hang: true }] });
    const cancel = new AbortController();
    const call = rig.call({ prompt: 'Hang' }, { signal: cancel.signal });
    await running(rig, 4);
    cancel.abort();
    expect((await call).error).toMatchObject({ code: 'CANCELLED' });
    await rig.nothingLeft();
  });

  it('are all ended when the time is up, and the error says so', async ({ onTestFinished: whenFinished }) => {
    const rig = await cliRig({
      whenFinished,
      clis: ['gemini'],
      steps: [...family, { hang: true }],
      env: { CLI_TIMEOUT_SECONDS: '2' },
    });
    const reply = await rig.call({ prompt: 'Hang' });
    expect(reply.error).toMatchObject({ class: 'timeout', retryable: false, provider: 'cli', model: 'gemini' });
    expect(rig.calls()).toHaveLength(1);
    await rig.nothingLeft();
  });

  it('have the time limit of their own file', async ({ onTestFinished: whenFinished }) => {
    const file = { timeout_seconds: 1 };
    const rig = await cliRig({ whenFinished, clis: ['gemini'], steps: [{ hang: true }], files: { gemini: file } });
    expect((await rig.call({ prompt: 'Hang' })).error).toMatchObject({ class: 'timeout' });
    await rig.nothingLeft();
  });

  it.for<[string, StandInStep]>([
    ['ends', { code: 0 }],
    ['waits for what it started', {}],
  ])('are ended with the answer, also where the CLI %s', async ([, last], { onTestFinished: whenFinished }) => {
    const rig = await cliRig({ whenFinished, clis: ['gemini'], steps: [...family, ...geminiAnswers('Done.'), last] });
    const reply = await rig.call({ prompt: 'Start things' });
    expect(reply.content).toBe('Done.');
    expect(await rig.left()).toEqual([]);
  });

  it('are all ended before the product is closed', async ({ onTestFinished: whenFinished }) => {
    const rig = await cliRig({
      whenFinished,
      clis: ['gemini'],
      steps: [...family, { hang: true }],
      env: { DETACHED_GRACE_SECONDS: '0' },
    });
    const call = rig.call({ prompt: 'Hang' });
    await running(rig, 4);
    await rig.polylogue.product.close();
    expect(await rig.left()).toEqual([]);
    expect((await call).isError).toBe(true);
    await rig.polylogue.restart();
  });
});
