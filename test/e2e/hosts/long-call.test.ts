import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitUntil } from '../../support/wait-until.ts';
import { chat } from './checks.ts';
import { testHosts } from './hosts.ts';
import { type HostRig, openRig } from './rig.ts';

const seconds = 90;

/** All hosts wait at the same time, each begun when the one before it waits. */
describe(`a call of ${seconds} s`, () => {
  const rigs: HostRig[] = [];
  const sessions = new Map<string, Promise<{ results: string[]; ms: number } | { error: unknown }>>();

  beforeAll(async () => {
    for (const host of testHosts) {
      const rig = await openRig(host);
      rigs.push(rig);
      rig.vendor.script({ answer: 'It took its time.', delayMs: seconds * 1_000 });
      const since = performance.now();
      sessions.set(
        host.client,
        rig
          .session('Ask for long.', () => [chat('Slowly?')])
          .then(
            results => ({ results, ms: performance.now() - since }),
            (error: unknown) => ({ error }),
          ),
      );
      await waitUntil('the vendor is asked', () => rig.vendor.requests.length === 1);
    }
  }, 300_000);
  afterAll(async () => {
    for (const rig of rigs) await rig.close();
  });

  for (const { client, title, cli } of testHosts) {
    it(`${title} ${cli.version} waits for it`, async () => {
      expect(await sessions.get(client)).toEqual({
        results: [expect.stringContaining('It took its time.')],
        ms: expect.toSatisfy((ms: number) => ms >= seconds * 1_000),
      });
    });
  }
});
