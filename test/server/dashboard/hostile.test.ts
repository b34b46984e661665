import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AppEvent } from '../../../src/core/events.ts';
import { exchangeId, sha256, threadId } from '../../../src/core/ids.ts';
import type { WatchedCall } from '../../../src/core/ports.ts';
import type { StoredTurn, Thread } from '../../../src/core/thread.ts';
import type { SpendRow } from '../../../src/core/usage.ts';
import { createTokens } from '../../../src/server/access/tokens.ts';
import { createDashboard } from '../../../src/server/dashboard/dashboard.ts';
import type { DashboardData, ProviderView } from '../../../src/server/dashboard/data.ts';
import { toRequest } from '../../../src/server/http/requests.ts';
import { writeResponse } from '../../../src/server/http/responses.ts';
import { splitFences } from '../../../src/threads/transfer/readable.ts';
import { type OpenPage, openPage, startBrowser } from '../../support/browser.ts';
import { realClock } from '../../support/clock.ts';

const attack = `"'><img src=x onerror="window.ran = 1"><script>window.ran = 2</script><svg onload="window.ran = 3">\`</code></pre><style>*{display:none}</style><a href="javascript:window.ran = 4">x</a>{{7*7}}\${7*7}</textarea><!--`;
const turned = '\u202etxt.exe\u2066\u200f\u0007\u0000 \ud800 \u2028';
/** More than a page shows of one text; a browser takes seconds for each million of them. */
const wide = 'x'.repeat(250_000);
const bad = `${attack} ${turned}`;

const id = threadId('11111111-1111-4111-8111-111111111111');
const callId = '22222222-2222-4222-8222-222222222222';
const now = Date.now();
const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 2, cacheWrite: 0 };

function turn(seq: number, more: Partial<StoredTurn>): StoredTurn {
  return {
    seq,
    role: seq % 2 === 1 ? 'user' : 'assistant',
    content: `# ${bad}\n- **${bad}**\n\`${bad}\`\n\`\`\`${attack}\n${bad}\n\`\`\`\n${wide}`,
    timestamp: now,
    exchange: exchangeId('33333333-3333-4333-8333-333333333333'),
    toolName: bad,
    modelProvider: bad,
    modelName: bad,
    files: [],
    images: [],
    citations: [],
    tokens: 1,
    status: 'done',
    ...more,
  };
}

const hash = sha256('a'.repeat(64));
const file = { path: `/p/${bad}`, size: 1, mtimeMs: 1, lines: 1, sha256: hash, base: hash, shown: hash };
const voices = ['A', 'B'].map(expert => ({
  expert: bad,
  model: bad,
  stance: bad,
  position: `${expert} ${bad}`,
  confidence: 5,
  status: 'success' as const,
  from: 0,
  to: 1_500,
}));
const toolCalls = [{ name: bad, args: bad, outcome: 'refused' as const, approval: bad, reason: bad }];
const citations = [
  'javascript:window.ran = 5',
  'data:text/html,<script>1</script>',
  'https://good.test/"><script>window.ran=6</script>',
  ' https://space.test',
  `//host/${bad}`,
  'https:///',
].map(url => ({ url, title: bad, snippet: bad, date: bad, provider: bad }));
const thread: Thread = {
  id,
  parent: { thread: id, seq: 1 },
  owner: 'local',
  workspace: `/w/${bad}`,
  toolName: bad,
  title: bad,
  createdAt: Number.MAX_SAFE_INTEGER,
  updatedAt: -1e18,
  expiresAt: 9e15,
  initialContext: {},
  totals: { tokens: 1e300, costUsd: 1e-300 },
  seq: 2,
  turns: [
    turn(1, {
      files: [
        { ...file, form: 'full' },
        { ...file, form: 'diff' },
        { ...file, form: 'range', range: { from: 1, to: 2 } },
      ],
      images: [{ source: bad, mediaType: 'image/svg+xml', blob: hash }],
    }),
    turn(2, { citations, modelMetadata: { voices, toolCalls, effort: bad, usage, costUsd: 1, latencyMs: 5 } }),
  ],
  compactions: [],
  workflows: {},
};

const events: AppEvent[] = [
  { type: 'call.start', reqId: callId, tool: bad, owner: 'local', client: bad },
  { type: 'call.stage', reqId: callId, tool: bad, stage: bad + wide },
  {
    type: 'route.plan',
    reqId: callId,
    tool: bad,
    class: bad,
    reasons: [bad, wide],
    requested: bad,
    chosen: [bad, wide],
    webSearch: true,
  },
  { type: 'files.read', reqId: callId, tool: bad, embedded: [bad, wide], skipped: [{ path: bad, code: bad }] },
  { type: 'files.written', reqId: callId, tool: bad, path: bad },
  {
    type: 'model.attempt',
    reqId: callId,
    tool: bad,
    attempt: 1,
    provider: bad,
    model: wide,
    elapsedMs: 1e9,
    outcome: 'failed',
    class: bad,
    next: bad,
  },
  {
    type: 'breaker.change',
    reqId: callId,
    provider: bad,
    model: bad,
    scope: 'model',
    from: bad,
    to: bad,
    calls: 1,
    failures: 1,
    consecutive: 1,
  },
  { type: 'warning', reqId: callId, where: bad, message: bad + wide },
];
const call: WatchedCall = {
  reqId: callId,
  tool: bad,
  owner: 'local',
  client: bad,
  about: { text: bad + wide, workspace: `/w/${bad}`, thread: id, seq: 0 },
  startedAt: now,
  events: events.map(event => ({ at: now, event })),
  omitted: 3,
};
const ended: AppEvent = {
  type: 'call.end',
  reqId: callId,
  tool: bad,
  status: bad,
  code: 'API_ERROR',
  reason: bad + wide,
  elapsedMs: 5,
};

const spend: SpendRow[] = [
  {
    day: new Date(now).toISOString().slice(0, 10),
    owner: 'local',
    tool: bad,
    provider: bad,
    model: wide,
    usage,
    calls: 1,
    unpriced: 1,
    costUsd: 5,
    tries: { 0: { attempts: 1, failures: 1, ms: 1e300 } },
  },
];
const view = { path: bad, extent: bad, language: 'diff', text: `+${bad}\n-${bad}\n@@ ${wide}` };
async function* pieces() {
  yield bad;
}

const can = { vision: false, documents: false, search: false, thinking: false, caching: false, tools: false };
const providers: ProviderView[] = [
  {
    id: bad,
    title: bad,
    configured: true,
    local: true,
    endpoints: [bad, wide],
    models: 1,
    keys: {},
    can: Object.assign({ [bad]: true }, can),
    health: [
      {
        provider: bad,
        scope: 'model',
        model: bad,
        state: 'open',
        calls: 1,
        failures: 1,
        consecutive: 1,
        class: bad,
        since: Number.NaN,
      },
    ],
  },
  {
    id: 'b',
    title: bad,
    configured: false,
    local: false,
    setting: bad,
    endpoints: [],
    models: 0,
    can,
    keys: {},
    health: [],
  },
];

const run = `${id}-0123abcd`;
const diff = `--- a\n+++ b\n@@ -1 +1 @@\n-${bad}\n+${bad}\n+${wide}\n ${bad}`;
const question = { key: bad, message: `${bad}\n\n${diff}\n\n${bad}\n\n${bad}`, decisions: [bad, wide, bad] };
const asked = { isError: false, text: bad, thread: bad, question };

const data: DashboardData = {
  version: bad,
  segments: splitFences,
  of: () => ({
    calls: {
      list: () => [call, { ...call, endedAt: now, events: [...call.events, { at: now, event: ended }] }],
      find: reqId => (reqId === callId ? call : undefined),
      subscribe: () => undefined,
    },
    threads: {
      list: async () => [thread],
      search: async () => [{ thread, seq: 1, snippet: bad }],
      read: async () => thread,
      projects: async () => new Map([[id, `/w/${bad}`]]),
      file: async () => view,
      image: async () => undefined,
      export: async () => pieces(),
      change: { fork: async () => thread, remove: async () => undefined },
    },
    runs: {
      list: async () => [{ id: run, thread: id, call: bad, exchange: 'e1', since: 0 }],
      question: async () => asked,
      answer: async () => asked,
    },
    providers: async () => providers,
    tryProvider: async () => bad + wide,
    caches: async () => [
      { provider: bad, model: wide, thread: bad, tokens: 1, messages: 1, created: now, expires: now, files: [bad] },
    ],
    spend: async () => spend,
    saved: async () => 1,
  }),
};

let server: Server;
let browser: Browser;
let reader: OpenPage;
let url: string;

beforeAll(async () => {
  const clock = realClock();
  const caller = { name: bad, owner: 'local', permissions: { readOnly: false } };
  const dashboard = createDashboard({
    data,
    tokens: createTokens([]),
    identify: () => caller,
    clock,
    random: { uuid: () => 'one-secret', fraction: () => 0 },
    admit: () => undefined,
    onError: error => {
      throw error;
    },
  });
  server = createServer(async (incoming, outgoing) => {
    const request = toRequest(incoming, outgoing, new URL(incoming.url ?? '', 'http://localhost'));
    const response = await dashboard({ request, caller, address: undefined, cutBy() {} });
    await writeResponse(response ?? new Response(null, { status: 404 }), outgoing, { clock, stallMs: 5_000 });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await startBrowser();
  reader = await openPage(browser, `${url}/spend`, { width: 360, colorScheme: 'light' });
});
afterAll(async () => {
  await browser?.close();
  server?.closeAllConnections();
  await new Promise(resolve => server?.close(resolve));
});

const pages = {
  live: '/',
  call: `/calls/${callId}`,
  threads: '/threads',
  found: `/threads?q=${encodeURIComponent(bad.replace('\ud800', ''))}`,
  thread: `/threads/${id}`,
  turn: `/threads/${id}/turns/2`,
  file: `/threads/${id}/turns/1/files/0`,
  run: `/runs/${run}`,
  verdicts: `/threads/${id}/verdicts`,
  providers: '/providers',
  spend: '/spend?by=tool',
  problem: `/threads/${id}/turns/9`,
};

describe('what others wrote', () => {
  it.each(Object.entries(pages))('is text and nothing else on the page %s', async (name, path) => {
    const { page, requests, faults } = reader;
    faults.length = 0;
    // A very long turn takes the browser of a busy machine long.
    await page.goto(`${url}${path}`, { timeout: 110_000 });
    await page.waitForTimeout(name === 'live' || name === 'call' ? 400 : 50);
    const found = await page.evaluate<Record<string, unknown>>(`({
      ran: window.ran,
      strange: [...document.querySelectorAll('img, iframe, object, style, base, [onload], [onerror], [style]')].length,
      scripts: document.scripts.length,
      links: [...document.querySelectorAll('[href]')].map(each => each.href).filter(each => !each.startsWith(location.origin)),
      raw: /[\\u202a-\\u202e\\u2066-\\u2069\\u200f]/.test([...document.querySelectorAll('h1, h2, h3, td, dd, a, title, .stage')].map(each => each.textContent).join('')),
      wide: document.scrollingElement.scrollWidth,
    })`);
    const links = found.links as string[];
    expect(found).toMatchObject({ strange: 0, scripts: 1, raw: false });
    expect(found.ran).toBeUndefined();
    expect(found.wide).toBeLessThanOrEqual(360);
    expect(links.filter(each => !/^https?:\/\/(good|space)\.test\//.test(each))).toEqual([]);
    expect(requests.filter(each => !each.startsWith(url))).toEqual([]);
    // A missing page is told by the browser itself.
    expect(name === 'problem' ? [] : faults).toEqual([]);
  });

  it('is cut where it is very long, with the way to the rest', async () => {
    const text = await (await fetch(`${url}/threads/${id}`)).text();
    expect(text.length).toBeLessThan(200_000);
    expect(text).toContain(`<a href="/threads/${id}/turns/2">Show all of it</a>`);
    expect((await (await fetch(`${url}/threads/${id}/turns/2`)).text()).length).toBeGreaterThan(wide.length);
    for (const path of ['/', `/calls/${callId}`, '/providers', '/spend', `/threads/${id}/verdicts`])
      expect((await (await fetch(`${url}${path}`)).text()).length, path).toBeLessThan(120_000);
  });

  it('stays in its file when it is exported', async () => {
    const response = await fetch(`${url}/threads/${id}/export?format=html`);
    expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'.*sandbox/);
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="thread-11111111.html"');
  });
});
