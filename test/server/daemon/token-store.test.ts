import { chmod, rm } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/server/access/tokens.ts';
import {
  isMountedSecret,
  type LiveTokens,
  openLiveTokens,
  readTokenFile,
} from '../../../src/server/daemon/live-tokens.ts';
import { type ManualClock, manualClock } from '../../support/clock.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let folder: TempProject;
let path: string;
beforeAll(async () => {
  folder = await tempProject();
  path = folder.path('tokens.json');
});
afterAll(() => folder.dispose());

const tokenOf = (name: string) => `a-long-text-of-${name}`;
const named = (name: string, more: object = {}) => ({ name, token: tokenOf(name), ...more });
async function write(...tokens: object[]): Promise<void> {
  await folder.write('tokens.json', JSON.stringify({ tokens }));
  await chmod(path, 0o600);
}

it('warns of a file of tokens that others may read', async () => {
  await write(named('ann'));
  await chmod(path, 0o640);
  expect((await readTokenFile(path)).warning).toContain('chmod 600');
  await chmod(path, 0o600);
  expect((await readTokenFile(path)).warning).toBeUndefined();
});

it('takes no offence at the modes that systemd and container engines give to secrets', () => {
  // systemd gives a credential to a dynamic user by an access list, which shows as 0440.
  expect(isMountedSecret('/run/credentials/polylogue.service/tokens.json')).toBe(true);
  expect(isMountedSecret('/run/secrets/tokens')).toBe(true);
  expect(isMountedSecret('/srv/run/secrets/tokens')).toBe(false);
  expect(isMountedSecret('/run/secrets/../../home/ann/tokens')).toBe(false);
});

describe('a file of tokens that changes', () => {
  let clock: ManualClock;
  let live: LiveTokens;
  let warned: string[];
  let told: string[];
  let secrets: readonly string[];
  const ended: string[][] = [];

  async function open(): Promise<void> {
    clock = manualClock();
    [warned, told] = [[], []];
    ended.splice(0);
    live = await openLiveTokens({
      path,
      own: {
        digest: digestOf(tokenOf('operator')),
        caller: { name: 'operator', owner: 'local', permissions: { readOnly: false } },
      },
      clock,
      warn: message => warned.push(message),
      log: message => told.push(message),
      onSecrets: all => {
        secrets = all;
      },
    });
    live.tokens.onChange(change => ended.push([...change.ended]));
  }

  /** Lets the daemon look at the file so often, and do what comes of it. */
  async function look(times: number): Promise<void> {
    for (let at = 0; at < times; at += 1) {
      await expect.poll(() => clock.pending(), { timeout: 15_000 }).toBe(1);
      await clock.advance(1_000);
    }
    await expect.poll(() => clock.pending(), { timeout: 15_000 }).toBe(1);
  }

  beforeEach(async () => {
    await write(named('ann'), named('bob', { owner: 'team' }), named('carl'));
    await open();
  });

  it('is read again once it stayed as it is: who is out, who is new, who may do other things', async () => {
    const ann = live.tokens.find(tokenOf('ann'));
    await write(named('ann'), named('bob', { owner: 'team', read_only: true }), named('dora'));
    await look(1);
    expect(live.tokens.find(tokenOf('carl'))?.name).toBe('carl');
    await look(1);
    expect(live.tokens.find(tokenOf('carl'))).toBeUndefined();
    expect(live.tokens.find(tokenOf('ann'))).toBe(ann);
    expect(live.tokens.find(tokenOf('bob'))?.permissions.readOnly).toBe(true);
    expect([live.tokens.find(tokenOf('dora'))?.name, live.tokens.find(tokenOf('operator'))?.name]).toEqual([
      'dora',
      'operator',
    ]);
    expect(ended).toEqual([['carl']]);
    expect(told).toEqual([
      expect.stringMatching(/\(tokens in it: 3\): carl is out, bob may do other things, dora is new\./),
    ]);
    expect(secrets).toEqual([tokenOf('operator'), tokenOf('ann'), tokenOf('bob'), tokenOf('dora')]);
    await look(3);
    expect([told.length, warned]).toEqual([1, []]);
    live.close();
    expect(clock.pending()).toBe(0);
  });

  it('is read at once when that is asked for, and another token or owner ends what the old one began', async () => {
    const bob = live.tokens.find(tokenOf('bob'));
    await write({ name: 'ann', token: 'quite-another-text-0001' }, named('bob', { owner: 'himself' }), named('carl'));
    await live.reload();
    expect(ended).toEqual([['ann', 'bob']]);
    expect(bob && live.tokens.now(bob)).toBeUndefined();
    await live.reload();
    expect(told.at(-1)).toContain('nothing changed');
    live.close();
  });

  it.each([
    ['is broken', '{"tokens": [{"name": "ann", "token": "a-long', 'it is no JSON'],
    ['is gone', undefined, 'cannot be read'],
    ['names the operator', JSON.stringify({ tokens: [named('operator')] }), 'POLYLOGUE_TOKEN'],
    ['holds nothing', '{"tokens": []}', 'tokens'],
  ])('and %s leaves all as it was, and is told of once', async (_how, text, why) => {
    if (text === undefined) await rm(path);
    else await folder.write('tokens.json', text);
    await look(4);
    for (const name of ['ann', 'bob', 'carl', 'operator']) expect(live.tokens.find(tokenOf(name))?.name).toBe(name);
    expect(warned).toEqual([expect.stringContaining('The tokens of before hold on')]);
    expect([live.problem(), warned[0]]).toEqual([expect.stringContaining(why), expect.not.stringContaining('a-long')]);
    await write(named('ann'));
    await look(2);
    expect([live.problem(), live.tokens.find(tokenOf('bob'))]).toEqual([undefined, undefined]);
    live.close();
  });

  it('undoes no rotation: neither as it is, nor by a change of something else, nor where it can’t be written', async () => {
    const [first, second] = ['rotated-once-000001', 'rotated-twice-00002'];
    expect(live.tokens.rotate(tokenOf('ann'), first)).toBe(true);
    expect(live.tokens.rotate(first, second)).toBe(true);
    await live.reload();
    await look(3);
    expect([live.tokens.find(first), live.tokens.find(second)?.name]).toEqual([undefined, 'ann']);
    expect((await readTokenFile(path)).entries[0]?.digest).toEqual(digestOf(second));
    expect([secrets.includes(second), ended.flat()]).toEqual([true, []]);
    // A file that says what it said before the rotation, as one that is handed in does.
    await folder.write('tokens.json', 'no JSON');
    expect(live.tokens.rotate(tokenOf('bob'), 'rotated-in-vain-001')).toBe(true);
    await expect.poll(() => warned.join(), { timeout: 15_000 }).toContain('holds until the next start');
    await write(
      { name: 'ann', sha256: digestOf(second).toString('hex') },
      named('bob', { owner: 'team', read_only: true }),
    );
    await live.reload();
    expect(live.tokens.find('rotated-in-vain-001')).toMatchObject({ name: 'bob', permissions: { readOnly: true } });
    // Another token in the file is the operator's last word.
    await write({ name: 'bob', token: 'the-operators-word-1', owner: 'team' });
    await live.reload();
    expect([live.tokens.find('rotated-in-vain-001'), live.tokens.find('the-operators-word-1')?.name]).toEqual([
      undefined,
      'bob',
    ]);
    live.close();
  });

  it('takes a token back for good, even where its holder rotates it before that is read', async () => {
    await write({ name: 'ann', token: 'the-operators-word-1' }, named('bob'));
    expect(live.tokens.rotate(tokenOf('ann'), 'rotated-by-a-thief-1')).toBe(true);
    expect(live.tokens.rotate(tokenOf('bob'), 'rotated-by-himself-1')).toBe(true);
    await live.reload();
    expect([live.tokens.find('rotated-by-a-thief-1'), live.tokens.find('the-operators-word-1')?.name]).toEqual([
      undefined,
      'ann',
    ]);
    expect((await readTokenFile(path)).entries.map(({ digest }) => digest)).toEqual(
      ['the-operators-word-1', 'rotated-by-himself-1'].map(digestOf),
    );
    expect([warned, live.tokens.find('rotated-by-himself-1')?.name]).toEqual([[], 'bob']);
    live.close();
  });
});
