import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createIdentify, createTokens, digestOf } from '../../../src/server/access/tokens.ts';
import { manualClock } from '../../support/clock.ts';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { csrfIn } from '../../support/dashboard-client.ts';
import { helloFrames } from '../../support/frame-client.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

const right = 'The-right-token-0123456789';
const ann = { name: 'ann', owner: 'ann', permissions: { readOnly: false } };

/** What an address hears of a wrong token: the seconds to wait, or 0; and of the right one: `in`. */
function rig() {
  const clock = manualClock();
  const identify = createIdentify(createTokens([{ digest: digestOf(right), caller: ann }]), clock);
  const ask = (token: string | undefined, address: string) => {
    const found = identify(token && `Bearer ${token}`, address);
    if (!('status' in found)) return 'in';
    return found.status === 429 ? (found.retryAfterSeconds ?? -1) : 0;
  };
  let guesses = 0;
  return {
    clock,
    right: (address: string) => ask(right, address),
    ask,
    wrong: (address: string) => ask(`Guess-number-${guesses++}-of-many`, address),
  };
}

describe('wrong tokens', () => {
  it('of one address have to wait longer and longer, and of another one nothing', () => {
    const { wrong, right: holder } = rig();
    const waits = Array.from({ length: 24 }, () => wrong('10.0.0.1'));
    expect(waits.slice(0, 11)).toEqual(Array(11).fill(0));
    expect(waits.slice(11)).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900]);
    expect(wrong('10.0.0.2')).toBe(0);
    // Whoever shares the address is let in all the same.
    expect([holder('10.0.0.1'), holder('10.0.0.2')]).toEqual(['in', 'in']);
  });

  it('of many addresses have to wait, too', () => {
    const { wrong, right: holder } = rig();
    const waits = Array.from({ length: 260 }, (_, at) => wrong(`10.0.${at % 130}.1`));
    expect(waits.slice(0, 200)).toEqual(Array(200).fill(0));
    expect(waits.at(-1)).toBe(900);
    expect([wrong('192.0.2.7'), holder('192.0.2.7')]).toEqual([900, 'in']);
  });

  it('are told at the pace that was said to those who wait, and the wait grows on', async () => {
    const { wrong, clock } = rig();
    let wait = 0;
    while (wait === 0) wait = Number(wrong('10.0.0.1'));
    for (const next of [4, 16, 64]) {
      await clock.advance(wait * 1_000);
      expect(wrong('10.0.0.1')).toBe(0);
      wait = Number(wrong('10.0.0.1'));
      expect(wait).toBe(next * 2);
    }
  });

  it('start over after a quiet quarter of an hour, and no right one shortens that', async () => {
    const { wrong, right: holder, clock } = rig();
    for (let at = 0; at < 14; at += 1) wrong('10.0.0.1');
    expect(holder('10.0.0.1')).toBe('in');
    expect(wrong('10.0.0.1')).toBe(16);
    await clock.advance((16 + 901) * 1_000);
    expect(Array.from({ length: 11 }, () => wrong('10.0.0.1'))).toEqual(Array(11).fill(0));
  });

  it('are not what is no token at all', () => {
    const { ask } = rig();
    expect(Array.from({ length: 50 }, () => ask(undefined, '10.0.0.1')).every(wait => wait === 0)).toBe(true);
  });
});

describe('at the doors of a daemon', () => {
  let project: TempProject;
  let daemon: TestDaemon;
  const token = 'The-operators-token-0123';
  const guess = 'A-guess-at-the-token-0001';

  beforeEach(async () => {
    project = await tempProject();
    daemon = await testDaemon({ root: project.root, env: { OFFLINE: 'true', POLYLOGUE_TOKEN: token } });
  });
  afterEach(async () => {
    await daemon?.close();
    await project.dispose();
  });

  async function signIn(given: string): Promise<Response> {
    const form = await fetch(`${daemon.url}/login`);
    const cookie = (form.headers.getSetCookie()[0] ?? '').split(';')[0] ?? '';
    const body = new URLSearchParams({ csrf: csrfIn(await form.text()), back: '/', token: given });
    const headers = { origin: daemon.url, cookie };
    return fetch(`${daemon.url}/login`, { method: 'POST', headers, body, redirect: 'manual' });
  }

  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  const ws = () => `${daemon.url.replace('http', 'ws')}/ws`;

  it('the same count is kept, and the right one passes everywhere', async () => {
    const holder = await helloFrames(ws(), { token });
    // A few at each door; none of them is too many alone.
    for (let at = 0; at < 3; at += 1) {
      await daemon.ask('/api/tools', { token: guess });
      await signIn(guess);
      await (await helloFrames(ws(), { token: guess })).closed;
      holder.send({ op: 'rotate_token', old: guess, new: 'A-new-token-0123456789' });
    }
    const answers = [
      await daemon.ask('/api/tools', { token: guess }),
      await daemon.ask('/api/tools/version', { token: guess, ...post }),
      await daemon.ask('/mcp', { token: guess, ...post }),
      await daemon.ask('/metrics', { token: guess }),
      await daemon.ask('/', { token: guess }),
      await signIn(guess),
    ];
    expect(answers.map(({ status }) => status)).toEqual([429, 429, 429, 429, 429, 429]);
    const waits = answers.map(({ headers }) => Number(headers.get('retry-after')));
    expect(waits.every((wait, at) => wait > (waits[at - 1] ?? 0))).toBe(true);
    const hello = await helloFrames(ws(), { token: guess });
    expect(hello.ack).toMatchObject({ ok: false, error: 'unauthorized', retry_after_s: expect.any(Number) });
    expect(await hello.closed).toMatchObject({ code: 4003 });

    expect((await daemon.ask('/api/tools', { token })).status).toBe(200);
    expect((await daemon.ask('/api/tools/version', { token, ...post })).status).toBe(200);
    expect((await signIn(token)).status).toBe(303);
    const again = await helloFrames(ws(), { token });
    expect(again.ack).toMatchObject({ ok: true });
    holder.send({ op: 'rotate_token', old: token, new: 'A-new-token-0123456789' });
    await expect.poll(() => daemon.daemon.tokens.find(token)).toBeUndefined();
    expect((await daemon.ask('/healthz')).status).toBe(200);
    expect((await daemon.ask('/api/tools')).status).toBe(401);
    await Promise.all([again.close(), holder.close()]);
  });

  it('a guesser who heeds no refusal hears nothing else, whatever the guess and the door, and the others go on', async () => {
    const holder = await helloFrames(ws(), { token });
    const near = [token.toUpperCase(), token.slice(0, -1), `${token}0`, token.slice(1), `x${token.slice(1)}`, 'short'];
    const guessAt = (at: number) => near[at] ?? `A-guess-at-the-token-${1_000 + at}`;
    const heard: { door: string; status: number; wait: number }[] = [];
    for (let at = 0; at < 36; at += 1) {
      const [door, answer] =
        at % 3 === 0
          ? ([
              'HTTP',
              await daemon.ask(at % 2 ? '/mcp' : '/api/tools', { token: guessAt(at), ...(at % 2 && post) }),
            ] as const)
          : (['sign-in', await signIn(guessAt(at))] as const);
      if (at % 3 !== 2) {
        heard.push({ door, status: answer.status, wait: Number(answer.headers.get('retry-after')) });
        expect(answer.headers.getSetCookie().join(), door).not.toMatch(/polylogue_session=[^;]/);
        continue;
      }
      const { ack, closed } = await helloFrames(ws(), { token: guessAt(at) });
      expect(ack).toMatchObject({ ok: false, error: 'unauthorized' });
      expect(ack.session_id).toBeUndefined();
      expect(await closed).toMatchObject({ code: 4003 });
      heard.push({
        door: 'WebSocket',
        status: ack.retry_after_s === undefined ? 401 : 429,
        wait: ack.retry_after_s ?? 0,
      });
    }
    const refused = heard.filter(({ status }) => status === 429);
    for (const door of ['HTTP', 'sign-in', 'WebSocket']) {
      expect(refused.filter(each => each.door === door).length, door).toBeGreaterThan(5);
    }
    // From the first one on, to the last, and longer each time.
    expect(heard.slice(heard.indexOf(refused[0]!))).toEqual(refused);
    expect(refused.every(({ wait }, at) => wait >= (refused[at - 1]?.wait ?? 0))).toBe(true);
    expect(refused.at(-1)?.wait).toBe(900);

    expect((await daemon.ask('/api/tools', { token })).status).toBe(200);
    expect((await signIn(token)).headers.getSetCookie().join()).toMatch(/polylogue_session=[^;]/);
    const other = await helloFrames(ws(), { token });
    expect(other.ack).toMatchObject({ ok: true });
    for (const client of [holder, other]) {
      client.call('one', 'version');
      expect((await client.result('one')).error).toBeUndefined();
    }
    await Promise.all([holder.close(), other.close()]);
  });
});
