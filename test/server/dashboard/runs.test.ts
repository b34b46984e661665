import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ToolReply } from '../../../src/core/tool-host.ts';
import type { Daemon } from '../../../src/server/daemon/daemon.ts';
import { signIn, startBrowser } from '../../support/browser.ts';
import { type DashboardClient, dashboardClient, readable } from '../../support/dashboard-client.ts';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const hostile = '<img src=x onerror="window.ran = 1">';
const tokens = ['alice', 'reader', 'denied', 'threadless', 'mallory'].map(name => ({
  name,
  token: `${name}-token-0123456789`,
  owner: name === 'mallory' ? name : 'alice',
  ...(name === 'reader' && { read_only: true }),
  ...(name === 'denied' && { deny: ['agent'] }),
  ...(name === 'threadless' && { deny: ['threads'] }),
}));
const as = (name: string) => dashboardClient(daemon.url, { token: `${name}-token-0123456789` });

let project: TempProject;
let vendor: FakeVendor;
let polylogue: TestProduct;
let daemon: Daemon;
let browser: Browser;
let alice: DashboardClient;

beforeAll(async () => {
  project = await tempProject({
    'a.txt': 'one\ntwo\nthree\n',
    'b.txt': 'before\n',
    'tokens.json': JSON.stringify({ tokens }),
  });
  [vendor, browser] = await Promise.all([startAnthropic(), startBrowser()]);
  const env = {
    ...vendorEnv({ anthropic: vendor.url }),
    POLYLOGUE_TOOLSETS: 'core,agent,ops',
    POLYLOGUE_TOKENS_FILE: project.path('tokens.json'),
    POLYLOGUE_REQUESTS_PER_MINUTE: '60000',
  };
  polylogue = await testProduct({ root: project.root, env });
  daemon = await polylogue.product.openDaemon({ host: '127.0.0.1', port: 0 });
  alice = as('alice');
});
afterAll(async () => {
  await browser?.close();
  await daemon?.close();
  await polylogue?.close();
  await Promise.all([vendor?.close(), project?.dispose()]);
});

const writing = (path: string, content: string) => ({ calls: [{ name: 'write_file', args: { path, content } }] });
const read = (path: string) => readFile(project.path(path), 'utf8');

/** A run of Alice's agent that comes to its first question; the address where it is answered. */
async function waitingRun(task = 'Write it.'): Promise<string> {
  const principal = { owner: 'alice', root: project.root };
  const args = { task, model: 'anthropic:claude-sonnet-4-5' };
  const request = { name: 'agent', arguments: args, principal, answers: new Map() };
  const reply: ToolReply = await polylogue.product.host.call(request, new AbortController().signal);
  return `/runs/${String(reply.document.run_id)}`;
}

async function open(path: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 400, height: 900 } });
  await signIn(page, `${daemon.url}${path}`, 'alice-token-0123456789');
  return page;
}

it('a task is done with its approvals answered in the browser, each with the diff of what it changes', async () => {
  vendor.script(writing('a.txt', `one\nTWO ${hostile}\nthree\n`), writing('c.txt', 'new\n'), {
    answer: 'All is written.',
  });
  const path = await waitingRun();
  const page = await open('/');
  await page.getByRole('link', { name: 'Look and decide' }).click();
  expect(new URL(page.url()).pathname).toBe(path);
  expect(await page.locator('.diff .cut').innerText()).toBe('-two');
  expect(await page.locator('.diff .add').innerText()).toBe(`+TWO ${hostile}`);
  await page.evaluate(axe);
  for (const [width, colorScheme] of [
    [400, 'light'],
    [400, 'dark'],
    [1400, 'light'],
    [1400, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    const grave =
      'axe.run().then(({ violations }) => violations.filter(({ impact }) => /serious|critical/.test(impact)).map(({ id }) => id))';
    expect(await page.evaluate(grave), `${width} ${colorScheme}`).toEqual([]);
    expect(await page.evaluate('document.scrollingElement.scrollWidth')).toBeLessThanOrEqual(width);
  }
  await page.getByRole('button', { name: 'allow', exact: true }).click();
  await page.getByText('c.txt').waitFor();
  expect(await read('a.txt')).toBe(`one\nTWO ${hostile}\nthree\n`);
  await page.getByRole('button', { name: 'allow', exact: true }).click();
  await page.getByText('All is written.').waitFor();
  expect(await read('c.txt')).toBe('new\n');
  expect(await page.evaluate('window.ran')).toBeUndefined();
  await page.goto(`${daemon.url}/`);
  expect(await page.getByText('Waits for you').count()).toBe(0);
  await page.close();
});

it('a failing test is mended by an agent whose patch and command are approved in the browser, and passes', async () => {
  const broken = 'export const add = (a, b) => a - b;\n';
  const test =
    "import { strictEqual } from 'node:assert';\nimport test from 'node:test';\nimport { add } from './sum.js';\ntest('adds', () => strictEqual(add(2, 3), 5));\n";
  await project.write('package.json', '{"name": "sum", "type": "module"}\n');
  await project.write('sum.js', broken);
  await project.write('sum.test.js', test);
  const passes = () => spawnSync(process.execPath, ['--test', 'sum.test.js'], { cwd: project.root }).status === 0;
  expect(passes()).toBe(false);
  const patch = `--- a/sum.js\n+++ b/sum.js\n@@ -1 +1 @@\n-${broken}+${broken.replace(' - ', ' + ')}`;
  vendor.script(
    { calls: [{ name: 'read_file', args: { path: 'sum.js' } }] },
    { calls: [{ name: 'apply_patch', args: { patch } }] },
    { calls: [{ name: 'run_command', args: { argv: ['node', '--test', 'sum.test.js'] } }] },
    {
      answer: ({ messages }) =>
        messages.some(({ text }) => text.includes('Exit code: 0')) ? 'The test passes.' : 'It still fails.',
    },
  );
  await waitingRun();
  const page = await open('/');
  await page.getByRole('link', { name: 'Look and decide' }).click();
  expect(await page.locator('.diff .add').innerText()).toContain('a + b');
  expect(await read('sum.js')).toBe(broken);
  await page.getByRole('button', { name: 'allow', exact: true }).click();
  await page.getByText('node --test sum.test.js').first().waitFor();
  expect(await read('sum.js')).toBe(broken.replace(' - ', ' + '));
  await page.getByRole('button', { name: 'allow', exact: true }).click();
  // A run that goes on for longer than a moment is followed on the live page.
  await page
    .getByText(/The test passes\.|Live calls/)
    .first()
    .waitFor();
  await page.goto(`${daemon.url}/calls?tool=agent`);
  await page.locator('tbody a').first().click();
  await page.getByText('The test passes.').waitFor();
  expect(await page.locator('.steps').innerText()).toMatch(/run_command/);
  expect(passes()).toBe(true);
  await page.close();
});

it('a refusal is told to the model, and an answer counts once, for the question that was shown', async () => {
  vendor.script(writing('b.txt', 'after\n'), { answer: 'Then not.' });
  const path = await waitingRun();
  const [, key = ''] = /name="key" value="([^"]+)"/.exec(await alice.page(path)) ?? [];
  const other = await alice.post(path, { key: `${key}9`, decision: 'allow' });
  expect(readable(await other.text())).toContain('An agent asks');
  expect(await read('b.txt')).toBe('before\n');
  const refused = await alice.post(path, { key, decision: 'refuse' });
  expect(readable(await refused.text())).toContain('Then not.');
  const again = await alice.post(path, { key, decision: 'allow' });
  expect([again.status, readable(await again.text())]).toEqual([409, expect.stringContaining('answered already')]);
  expect(await read('b.txt')).toBe('before\n');
});

it('nobody answers who could not have the agent work: another owner, a reader, who is denied it, a page of another site', async () => {
  vendor.script(writing('b.txt', 'after\n'));
  const path = await waitingRun();
  const [, key = ''] = /name="key" value="([^"]+)"/.exec(await alice.page(path)) ?? [];
  const fields = { key, decision: 'allow' };
  for (const [name, status] of [
    ['mallory', 409],
    ['reader', 403],
    ['denied', 403],
    ['threadless', 403],
  ] as const) {
    expect((await as(name).get(path)).status, name).toBe(status);
    expect((await as(name).post(path, fields)).status, name).toBe(status);
    expect(await as(name).page('/'), name).not.toContain('/runs/');
  }
  expect((await alice.post(path, fields, { csrf: 'forged' })).status).toBe(403);
  expect((await alice.post(path, fields, { headers: { origin: 'http://evil.test' } })).status).toBe(403);
  expect(await read('b.txt')).toBe('before\n');
  vendor.script(writing('b.txt', 'after\n'));
  await waitingRun('Mend the roof.');
  const live = readable(await alice.page('/'));
  for (const task of ['Write it.', 'Mend the roof.'])
    expect(live).toMatch(
      new RegExp(
        `The agent wants to use write_file\\s*; asked (?:just now|\\d+ s ago)\\s*\\. ${task} ?${basename(project.root)} · thread`,
      ),
    );
});
