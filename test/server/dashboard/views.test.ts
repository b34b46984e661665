import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { graveFaults, signIn, startBrowser } from '../../support/browser.ts';
import {
  type DashboardWorld,
  letAgentWork,
  liveThrough,
  models,
  startDashboardWorld,
  tokens,
} from '../../support/dashboard-world.ts';
import { testProduct } from '../../support/product.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let world: DashboardWorld;
let browser: Browser;
/** Of somebody who has signed in. */
let context: BrowserContext;
let ids: Awaited<ReturnType<typeof liveThrough>>;
let worked: Awaited<ReturnType<typeof letAgentWork>>;
let page: Page;

beforeAll(async () => {
  [world, browser] = await Promise.all([startDashboardWorld(), startBrowser()]);
  ids = await liveThrough(world);
  worked = await letAgentWork(world);
  const { google, anthropic } = world.vendors;
  google.script({ fault: 'status', status: 503 }, { answer: 'Of two, the second.' });
  await world.call('chat', { prompt: 'Which of two answers?', model: models.google });
  anthropic.byDefault({ fault: 'status', status: 503 });
  await world.call('chat', { prompt: 'Who stands in?', model: models.anthropic, allow_fallback: true });
  anthropic.byDefault({});
  context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  context.setDefaultTimeout(60_000);
  const first = await context.newPage();
  await signIn(first, `${world.daemon.url}/`, tokens.alice);
  await first.close();
});
beforeEach(async () => {
  page = await context.newPage();
  await go('/');
});
afterEach(() => page.close());
afterAll(async () => {
  await browser?.close();
  await world?.close();
});

const go = (path: string) => page.goto(`${world.daemon.url}${path}`);
const text = async (of: Locator) => (await of.innerText()).replaceAll(/\s+/g, ' ');
const rowOf = (words: string) => page.locator('tbody tr', { hasText: words }).first();
const boxes = async (all: Locator) =>
  Promise.all((await all.all()).map(async each => (await each.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }));

describe('calls', () => {
  it('are told apart by question, project and thread, and each opens with its question, answer and attempts', async () => {
    const row = rowOf('Which of two answers?');
    expect(await text(row)).toMatch(
      new RegExp(`chat Which of two answers\\? ${basename(world.project.root)} · thread ✓ done`),
    );
    await row.getByRole('link', { name: 'thread' }).click();
    await page.getByRole('heading', { level: 1, name: 'Which of two answers?' }).waitFor();
    await page.goBack();
    await row.getByRole('link', { name: 'chat' }).click();
    expect(await text(page.getByRole('region', { name: 'Question' }))).toContain('Which of two answers?');
    expect(await text(page.getByRole('region', { name: 'Answer' }))).toContain('Of two, the second.');
    const attempts = page.locator('.steps li', { hasText: /Attempt \d/ });
    expect((await attempts.allInnerTexts()).map(each => each.replaceAll(/\s+/g, ' '))).toEqual([
      expect.stringMatching(/Attempt 1: google:gemini-2\.5-flash ✕ retry .*bad_upstream · HTTP 503/),
      expect.stringMatching(/Attempt 2: google:gemini-2\.5-flash ✓ ok .* in, \d+ out · \$0\.\d+/),
    ]);
    for (const bar of await boxes(attempts.locator('svg'))) expect(bar.width).toBeGreaterThan(100);
  });

  it('say in words how they ended', async () => {
    await go('/calls');
    for (const [question, outcome] of [
      ['Which of two answers?', /✓ done/],
      ['Who stands in?', /! fell back \(to \w+:/],
      ['Rename the column in row 9.', /! needs approval/],
      ['Which HTTP status fits a lost lease?', /✕ failed \(\w+ ?\w*, openai\)/],
    ] as const)
      expect(await text(rowOf(question)), question).toMatch(outcome);
    // The call that brings the answer of the user is about the same task.
    expect(await page.locator('tbody tr', { hasText: 'Give row 7 its name.' }).count()).toBe(2);
  });

  it('are a call to act with the command to run, where no provider is set up', async () => {
    const bare = await testProduct({ root: world.project.root });
    const daemon = await bare.product.openDaemon({ host: '127.0.0.1', port: 0 });
    await page.goto(daemon.url);
    expect(await text(page.locator('.notice.bad'))).toMatch(
      /No provider is set up, so no model can answer\. .*export GEMINI_API_KEY=.* polylogue doctor .*polylogue serve/,
    );
    expect(await text(page.locator('.tiles'))).toContain('none is set up');
    await daemon.close();
    await bare.close();
  });

  it('are found by tool, model, project, outcome and words, and reached to the oldest of 500 and behind them', async () => {
    for (let call = 0; call < 500; call++) await world.call('version', {});
    await go('/calls');
    const seen = new Set<string>();
    for (let pages = 1; ; pages++) {
      const links = "[...document.querySelectorAll('tbody td:nth-child(2) a')].map(each => each.getAttribute('href'))";
      for (const link of await page.evaluate<string[]>(links)) seen.add(link);
      await page.getByRole('link', { name: 'Older', exact: true }).click();
      if ((await page.getByRole('heading', { level: 2 }).innerText()).startsWith('Older calls')) break;
      expect(pages).toBeLessThan(18);
    }
    expect(seen.size).toBe(500);
    for (const width of [400, 1400])
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme });
        expect(
          await graveFaults(page, colorScheme === 'dark' ? 'colors' : undefined),
          `${width} ${colorScheme}`,
        ).toEqual([]);
        expect(await page.evaluate('document.scrollingElement.scrollWidth')).toBeLessThanOrEqual(width);
      }
    const older = await page.locator('tbody tr').allInnerTexts();
    expect(older.join(' ')).toContain('Why is the cart empty');
    await page.locator('tbody a[href*="/turns/1/call"]', { hasText: 'chat' }).last().click();
    expect(await text(page.locator('main'))).toMatch(/Outcome ✓ done .*Question .*Answer .*Attempt 1: /);
    for (const [field, words, shown, hidden] of [
      ['tool', 'consensus', /Should the session table/, /chat/],
      ['model', 'anthropic', /Is this right now\?/, /How does this module/],
      ['project', basename(world.project.root), /Why is the cart/, /No matching/],
      ['project', 'elsewhere', /No matching calls/, /Why is the cart/],
      ['outcome', 'failed', /lost lease/, /✓ done/],
      ['q', 'session refactoring', /Why is the cart/, /UNIQUE/],
    ] as const) {
      await go('/calls?before=99999999999999');
      const input = page.locator(`[name=${field}]`);
      await (field === 'outcome' ? input.selectOption(words) : input.fill(words));
      await Promise.all([page.waitForURL(/\?q=/), page.getByRole('button', { name: 'Search' }).click()]);
      await go(`${new URL(page.url()).pathname}${new URL(page.url()).search}&before=99999999999999`);
      const found = await text(page.locator('main section'));
      expect(found, `${field} ${words}`).toMatch(shown);
      expect(found, `${field} ${words}`).not.toMatch(hidden);
    }
  }, 120_000);
});

it('providers show latency and errors over hours and days, the next try and the list’s age, and are tried by a button', async () => {
  // What failed before is paused for half a minute, which may be over by now: failing once more, it is paused anew.
  world.vendors.openai.byDefault({ fault: 'status', status: 503 });
  await world.call('chat', {
    prompt: 'Which HTTP status fits a lost lease?',
    model: models.openai,
    allow_fallback: false,
  });
  world.vendors.openai.byDefault({});
  await go('/providers');
  const openai = page.locator('article', { hasText: 'gpt-5-mini' });
  const charts = openai.getByRole('img');
  const names = await Promise.all((await charts.all()).map(each => each.getAttribute('aria-label')));
  for (const name of ['Latency, last 24 h', 'Errors, last 24 h', 'Latency, last 7 days', 'Errors, last 7 days'])
    expect(names.join('\n')).toContain(name);
  const bars = await boxes(openai.locator('svg rect.c'));
  expect(bars.some(({ height }) => height > 5)).toBe(true);
  expect(await text(openai)).toMatch(/gpt-5-mini ✕ paused .*next try at \S.* in \d+ (?:s|min)/);
  expect(await openai.locator('time').last().getAttribute('title')).toMatch(/ UTC$/);
  const own = await startOpenAi({ models: [{ id: 'small', window: 16_000 }] });
  const env = { CUSTOM_API_URL: own.url, CUSTOM_API_KEY: 'test-key', CUSTOM_MODEL_NAME: 'small' };
  const product = await testProduct({ root: world.project.root, env });
  const daemon = await product.product.openDaemon({ host: '127.0.0.1', port: 0 });
  await page.goto(`${daemon.url}/providers`);
  await page.getByRole('button', { name: /^Try now: / }).click();
  expect(await text(page.getByRole('status'))).toMatch(/✓ answered with 1 models?, after \d+ ms/);
  expect(await text(page.locator('main'))).toMatch(/Models 1, listed (just now|\d+ s ago)/);
  await daemon.close();
  await product.close();
  await own.close();
});

it('spend shows the month to its end, what caches saved, projects and the ten dearest calls, and is exported', async () => {
  await go('/spend');
  expect(await text(page.locator('main'))).toMatch(
    /This month \$0\.\d+ so far(?:, about \$0\.\d+ at its end)? Caches (saved|cost) \$0\.\d+/,
  );
  const dearest = page.getByRole('region', { name: /dearest/i }).locator('tbody tr');
  expect(await dearest.count()).toBe(10);
  await dearest.first().getByRole('link').first().click();
  await page.getByRole('region', { name: 'Question' }).waitFor();
  await page.goBack();
  await page.getByRole('group', { name: /by/i }).getByRole('link', { name: 'project' }).click();
  expect(await text(page.locator('main'))).toMatch(new RegExp(`Project Cost .*${basename(world.project.root)} ~?\\$0`));
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export as CSV' }).click(),
  ]);
  expect(file.suggestedFilename()).toBe('polylogue-spend-30-days.csv');
  const [head, ...rows] = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
  expect(head).toContain('day,provider,model,tool,project,thread');
  expect(rows.length).toBeGreaterThan(20);
});

describe('threads', () => {
  it('show the words that were searched, a change side by side, and verdicts beside each other', async () => {
    await go('/threads');
    await page.keyboard.press('/');
    await page.keyboard.type('refactoring cart');
    await Promise.all([page.waitForURL(/q=/), page.keyboard.press('Enter')]);
    const hit = page.locator('.snippet mark').first();
    expect(await hit.innerText()).toMatch(/cart|refactoring/i);
    const plain = await page.evaluate('getComputedStyle(document.body).backgroundColor');
    expect(
      await hit.evaluate('(each => getComputedStyle(each).backgroundColor)(document.querySelector("mark"))'),
    ).not.toBe(plain);
    await page.locator('.snippet a').first().click();
    await page.locator('.said mark').first().waitFor();
    await go(`/threads/${ids.cart}`);
    const pair = page.locator('.pair', { hasText: 'sessionKey' }).last();
    const [cut, added] = await boxes(pair.locator('.cut, .add'));
    expect([added?.y, added!.x > cut!.x]).toEqual([cut?.y, true]);
    await go(`/threads/${ids.panel}`);
    await page.getByRole('link', { name: 'Compare verdicts' }).first().click();
    const verdicts = await boxes(page.locator('.verdict'));
    expect(verdicts.map(({ y }) => y)).toEqual(verdicts.map(() => verdicts[0]?.y));
    expect(new Set(verdicts.map(({ x }) => x)).size).toBe(3);
  });

  it('show a run of the agent with what the user decided', async () => {
    await go(`/threads/${worked.thread}`);
    const calls = page.getByRole('list', { name: 'Tool calls' }).getByRole('listitem');
    expect((await calls.allInnerTexts()).map(each => each.replaceAll(/\s+/g, ' '))).toEqual([
      expect.stringMatching(/^✓ ok read_file \{"path":"src\/session\.ts"\}/),
      expect.stringMatching(/^✓ ok write_file you decided: allow \{"path"/),
    ]);
  });

  it('are forked and both branches compared, beside each other', async () => {
    await go(`/threads/${ids.cart}`);
    await page.getByRole('button', { name: 'Fork from here, turn 2' }).click();
    await page.getByText('Forked from').waitFor();
    const [, , fork] = new URL(page.url()).pathname.split('/');
    world.vendors.anthropic.script({ answer: 'Another way: keep it in a cookie.' });
    await world.call('chat', { prompt: 'What else?', model: models.anthropic, continuation_id: fork });
    await page.reload();
    await page.getByRole('link', { name: 'compare' }).click();
    const [mine, other] = await page.locator('main section').all();
    expect(await text(mine!)).toMatch(/What else\?.*in a cookie/);
    expect(await text(other!)).toMatch(/Is this right now\?/);
    const [left, right] = await boxes(page.locator('main section'));
    expect([right?.y, right!.x > left!.x]).toEqual([left?.y, true]);
  });
});
