import { basename } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dayOf, savedByCaches } from '../../../src/core/usage.ts';
import { htmlText } from '../../../src/server/dashboard/html.ts';
import type { Visit } from '../../../src/server/dashboard/page.ts';
import { providersPage } from '../../../src/server/dashboard/providers-page.ts';
import { spendCsv, spendPage } from '../../../src/server/dashboard/spend-page.ts';
import { type DashboardClient, dashboardClient, readable } from '../../support/dashboard-client.ts';
import {
  type DashboardWorld,
  liveThrough,
  models,
  startDashboardWorld,
  tokens,
} from '../../support/dashboard-world.ts';
import { testProduct, vendorEnv } from '../../support/product.ts';

let world: DashboardWorld;
let alice: DashboardClient;
let ids: Awaited<ReturnType<typeof liveThrough>>;

beforeAll(async () => {
  world = await startDashboardWorld();
  ids = await liveThrough(world);
  alice = dashboardClient(world.daemon.url, { token: tokens.alice });
});
afterAll(() => world?.close());

const read = async (path: string) => readable(await alice.page(path));
const callsOf = async (tool: string) =>
  [...(await alice.page('/')).matchAll(/href="(\/calls\/[^"]+)">([^<]+)</g)].flatMap(([, path = '', name]) =>
    name === tool ? [path] : [],
  );

/** Everything that a stream of news tells, until what was told holds `word`. */
async function follow(path: string, word: string): Promise<string[]> {
  const gone = new AbortController();
  const response = await fetch(`${world.daemon.url}${path}`, {
    headers: { authorization: `Bearer ${tokens.alice}`, accept: 'text/event-stream' },
    signal: gone.signal,
  });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const told: string[] = [];
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) told.push(event.startsWith('data: ') ? JSON.parse(event.slice(6)) : event);
    if (told.some(each => each.includes(word))) break;
  }
  gone.abort();
  return told;
}

describe('the live page', () => {
  it('shows what the day came to, and the calls that ended with how', async () => {
    const page = await read('/');
    expect(page).toMatch(/Running 0 calls/);
    expect(page).toMatch(/Spent today \$0\.0\d+/);
    expect(page).toMatch(/Providers 2 of 3 1 needs attention/);
    expect(page).toContain('No calls running');
    expect(page).toMatch(/consensus Should .* ✓ done/);
    expect(page).toMatch(/thread ✕ failed \(bad upstream, openai\)/);
    expect(page).toContain(`anthropic:${models.anthropic}`);
  });

  it('tells of a call while it runs: its stage, its model, its end', async () => {
    const running = follow('/live', 'asking google');
    const call = world.begin('How slowly?');
    expect(readable((await running).at(-1) ?? '')).toMatch(
      /Running 1 call .*chat ● running asking google:gemini.* How slowly\?/,
    );
    await call.cancel();
    const ended = await follow('/live', 'cancelled');
    expect(readable(ended.at(-1) ?? '')).toMatch(/No calls running.*chat How slowly\? .* thread ! cancelled/);
  });

  it('tells calls apart by question, project and thread, but not to who may not use threads', async () => {
    const page = await alice.page('/');
    const project = basename(world.project.root);
    expect(readable(page)).toMatch(
      new RegExp(`consensus Should the session table move from files to SQLite\\? ${project} · thread ✓ done`),
    );
    expect(page).toContain(`<a href="/threads/${ids.panel}">thread</a>`);
    const [path = ''] = await callsOf('consensus');
    const toolless = dashboardClient(world.daemon.url, { token: tokens.toolless });
    for (const each of ['/', path]) expect(await toolless.page(each)).not.toMatch(/session table|\/threads\//);
  });

  it('says who answered in the place of a model that failed', async () => {
    world.vendors.anthropic.byDefault({ fault: 'status', status: 503 });
    await world.call('chat', { prompt: 'Who answers now?', model: models.anthropic, allow_fallback: true });
    world.vendors.anthropic.byDefault({});
    expect(await read('/')).toMatch(/chat Who answers now\? .* thread ! fell back \(to openai:gpt[^)]*\)/);
  });

  it('says what to run where no provider is set up, and never that all is well', async () => {
    const bare = await testProduct({ root: world.project.root });
    const daemon = await bare.product.openDaemon({ host: '127.0.0.1', port: 0 });
    const client = dashboardClient(daemon.url, {});
    for (const path of ['/', '/providers']) {
      const page = readable(await client.page(path));
      expect(page).toMatch(/No provider is set up, so no model can answer\..*export GEMINI_API_KEY.*polylogue doctor/);
      expect(page).not.toContain('all well');
    }
    await daemon.close();
    await bare.close();
  });

  it('teaches who has nothing yet', async () => {
    const page = readable(await dashboardClient(world.daemon.url, { token: tokens.mallory }).page('/'));
    expect(page).toContain('No calls yet');
    expect(page).toContain('polylogue ask');
    expect(page).not.toMatch(/consensus ✓/);
  });
});

describe('all calls', () => {
  it.each([
    ['?outcome=failed', /✕ failed \(bad upstream, openai\)/, /✓ done/],
    ['?tool=consensus', /consensus Should the session table/, /chat/],
    ['?model=anthropic', /Is this right now\?/, /How does this module/],
    ['?q=LOST+lease', /Which HTTP status fits a lost lease\?/, /consensus/],
    ['?project=nowhere&page=9', /No matching calls/, /✓ done/],
  ])('are narrowed down by %s', async (query, shown, hidden) => {
    const page = (await read(`/calls${query}`)).replace(/^.*Search/, '');
    expect(page).toMatch(shown);
    expect(page.replace(/ (Newest|Older)\b.*/, '')).not.toMatch(hidden);
  });

  it('are reached to the oldest one, a page at a time', async () => {
    const first = await alice.page('/calls');
    const [, older = ''] = /href="([^"]+)">Older/.exec(first) ?? [];
    expect(older).toBe('/calls?page=2');
    expect(await read(older)).toMatch(/Calls of this process Started .*UNIQUE constraint/);
    expect((await alice.page('/calls?tool=chat&page=1')).replaceAll('&amp;', '&')).toContain(
      'href="/calls?tool=chat&page=2"',
    );
  });

  it('come from the store after a restart, each once', async () => {
    const env = vendorEnv({ google: world.vendors.google.url });
    const later = await testProduct({ root: world.project.root, env });
    for (const prompt of ['Before the restart?', 'And then?'])
      await later.call('chat', { prompt, model: models.google });
    await later.restart();
    await later.call('chat', { prompt: 'After it?', model: models.google });
    const daemon = await later.product.openDaemon({ host: '127.0.0.1', port: 0 });
    const client = dashboardClient(daemon.url, {});
    const [kept, older] = [await client.page('/calls'), await client.page('/calls?before=99999999999999')];
    expect(readable(kept)).toMatch(/chat After it\?/);
    expect(readable(older)).toMatch(/from the threads Started .*And then\?.*✓ done.*google:.*Before the restart\?/);
    expect(older).not.toContain('After it?');
    expect(readable(await client.page('/calls?before=99999999999999&q=restart'))).not.toContain('And then?');
    await daemon.close();
    await later.close();
  });
});

describe('one call', () => {
  it('stands with its events in time, its attempts and what they cost', async () => {
    const [path = ''] = await callsOf('consensus');
    const page = await read(path);
    for (const model of [`google:${models.google}`, `openai:${models.openai}`, `anthropic:${models.anthropic}`])
      expect(page).toMatch(new RegExp(`Attempt 1: ${model} ✓ ok \\d+ ms · [\\d,]+ in, [\\d,]+ out · \\$0\\.\\d+`));
    expect(page).toContain('asking 3 models');
    expect(page).toContain('bringing 3 verdicts together');
    expect(page).toContain('Ended: consensus_complete');
    expect(page).toMatch(
      /Question turn 1 of its thread .*Should the session table move .* Answer turn 2 of its thread/,
    );
    expect(await alice.page(path)).not.toContain('data-live');
  });

  it('says of failures what they were, and that a breaker kept a model from being asked', async () => {
    const pages = await Promise.all((await callsOf('chat')).slice(0, 5).map(read));
    const all = pages.join();
    expect(all).toMatch(/✕ retry \d+ ms · bad_upstream · HTTP 503 · then retry/);
    expect(all).toMatch(/Attempt \d: openai:gpt-5-mini · skipped/);
    expect(all).toContain('API_ERROR');
  });

  it('follows one that runs until it is over', async () => {
    const call = world.begin('When?');
    await expect.poll(async () => readable(await alice.page('/'))).toContain('● running');
    const [path = ''] = await callsOf('chat');
    expect(await alice.page(path)).toContain(`data-live="${path}/live"`);
    const told = follow(`${path}/live`, 'event: over');
    await call.cancel();
    expect(readable((await told).at(-2) ?? '')).toMatch(/Outcome ! cancelled .*Ended: /);
  });
});

describe('threads', () => {
  it('are listed, newest first, a page at a time', async () => {
    const first = await alice.page('/threads');
    expect(readable(first)).toMatch(/Which HTTP status fits a lost lease\? .* Why is the cart empty/);
    const [, older = ''] = /href="(\/threads\?before=[\w%-]+)"/.exec(first) ?? [];
    const second = readable(await alice.page(older));
    expect(second).toContain('Newest');
    expect(second).not.toContain('Why is the cart empty');
  });

  it('are found by words, with the place', async () => {
    const page = await alice.page('/threads?q=refactoring+cart');
    expect(readable(page)).toMatch(/1 thread with “refactoring cart”/);
    expect(page).toContain('<mark>cart</mark>');
    expect(page).toContain(`/threads/${ids.cart}?from=1&amp;q=refactoring%20cart#turn-1`);
    expect(await read('/threads?q=zebra')).toContain('No matches');
    expect(await read(`/threads?q=${encodeURIComponent('" OR 1=1 NEAR(')}`)).toContain('No matches');
  });

  it('are read with files, diffs and citations', async () => {
    const page = await alice.page(`/threads/${ids.cart}`);
    const text = readable(page);
    expect(text).toMatch(/1\. You, with chat .*Why is the cart empty.*src\/cart\.ts full \d+ lines/);
    expect(text).toMatch(
      /2\. anthropic:claude-sonnet-4-5 .* in, \d+ out · \$0\.\d+ What happens saveCart writes under the session's key/,
    );
    expect(await alice.page(`/threads/${ids.cart}?q=SESSION`)).toContain('the <mark>session</mark> refactoring');
    expect(page).toMatch(/<span class="pair"><span class="cut">[^<]*sessionKey[^<]*<\/span><span class="add">/);
    expect(page).toContain('<span class="add">+  storage.write(user, JSON.stringify(items));</span>');
    expect(page).toContain('<span class="cut">-  storage.write(sessionKey(), JSON.stringify(items));</span>');
    expect(page).toMatch(
      /<a href="https:\/\/developer\.mozilla\.org[^"]*" rel="noopener noreferrer nofollow external">Window: localStorage</,
    );
    expect(readable(await alice.page(`/threads/${ids.cart}/turns/1/files/0`))).toContain(
      'export function loadCart(user: string)',
    );
    expect(readable(await alice.page(`/threads/${ids.cart}/turns/2`))).toContain('How to be sure');
  });

  it('are forked at an answer, and nowhere else', async () => {
    const forked = await alice.post(`/threads/${ids.cart}/fork`, { turn: '2' });
    expect(forked.status).toBe(303);
    const path = forked.headers.get('location') ?? '';
    const fork = await read(path);
    expect(fork).toContain('(fork at turn 2)');
    expect(fork).toContain('Forked from turn 2 of another');
    expect(fork).not.toContain('private windows');
    for (const turn of ['1', '99', '', 'x']) {
      const refused = await alice.post(`/threads/${ids.cart}/fork`, { turn });
      expect(refused.status, turn).toBe(400);
    }
    const sure = await alice.post(`${path}/delete`, { sure: 'yes' });
    expect([sure.status, sure.headers.get('location')]).toEqual([303, '/threads']);
    expect((await alice.get(path)).status).toBe(404);
  });

  it('are compared with their forks, from the turn on where they part', async () => {
    const forked = await alice.post(`/threads/${ids.cart}/fork`, { turn: '2' });
    const [, , fork = ''] = (forked.headers.get('location') ?? '').split('/');
    world.vendors.anthropic.script({ answer: 'Another way: keep it in a cookie.' });
    await world.call('chat', { prompt: 'What else?', model: models.anthropic, continuation_id: fork });
    const parent = await alice.page(`/threads/${ids.cart}`);
    expect(readable(parent)).toMatch(/Forks Why is the cart .* \( compare \)/);
    const path = `/threads/${ids.cart}/compare/${fork}`;
    expect(parent).toContain(`href="${path}"`);
    expect(await read(path)).toMatch(
      /2 turns in common; then: .*3\. You, with chat .*private windows.*What else\?.*in a cookie/,
    );
    expect(await read(path)).not.toContain('What happens');
    const mallory = dashboardClient(world.daemon.url, { token: tokens.mallory });
    expect((await mallory.get(path)).status).toBe(404);
    await alice.post(`/threads/${fork}/delete`, { sure: 'yes' });
  });

  it('are deleted only by who is sure', async () => {
    expect((await alice.post(`/threads/${ids.session}/delete`)).status).toBe(400);
    expect((await alice.get(`/threads/${ids.session}`)).status).toBe(200);
  });

  it.each([
    ['md', 'text/markdown', '# Why is the cart empty'],
    ['html', 'text/html', '<!doctype html>'],
    ['jsonl', 'application/jsonl', '"polylogue.thread"'],
  ])('are exported as %s, to keep and not to run', async (form, type, begin) => {
    const response = await alice.get(`/threads/${ids.cart}/export?format=${form}`);
    expect(response.headers.get('content-type')).toContain(type);
    expect(response.headers.get('content-disposition')).toBe(
      `attachment; filename="thread-${ids.cart.slice(0, 8)}.${form}"`,
    );
    expect(response.headers.get('content-security-policy')).toContain('sandbox');
    expect((await response.text()).slice(0, 300)).toContain(begin);
    expect((await alice.get(`/threads/${ids.cart}/export?format=exe`)).status).toBe(404);
  });
});

describe('a consensus', () => {
  it('stands side by side: each verdict with its model, stance, position and confidence', async () => {
    const page = await read(`/threads/${ids.panel}/verdicts`);
    expect(page).toMatch(/✓ 2 × support ✕ 1 × oppose/);
    expect(page).toMatch(/Recommendation ?Move the table to SQLite in two steps/);
    expect(page).toMatch(
      /Expert A: google:gemini-2\.5-flash stance: neutral ✓ support Confidence 8 of 10.*Do it: files already lose updates/,
    );
    expect(page).toMatch(
      /Expert C: anthropic:claude-sonnet-4-5 stance: against ✕ oppose Confidence 6 of 10.*Not yet: a lock would do/,
    );
    expect(await alice.page(`/threads/${ids.panel}`)).toContain(`/threads/${ids.panel}/verdicts#panel-2`);
  });

  it('asked step by step stands side by side too', async () => {
    const { google, anthropic } = world.vendors;
    google.script({ answer: '## Verdict\nYes.\n**Position:** support\n## Confidence\n7/10' });
    anthropic.script({ answer: '## Verdict\nNo.\n**Position:** oppose\n## Confidence\n5/10' });
    const models2 = [models.google, models.anthropic];
    const step = { total_steps: 2, findings: 'Both are possible.', models: models2 };
    const first = await world.call('consensus', {
      ...step,
      step: 'Tabs or spaces?',
      step_number: 1,
      next_step_required: true,
    });
    const { continuation_id } = first.continuation_offer;
    await world.call('consensus', {
      ...step,
      step: 'Noted.',
      step_number: 2,
      next_step_required: false,
      continuation_id,
    });
    const page = await read(`/threads/${continuation_id}/verdicts`);
    expect(page).toMatch(/2 models, up to turn 4 ✓ 1 × support ✕ 1 × oppose/);
    expect(page).toMatch(/Expert A: google.*Yes\..*Expert B: anthropic.*No\./);
  });

  it('of a thread without one is nothing to see, and says so', async () => {
    expect(await read(`/threads/${ids.session}/verdicts`)).toContain('This thread has no consensus.');
  });
});

describe('providers', () => {
  it('show breakers, latency, errors and spend, the ailing ones first', async () => {
    const page = await read('/providers');
    expect(page).toMatch(
      /OpenAI ! degraded .*gpt-5-mini ✕ paused \d+ ms 5 of \d+ 5 bad upstream .*: it failed 5 times in a row \(bad_upstream\); next try at .* in \d+ s/,
    );
    expect(page).toMatch(/Anthropic ✓ healthy .*Model calls \d+ Cost \$0\.\d+/);
    expect(page.indexOf('OpenAI')).toBeLessThan(page.indexOf('Anthropic'));
  });

  it('show latency and errors by hour and by day, and the age of the list', async () => {
    const page = await alice.page('/providers');
    expect(page).toMatch(/aria-label="Errors, last 24 h\. 5 of \d+ attempts/);
    expect(page).toMatch(/aria-label="Latency, last 7 days\. \d+[^"]*ms on average/);
    const provider = { id: 'x', title: 'X', configured: true, local: false, endpoints: [], models: 3, can: {} };
    const listed = { ...provider, listedSecondsAgo: 180, health: [] };
    const own = { providers: async () => [listed], caches: async () => [], spend: async () => [] };
    const visit = { own, now: Date.now() } as unknown as Visit;
    expect(readable(htmlText((await providersPage(visit)).body))).toContain('Models 3, listed 3 min ago');
  });

  it('are tried at once by a button, but not by who may only read', async () => {
    const good = readable(await (await alice.post('/providers', { provider: 'google' })).text());
    expect(good).toMatch(/Google .*✓ answered with \d+ models, after \d+ ms/);
    const reader = dashboardClient(world.daemon.url, { token: tokens.reader });
    expect((await reader.post('/providers', { provider: 'google' })).status).toBe(403);
    expect(await reader.page('/providers')).not.toContain('Try now');
    expect((await alice.post('/providers', { provider: 'no-such' })).status).toBe(400);
    const env = { ...vendorEnv({ google: world.vendors.google.url }), GEMINI_API_KEY: 'a-wrong-key-0123456789' };
    const wrong = await testProduct({ root: world.project.root, env });
    const daemon = await wrong.product.openDaemon({ host: '127.0.0.1', port: 0 });
    const bad = await (await dashboardClient(daemon.url, {}).post('/providers', { provider: 'google' })).text();
    expect(readable(bad)).toMatch(/Google .*✕ [^.]*key/);
    expect(bad).not.toContain('a-wrong-key');
    await daemon.close();
    await wrong.close();
  });

  it('say of those that are not set up which variable does it, a key or an address', async () => {
    const page = await read('/providers');
    expect(page).toContain('Ollama set OLLAMA_HOST ');
    expect(page).toContain('A custom endpoint set CUSTOM_API_URL ');
    expect(page).toContain('Groq set GROQ_API_KEY ');
  });

  it('show what vendors keep of one’s own threads', async () => {
    const page = await alice.page('/providers');
    expect(page).toContain(`href="/threads/${ids.session}"`);
    expect(readable(page)).toMatch(/google:gemini-2\.5-flash [\d.,k ]+ \d+ messages?, 1 file/);
    const others = readable(await dashboardClient(world.daemon.url, { token: tokens.mallory }).page('/providers'));
    expect(others).toContain('No vendor caches');
  });
});

describe('spend', () => {
  it('is drawn by day and summed up by model, provider, tool, thread or day', async () => {
    const page = await alice.page('/spend');
    expect(page.match(/<rect class="a"/g)?.length).toBeGreaterThan(20);
    expect(readable(page)).toMatch(/Model Cost Share .*anthropic:claude-sonnet-4-5 \$0\.0\d+/);
    expect(await read('/spend?by=tool')).toMatch(/Tool Cost .*chat ~\$0\.\d+.*consensus \$0\.\d+/);
    expect(await read('/spend?by=thread')).toContain(ids.panel.slice(0, 8));
    expect(await read('/spend?days=7&by=day')).toMatch(/Day Cost/);
    expect(await read('/spend?days=1e9&by=constructor')).toMatch(/Model Cost/);
  });

  it('says what the month will have cost, what caches saved, and which calls were the dearest', async () => {
    const page = await read('/spend');
    expect(page).toMatch(/This month \$0\.\d+ so far/);
    expect(page).toMatch(/Caches (saved \$0\.0\d+|cost \$0\.0\d+ more than they saved) Model calls/);
    const usage = { input: 1e6, output: 5, reasoning: 0, cacheRead: 1e6, cacheWrite: 0 };
    expect(savedByCaches(usage, { in: 2, out: 8, cacheRead: 0.5 })).toBeCloseTo(1.5);
    expect(savedByCaches({ ...usage, cacheRead: 0, cacheWrite: 1e6 }, { in: 2, out: 8, cacheWrite: 2.5 })).toBeCloseTo(
      -0.5,
    );
    const table = page.replace(/^.*The dearest calls Started/, '');
    expect(table).toMatch(/chat Is this right now\? Check .*\$0\.0\d+/);
    const costs = [...table.matchAll(/\$(\d\.\d+)/g)].map(([, cost]) => Number(cost));
    expect(costs).toHaveLength(10);
    expect(costs).toEqual(costs.toSorted((a, b) => b - a));
  });

  it('is summed up by project, and exported for a spreadsheet', async () => {
    expect(await read('/spend?by=project')).toMatch(
      new RegExp(`Project Cost .*${basename(world.project.root)} ~?\\$0`),
    );
    const response = await alice.get('/spend.csv?days=30');
    expect(response.headers.get('content-type')).toContain('text/csv');
    expect(response.headers.get('content-disposition')).toContain('polylogue-spend-30-days.csv');
    const [head, ...rows] = (await response.text()).trim().split('\r\n');
    expect(head).toMatch(/^day,provider,model,tool,project,thread,questions,unpriced,cost_usd,/);
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.join('\n')).toContain(`,consensus,${world.project.root},${ids.panel},`);
    const mallory = dashboardClient(world.daemon.url, { token: tokens.mallory });
    expect((await (await mallory.get('/spend.csv')).text()).trim()).toBe(head);
    const toolless = dashboardClient(world.daemon.url, { token: tokens.toolless });
    for (const path of ['/spend?by=project', '/spend', '/spend.csv'])
      expect(await toolless.page(path), path).not.toMatch(new RegExp(`${basename(world.project.root)}|Is this right`));
  });

  it('keeps a text that begins like a formula from being one', async () => {
    const usage = { input: 1, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
    const row = { day: '2026-01-01', owner: 'local', tool: '=cmd("x")', provider: '+1', model: '-2', calls: 1 };
    const own = { spend: async () => [{ ...row, unpriced: 0, costUsd: -1, usage }] };
    const visit = { url: new URL('http://localhost/spend.csv'), own, now: 0 } as unknown as Visit;
    expect(await (await spendCsv(visit)).text()).toContain(`2026-01-01,'+1,'-2,"'=cmd(""x"")",`);
  });

  it.each([
    ['2026-11-01T01:00Z', /This month \$1\.00 so far Caches/],
    ['2026-11-01T23:59Z', /This month \$1\.00 so far Caches/],
    ['2026-11-02T00:00Z', /This month \$1\.00 so far, about \$30\.00 at its end/],
    ['2026-11-16T00:00Z', /This month \$1\.00 so far, about \$2\.00 at its end/],
  ])('forecasts the month once it has a whole day: at %s', async (time, shown) => {
    const usage = { input: 1, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
    const row = { day: '2026-11-01', owner: 'local', tool: 'chat', provider: 'openai', model: 'gpt-5', calls: 1 };
    const spend = async () => [{ ...row, unpriced: 0, costUsd: 1, usage }];
    const own = { spend, saved: async () => 0, calls: { list: () => [] } };
    const visit = { url: new URL('http://localhost/spend'), own, now: Date.parse(time) } as unknown as Visit;
    expect(readable(htmlText((await spendPage(visit)).body))).toMatch(shown);
  });

  it.each([
    [1, /Cost ~\$0\.50 .*Input tokens ~100 .*~ includes an estimate for 1 model call .*openai:gpt-5 ~\$0\.50 .*~100/],
    [undefined, /Cost \$0\.50 .*Input tokens 100 .*openai:gpt-5 \$0\.50 .* 100/],
  ])('marks what is estimated: %s', async (estimated, shown) => {
    const now = Date.now();
    const usage = {
      input: 100,
      output: 10,
      reasoning: 0,
      cacheRead: 0,
      cacheWrite: 0,
      ...(estimated && { estimated }),
    };
    const row = { day: dayOf(now), owner: 'local', tool: 'chat', provider: 'openai', model: 'gpt-5', calls: 1 };
    const spend = async () => [{ ...row, unpriced: 0, costUsd: 0.5, usage }];
    const own = { spend, saved: async () => 0, calls: { list: () => [] } };
    const visit = { url: new URL('http://localhost/spend'), own, now } as unknown as Visit;
    expect(readable(htmlText((await spendPage(visit)).body))).toMatch(shown);
  });
});

it('answers HEAD, leaves other paths to others, and refuses other methods', async () => {
  const authorization = `Bearer ${tokens.alice}`;
  const head = await fetch(`${world.daemon.url}/threads`, { method: 'HEAD', headers: { authorization } });
  expect([head.status, await head.text()]).toEqual([200, '']);
  expect((await alice.get('/nowhere')).headers.get('content-type')).toContain('json');
  expect((await alice.get('/healthz')).status).toBe(200);
  expect((await alice.post('/threads')).status).toBe(405);
  expect((await alice.get(`/threads/${ids.cart}/fork`)).status).toBe(405);
});
