import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { csrfIn, type DashboardClient, dashboardClient, readable } from '../../support/dashboard-client.ts';
import { type DashboardWorld, models, startDashboardWorld, tokens } from '../../support/dashboard-world.ts';

let world: DashboardWorld;
let url: string;
let alice: DashboardClient;
let thread: string;
let call: string;

beforeAll(async () => {
  world = await startDashboardWorld();
  url = world.daemon.url;
  alice = dashboardClient(url, { token: tokens.alice });
  const args = { model: models.google, absolute_file_paths: ['src/cart.ts'] };
  const reply = await world.call('chat', { ...args, prompt: 'The zebra is secret.' });
  thread = reply.continuation_offer.continuation_id;
  call = /\/calls\/([0-9a-f-]{36})/.exec(await alice.page('/'))?.[1] ?? '';
});
afterAll(() => world?.close());

const plain = (path: string, init: RequestInit = {}) => fetch(`${url}${path}`, { redirect: 'manual', ...init });
const cookieIn = (response: Response, name: string) =>
  response.headers.getSetCookie().find(each => each.startsWith(`${name}=`)) ?? '';

/** What a browser does to get in. */
async function signIn(token: string, { back = '/', headers = {} as Record<string, string>, sign = '' } = {}) {
  const form = await plain(`/login?back=${encodeURIComponent(back)}`, { headers });
  const page = await form.text();
  const cookie = cookieIn(form, 'polylogue_login').split(';')[0] ?? '';
  const there = /name="back" value="([^"]*)"/.exec(page)?.[1] ?? '';
  const body = new URLSearchParams({ csrf: sign || csrfIn(page), back: there.replaceAll('&amp;', '&'), token });
  return plain('/login', { method: 'POST', headers: { origin: url, cookie, ...headers }, body });
}

async function browser(token: string): Promise<DashboardClient> {
  const response = await signIn(token);
  return dashboardClient(url, { cookie: cookieIn(response, 'polylogue_session').split(';')[0] ?? '' });
}

describe('signing in', () => {
  it('is asked of whoever is not known, who then comes to where he wanted', async () => {
    const refused = await plain(`/threads/${thread}?from=1`);
    const back = encodeURIComponent(`/threads/${thread}?from=1`);
    expect([refused.status, refused.headers.get('location')]).toEqual([303, `/login?back=${back}`]);
    expect(await refused.text()).not.toContain('zebra');
    const entered = await signIn(tokens.alice, { back: `/threads/${thread}?from=1` });
    expect([entered.status, entered.headers.get('location')]).toEqual([303, `/threads/${thread}?from=1`]);
  });

  it('is open to a browser that sends the password of a proxy before it', async () => {
    const headers = { authorization: `Basic ${btoa('proxy:password')}` };
    expect((await plain('/login', { headers })).status).toBe(200);
    expect((await signIn(tokens.alice, { headers })).status).toBe(303);
    expect((await plain('/metrics', { headers })).status).toBe(401);
  });

  it('gives a cookie without the token, which no script reads and no other site sends', async () => {
    const cookie = cookieIn(await signIn(tokens.alice), 'polylogue_session');
    expect(cookie).toMatch(/^polylogue_session=[\w-]+; Path=\/; HttpOnly; SameSite=Strict$/);
    for (const coding of ['utf8', 'base64url', 'base64', 'hex'] as const)
      expect(cookie).not.toContain(Buffer.from(tokens.alice).toString(coding));
    const behindProxy = await signIn(tokens.alice, { headers: { 'x-forwarded-proto': 'https' } });
    expect(cookieIn(behindProxy, '__Host-polylogue_session')).toMatch(/; Path=\/;.*; Secure$/);
    const page = readable(await (await browser(tokens.alice)).page('/'));
    expect(page).toContain('signed in as alice');
    expect(page).toContain('Sign out');
  });

  it.each(['', 'wrong-token-0123456789', tokens.alice.slice(1), 'x'.repeat(10_000), '\u0000'])(
    'lets nobody in by %j',
    async token => {
      const response = await signIn(token);
      expect(response.status).toBe(401);
      expect(cookieIn(response, 'polylogue_session')).toBe('');
      expect(await response.text()).toContain('Invalid token.');
    },
  );

  it('goes nowhere but to this server', async () => {
    for (const back of [
      'https://evil.test/',
      '//evil.test/',
      '/\\evil.test',
      'javascript:alert(1)',
      '/\t/evil.test',
      '/%2f/evil.test',
    ])
      expect((await signIn(tokens.alice, { back })).headers.get('location'), back).toMatch(/^\/(?![/\\])/);
  });

  it('takes a form only with its own cookie, and from a page of its own', async () => {
    expect((await signIn(tokens.alice, { sign: 'AAAA' })).status).toBe(403);
    expect((await signIn(tokens.alice, { headers: { cookie: 'polylogue_login=other' } })).status).toBe(403);
    expect((await signIn(tokens.alice, { headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(403);
    expect((await signIn(tokens.alice, { headers: { origin: 'http://localhost:1' } })).status).toBe(403);
  });

  it('ends when one signs out, and when the token is replaced', async () => {
    const known = await browser(tokens.mallory);
    const left = await known.post('/logout');
    expect(cookieIn(left, 'polylogue_session')).toMatch(/^polylogue_session=; .*Max-Age=0$/);
    expect((await known.get('/')).status).toBe(303);
    for (const cookie of [
      'polylogue_session=',
      'polylogue_session=%00%ff',
      `polylogue_session=${'A'.repeat(9_000)}`,
      '=;;=x; polylogue_session',
    ])
      expect((await dashboardClient(url, { cookie }).get('/')).status, cookie.slice(0, 40)).toBe(303);
  });

  it('by a cookie opens the dashboard and nothing else', async () => {
    const cookie = cookieIn(await signIn(tokens.alice), 'polylogue_session').split(';')[0] ?? '';
    expect((await plain('/api/tools', { headers: { cookie } })).status).toBe(401);
    const init = { method: 'POST', headers: { cookie, 'content-type': 'application/json' }, body: '{}' };
    expect((await plain('/mcp', init)).status).toBe(401);
  });

  it('by a cookie gets a page where there is nothing; a stranger hears nothing of it', async () => {
    const cookie = cookieIn(await signIn(tokens.alice), 'polylogue_session').split(';')[0] ?? '';
    const missed = await plain('/threads/mistyped', { headers: { cookie } });
    expect(missed.status).toBe(404);
    expect(await missed.text()).toContain('Not found');
    expect((await plain('/threads/mistyped')).status).toBe(401);
  });
});

describe('a form that changes something', () => {
  const forms = ['fork', 'delete'] as const;

  it.each(forms)('is refused without the sign of its page: %s', async form => {
    const known = await browser(tokens.alice);
    const own = await known.csrf();
    const others = await (await browser(tokens.mallory)).csrf();
    const fields = { turn: '2', sure: 'yes' };
    for (const csrf of ['', 'AAAA', others, `${own}x`, own.slice(0, -1)]) {
      const refused = await known.post(`/threads/${thread}/${form}`, fields, { csrf });
      expect(refused.status, csrf).toBe(403);
    }
    expect(readable(await alice.page('/threads'))).not.toContain('fork at turn');
    expect((await alice.get(`/threads/${thread}`)).status).toBe(200);
  });

  it('is refused from a page of another site, whatever it carries', async () => {
    const known = await browser(tokens.alice);
    const csrf = await known.csrf();
    const others: Record<string, string>[] = [
      { origin: 'http://localhost:1' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
    ];
    for (const headers of others)
      expect((await known.post(`/threads/${thread}/delete`, { sure: 'yes' }, { csrf, headers })).status).toBe(403);
    for (const origin of ['https://evil.test', 'null'])
      expect(
        (await known.post(`/threads/${thread}/delete`, { sure: 'yes' }, { csrf, headers: { origin } })).status,
      ).toBe(403);
  });

  it('is refused as what is no form, and when it is longer than one', async () => {
    const headers = { authorization: `Bearer ${tokens.alice}`, 'content-type': 'application/json' };
    const path = `/threads/${thread}/delete`;
    expect((await plain(path, { method: 'POST', headers, body: '{"sure":"yes"}' })).status).toBe(403);
    expect((await alice.post(path, { sure: 'yes', more: 'x'.repeat(70_000) })).status).toBe(413);
    expect((await plain(path, { method: 'POST', body: new URLSearchParams({ sure: 'yes' }) })).status).toBe(403);
  });

  it('is refused to who may only read, and is not offered to him', async () => {
    const reader = dashboardClient(url, { token: tokens.reader });
    const page = await reader.page(`/threads/${thread}`);
    expect(readable(page)).toContain('zebra');
    expect(page).not.toMatch(/\/(fork|delete)"/);
    for (const form of forms) {
      const refused = await reader.post(`/threads/${thread}/${form}`, { turn: '2', sure: 'yes' });
      expect(refused.status).toBe(403);
      expect(await refused.text()).toContain('read-only');
    }
    expect((await alice.get(`/threads/${thread}`)).status).toBe(200);
  });
});

describe('what is another owner’s', () => {
  it('is not there, at any address', async () => {
    const paths = [
      '',
      '/verdicts',
      '/turns/1',
      '/turns/2',
      '/turns/1/files/0',
      '/turns/1/images/0',
      '/export?format=md',
      '/export?format=jsonl',
    ];
    const all = [...paths.map(path => `/threads/${thread}${path}`), `/calls/${call}`, `/calls/${call}/live`];
    for (const path of all) {
      expect(
        (await alice.get(path.includes('images') ? `/threads/${thread}` : path.replace('/live', ''))).status,
        path,
      ).toBe(200);
      const response = await dashboardClient(url, { token: tokens.mallory }).get(path);
      const text = await response.text();
      expect(response.status, path).toBe(404);
      expect(text, path).not.toContain('zebra');
    }
    const mallory = dashboardClient(url, { token: tokens.mallory });
    const unknown = await (await mallory.get('/threads/00000000-0000-4000-8000-000000000000')).text();
    const hers = await (await mallory.get(`/threads/${thread}`)).text();
    const bare = (page: string) => page.replaceAll(/value="\/threads\/[^"]*"/g, '');
    expect(bare(hers)).toBe(bare(unknown));
    for (const form of ['fork', 'delete'])
      expect((await mallory.post(`/threads/${thread}/${form}`, { turn: '2', sure: 'yes' })).status).toBe(404);
  });

  it('is in no list, search, sum, count or stream', async () => {
    const mallory = dashboardClient(url, { token: tokens.mallory });
    for (const path of ['/', '/threads', '/threads?q=zebra', '/spend', '/spend?by=thread', '/providers']) {
      const page = await mallory.page(path);
      expect(page, path).not.toMatch(/The zebra/);
      expect(page, path).not.toContain(thread);
      expect(page, path).not.toContain(call);
    }
    expect(readable(await mallory.page('/spend'))).toContain('No spend in this period');
    const gone = new AbortController();
    const response = await plain('/live', {
      headers: { authorization: `Bearer ${tokens.mallory}`, accept: 'text/event-stream' },
      signal: gone.signal,
    });
    const told: string[] = [];
    const reading = (async () => {
      for await (const chunk of response.body ?? []) told.push(Buffer.from(chunk).toString());
    })().catch(() => undefined);
    await expect.poll(() => told.length).toBeGreaterThan(0);
    await world.call('chat', { prompt: 'The zebra again.', model: models.google });
    // News would be told by then.
    await new Promise(resolve => setTimeout(resolve, 350));
    gone.abort();
    await reading;
    expect(told.join('')).toContain('No calls yet');
    expect(told.join('')).not.toMatch(/running<|gemini/);
  });

  it('nor are threads shown to a token that may not use them', async () => {
    const toolless = dashboardClient(url, { token: tokens.toolless });
    for (const path of ['/threads', `/threads/${thread}`, `/threads/${thread}/export`])
      expect((await toolless.get(path)).status, path).toBe(403);
    expect((await toolless.get('/spend')).status).toBe(200);
  });
});

describe('what goes along with each answer', () => {
  it('lets nothing in but what is from here, and nobody frame, sniff or keep it', async () => {
    const pages = ['/', '/threads', `/threads/${thread}`, '/providers', '/spend', `/calls/${call}`, '/login'];
    for (const path of pages) {
      const { headers } = await alice.get(path);
      const policy = headers.get('content-security-policy') ?? '';
      if (path === '/login') expect(headers.get('location')).toBe('/');
      else {
        expect(policy).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
        expect(policy).not.toMatch(/unsafe|\*|data:|https?:/);
      }
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it('keeps its own assets for good, and needs nobody to be known for them', async () => {
    const page = await alice.page('/');
    const assets = [...page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
    expect(assets).toHaveLength(3);
    for (const path of assets) {
      const response = await plain(path);
      expect(response.status).toBe(200);
      expect(response.headers.get('cache-control')).toContain('immutable');
    }
    expect((await plain('/assets/other.js', { headers: { authorization: `Bearer ${tokens.alice}` } })).status).toBe(
      404,
    );
  });

  it('has no answer for a host or a page that is none of its own', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const { hostname, port } = new URL(url);
      const headers = { host: 'evil.test', authorization: `Bearer ${tokens.alice}` };
      request({ hostname, port, path: '/', headers }, response => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });
});
