import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { aheadBy, realClock } from '../../support/clock.ts';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { csrfIn, type DashboardClient, dashboardClient } from '../../support/dashboard-client.ts';
import { helloFrames } from '../../support/frame-client.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

const hourMs = 3_600_000;
const tokenOf = (name: string) => `T0ken-of-${name}-0123456789`;
const named = (name: string, more: object = {}) => ({ name, token: tokenOf(name), ...more });
const everybody = [named('ann'), named('bob'), named('carl')];

let project: TempProject;
let daemon: TestDaemon;
let other: TestDaemon;
let ahead = 0;

beforeAll(async () => {
  project = await tempProject();
  const real = realClock();
  const clock = aheadBy(real, () => ahead);
  const options = { root: project.root, env: { OFFLINE: 'true' }, tokens: everybody, clock };
  [daemon, other] = [await testDaemon(options), await testDaemon(options)];
});
beforeEach(() => change(...everybody));
afterAll(async () => {
  await Promise.all([daemon?.close(), other?.close()]);
  await project.dispose();
});

async function change(...tokens: object[]): Promise<void> {
  await writeFile(daemon.tokensFile, JSON.stringify({ tokens }));
  await daemon.daemon.reload();
}

/** Signs in as a browser does; answers the new cookie as it came, and as it is sent back. */
async function signIn(name: string, headers: Record<string, string> = {}) {
  const form = await fetch(`${daemon.url}/login`, { headers, redirect: 'manual' });
  const login = (form.headers.getSetCookie()[0] ?? '').split(';')[0] ?? '';
  const body = new URLSearchParams({ csrf: csrfIn(await form.text()), back: '/', token: tokenOf(name) });
  const cookie = [headers.cookie, login].filter(Boolean).join('; ');
  const init = {
    method: 'POST',
    headers: { ...headers, origin: daemon.url, cookie },
    body,
    redirect: 'manual',
  } as const;
  const set = (await fetch(`${daemon.url}/login`, init)).headers.getSetCookie()[0] ?? '';
  return { set, cookie: set.split(';')[0] ?? '' };
}

async function browser(name: string): Promise<DashboardClient> {
  return dashboardClient(daemon.url, { cookie: (await signIn(name)).cookie });
}

/** A page that follows; `over` resolves with how long its stream went on once it ends. */
async function follow(client: DashboardClient) {
  const response = await client.get('/live', { accept: 'text/event-stream' });
  expect(response.status).toBe(200);
  const reader = response.body?.getReader();
  await reader?.read();
  const begun = performance.now();
  const drain = async (): Promise<void> => ((await reader?.read())?.done ? undefined : drain());
  let isOver = false;
  const over = drain()
    .catch(() => undefined)
    .then(() => {
      isOver = true;
      return performance.now() - begun;
    });
  return { over, isOver: () => isOver, close: () => reader?.cancel() };
}

const statusOf = async (client: DashboardClient) => (await client.get('/spend')).status;

it('says nothing of the token in its cookie, and is another one each time', async () => {
  const [one, two] = [await signIn('ann'), await signIn('ann')];
  expect(one.set).toMatch(/^polylogue_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  expect(one.cookie).not.toBe(two.cookie);
  const value = one.cookie.split('=')[1] ?? '';
  for (const text of [value, Buffer.from(value, 'base64url').toString('latin1')])
    expect(text).not.toContain(tokenOf('ann'));
  // Nor does it open anything else.
  expect((await fetch(`${daemon.url}/api/tools`, { headers: { authorization: `Bearer ${value}` } })).status).toBe(401);
  const secure = await signIn('ann', { 'x-forwarded-proto': 'https' });
  expect(secure.set).toMatch(/^__Host-polylogue_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
});

it('is not made by who sends one, and is taken by no other daemon', async () => {
  const fixed = `polylogue_session=${'A'.repeat(43)}`;
  expect(await statusOf(dashboardClient(daemon.url, { cookie: fixed }))).toBe(303);
  const { cookie } = await signIn('ann', { cookie: fixed });
  expect(cookie).not.toBe(fixed);
  expect(await statusOf(dashboardClient(daemon.url, { cookie: fixed }))).toBe(303);
  expect(await statusOf(dashboardClient(daemon.url, { cookie }))).toBe(200);
  expect(await statusOf(dashboardClient(other.url, { cookie }))).toBe(303);
});

it('ends with a sign-out, its open pages within a second, and no other session of the token does', async () => {
  const [one, two] = [await browser('ann'), await browser('ann')];
  const [mine, others] = [await follow(one), await follow(two)];
  expect((await one.post('/logout')).status).toBe(303);
  expect(await mine.over).toBeLessThan(1_000);
  expect([await statusOf(one), await statusOf(two), others.isOver()]).toEqual([303, 200, false]);
  expect(await statusOf(dashboardClient(daemon.url, { token: tokenOf('ann') }))).toBe(200);
  await others.close();
});

it.each([
  ['is revoked', async () => change(named('bob'), named('carl'))],
  ['is replaced in the file', async () => change(named('ann', { token: 'An0ther-token-of-ann-1' }), named('bob'))],
  ['becomes another owner’s', async () => change(named('ann', { owner: 'zoe' }), named('bob'))],
  [
    'is rotated',
    async () => {
      const frames = await helloFrames(`${daemon.url.replace('http', 'ws')}/ws`, { token: tokenOf('ann') });
      frames.send({ op: 'rotate_token', old: tokenOf('ann'), new: 'R0tated-token-of-ann-1' });
      await expect.poll(() => daemon.daemon.tokens.find(tokenOf('ann'))).toBeUndefined();
      await frames.close();
    },
  ],
])('ends at once with its open pages when its token %s, for good, and others go on', async (_how, act) => {
  const [ann, bob] = [await browser('ann'), await browser('bob')];
  const [hers, his] = [await follow(ann), await follow(bob)];
  // What a program opened by the token in its header ends too.
  const byHeader = await follow(dashboardClient(daemon.url, { token: tokenOf('ann') }));
  const form = await ann.csrf();
  await act();
  for (const { over } of [hers, byHeader]) expect(await over).toBeLessThan(2_000);
  expect(await statusOf(ann)).toBe(303);
  expect((await ann.post('/theme', { theme: 'dark', back: '/' }, { csrf: form })).status).toBe(403);
  expect([await statusOf(bob), his.isOver()]).toEqual([200, false]);
  // The same token again is no reason to let the old session in.
  await change(...everybody);
  expect(await statusOf(ann)).toBe(303);
  await his.close();
});

it('goes on where the file changes and its token does not', async () => {
  const ann = await browser('ann');
  await change(named('ann', { read_only: true }), named('dora'));
  expect(await statusOf(ann)).toBe(200);
});

it('ends after 12 hours without a request, and after 7 days with them', async () => {
  const [idle, busy] = [await browser('ann'), await browser('ann')];
  const stays = { idle: 0, busy: 0 };
  for (let hour = 0; hour < 24 * 7 - 1; hour += 11) {
    if ((await statusOf(busy)) === 200) stays.busy = hour;
    if (hour < 12 && (await statusOf(idle)) === 200) stays.idle = hour;
    ahead += 11 * hourMs;
  }
  expect(stays.busy).toBeGreaterThan(24 * 6);
  expect(stays.idle).toBe(11);
  expect([await statusOf(idle), await statusOf(busy)]).toEqual([303, 303]);
});

it('is one of 32 of its token: another one ends the one that was unused longest', async () => {
  const all: DashboardClient[] = [];
  for (let at = 0; at < 32; at += 1) {
    all.push(await browser('carl'));
    ahead += 1_000;
  }
  expect(await statusOf(all[0]!)).toBe(200);
  ahead += 1_000;
  await browser('carl');
  const states = await Promise.all(all.slice(0, 3).map(statusOf));
  expect(states).toEqual([200, 303, 200]);
});

it('takes forms of its own alone', async () => {
  const [one, two] = [await browser('ann'), await browser('ann')];
  const csrf = await two.csrf();
  const fields = { theme: 'dark', back: '/' };
  expect((await one.post('/theme', fields, { csrf })).status).toBe(403);
  expect((await one.post('/theme', fields, { headers: { origin: 'http://localhost:1' } })).status).toBe(403);
  expect((await one.post('/theme', fields)).status).toBe(303);
});
