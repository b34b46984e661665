import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Daemon } from '../../../src/server/daemon/daemon.ts';
import { exchangesOf } from '../../../src/server/dashboard/all-calls-page.ts';
import { callFacts } from '../../../src/server/dashboard/calls-page.ts';
import { type DashboardClient, dashboardClient, readable } from '../../support/dashboard-client.ts';
import { models } from '../../support/dashboard-world.ts';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';

let vendors: { google: FakeVendor; anthropic: FakeVendor };
let project: TempProject;
let product: TestProduct;
let daemon: Daemon;
let client: DashboardClient;

beforeAll(async () => {
  vendors = { google: await startGoogle(), anthropic: await startAnthropic() };
  const { google, anthropic } = vendors;
  project = await tempProject();
  const env = vendorEnv({ google: google.url, anthropic: anthropic.url });
  product = await testProduct({ root: project.root, env });
  google.script({ fault: 'status', status: 503 }, { answer: 'It does.' }, { fault: 'status', status: 400 });
  await product.call('chat', { prompt: 'Does it come back?', model: models.google });
  await product.call('chat', { prompt: 'Who is refused?', model: models.google });
  anthropic.script({ fault: 'status', status: 401 });
  const panel = [
    { model: models.google, stance: 'for' },
    { model: models.anthropic, stance: 'against' },
  ];
  await product.call('consensus', { prompt: 'Should we go on?', models: panel });
  await product.restart();
  daemon = await product.product.openDaemon({ host: '127.0.0.1', port: 0 });
  client = dashboardClient(daemon.url, {});
});
afterAll(async () => {
  await daemon?.close();
  await product?.close();
  await Promise.all([vendors.google.close(), vendors.anthropic.close(), project.dispose()]);
});

it.each([
  [
    'a call that was tried twice',
    'Does it come back',
    [
      /Outcome ✓ done .*Attempts 2 .*Cost \$0\.\d+/,
      /Question .*Does it come back\?.*Answer .*It does\./,
      /Attempt 1: google:gemini-2.5-flash ✕ retry [^+]*bad_upstream/,
      /Attempt 2: google:gemini-2.5-flash ✓ ok [^+]* in, \d+ out · \$0\.\d+/,
    ],
  ],
  [
    'a call that failed',
    'Who is refused',
    [
      /Outcome ✕ failed \(bad request, google\)/,
      /Question .*Who is refused\?/,
      /Attempt 1: google:\S+ ✕ failed .*bad_request/,
    ],
  ],
  [
    'a panel of which one failed',
    'Should we go on',
    [
      /Outcome ✓ done .*Attempts [2-9]/,
      /Attempt \d: google:gemini-2.5-flash ✓ ok [^+]*\$0\.\d+/,
      /Attempt \d: anthropic:claude-sonnet-4-5 ✕ failed [^+]*auth/,
    ],
  ],
])('the page of %s has question, answer and every attempt with vendor, class and cost', async (_name, text, shown) => {
  const list = await client.page('/calls');
  const rows = list.split('<tr').filter(row => row.includes(text));
  expect(rows).toHaveLength(1);
  const page = await client.page(/href="(\/threads\/[^"]+\/call)"/.exec(rows[0] ?? '')?.[1] ?? '');
  for (const each of shown) expect(readable(page)).toMatch(each);
  expect(page).not.toContain('data-live');
});

it('a failed exchange without an attempt names no error that there was not', () => {
  const turn = {
    seq: 1,
    exchange: 'e',
    role: 'user',
    content: 'Why?',
    timestamp: 1,
    toolName: 'chat',
    status: 'failed',
  } as const;
  const thread = { id: 't', owner: 'local', workspace: '/w', turns: [{ ...turn, files: [], images: [] }] };
  const [call] = exchangesOf(thread as never);
  expect(callFacts(call!, 2)).toMatchObject({ tone: 'bad', outcome: 'failed', why: '' });
});

it('charts of latency and errors go on where they were, and sums of spending count no attempt in vain', async () => {
  const page = await client.page('/providers');
  expect(page).toMatch(/aria-label="Errors, last 24 h\. 2 of 4 attempts/);
  expect(page).toMatch(/aria-label="Errors, last 7 days\. 1 of 1 attempt The highest: 1/);
  expect(readable(await client.page('/spend'))).toContain(' Model calls 2 ');
  expect(await client.page('/spend.csv')).not.toContain('anthropic');
});
