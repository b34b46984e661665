import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { routes } from '../../../src/server/dashboard/routes.ts';
import { graveFaults, signIn as signInAt, startBrowser } from '../../support/browser.ts';
import { type DashboardWorld, pagesOf, startDashboardWorld, tokens } from '../../support/dashboard-world.ts';

let world: DashboardWorld;
let browser: Browser;
let paths: Record<string, string>;
/** The cookie of somebody who signed in. */
let storageState: Awaited<ReturnType<BrowserContext['storageState']>> | undefined;

beforeAll(async () => {
  [world, browser] = await Promise.all([startDashboardWorld(), startBrowser()]);
  paths = await pagesOf(world);
  const { context, page } = await open({ width: 1280, colorScheme: 'light' }, false);
  await signIn(page);
  storageState = await context.storageState();
  await context.close();
});
afterAll(async () => {
  await browser?.close();
  await world?.close();
});

interface Look {
  width: number;
  colorScheme: 'light' | 'dark';
}

interface Watched {
  context: BrowserContext;
  page: Page;
  /** Loads from elsewhere, and what went wrong. */
  strangers: string[];
  faults: string[];
}

/** Of somebody who has signed in, unless it is told otherwise. */
async function open({ width, colorScheme }: Look, isIn = true): Promise<Watched> {
  const viewport = { width, height: 800 };
  const context = await browser.newContext({ viewport, colorScheme, ...(isIn && { storageState }) });
  // Shorter than a test may take, so that a failure tells what was waited for.
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const strangers: string[] = [];
  const faults: string[] = [];
  page.on('request', request => {
    if (!request.url().startsWith(world.daemon.url)) strangers.push(request.url());
  });
  page.on('pageerror', error => faults.push(error.message));
  page.on('console', message => {
    if (message.type() === 'error') faults.push(message.text());
  });
  return { context, page, strangers, faults };
}

const signIn = (page: Page) => signInAt(page, `${world.daemon.url}/`, tokens.alice);
const go = (page: Page, path: string) => page.goto(`${world.daemon.url}${path}`);

/** Cells that are wider than what shows of them, or that nothing names. */
const cutCells = `[...document.querySelectorAll('.scroll, td:not(.none)')].filter(each => each.scrollWidth > each.clientWidth + 1
  || (each.tagName === 'TD' && (getComputedStyle(each).display !== 'grid' || !each.dataset.label))).map(each => each.outerHTML.slice(0, 160))`;

/** Addresses that are no pages: streams of parts of them, and files. */
const noPages = /live|export|images|csv/;

it('every page that there is stands in the list of those that are looked at, with something on it', async () => {
  const pages = routes.filter(({ method, path }) => method === 'GET' && !noPages.test(path.source));
  expect(pages.length).toBeGreaterThan(12);
  const seen = Object.values(paths).map(path => new URL(path, world.daemon.url).pathname);
  expect(pages.filter(({ path }) => !seen.some(each => path.test(each))).map(({ path }) => path.source)).toEqual([]);
  for (const [name, path] of Object.entries(paths)) {
    const headers = { authorization: `Bearer ${tokens.alice}` };
    const answer = await fetch(`${world.daemon.url}${path}`, { headers });
    expect([name, answer.status]).toEqual([name, name === 'nothing' ? 404 : 200]);
    if (name !== 'nothing')
      expect(await answer.text(), name).not.toMatch(/No (?:matching|matches|calls yet|threads yet|spend|turns on)/);
  }
});

const looks: readonly Look[] = [
  { width: 1400, colorScheme: 'light' },
  { width: 1400, colorScheme: 'dark' },
  { width: 400, colorScheme: 'light' },
  { width: 400, colorScheme: 'dark' },
];

/** What is wrong with the page that is open, at each width and in light and dark; empty where nothing is. */
async function faultsOf(page: Page): Promise<Record<string, unknown>> {
  const wrong: Record<string, unknown> = {};
  for (const { width, colorScheme } of looks) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    const grave = await graveFaults(page, colorScheme === 'dark' ? 'colors' : undefined);
    const scrolls = await page.evaluate<number>('document.scrollingElement.scrollWidth');
    // On a telephone nothing is cut: what stands in tables stands in cards that fit, each cell with its name.
    const cut = width < 640 ? await page.evaluate<string[]>(cutCells) : [];
    const paper = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    const [red = 0] = (/\d+/.exec(paper) ?? []).map(Number);
    if (grave.length > 0 || scrolls > width || cut.length > 0 || red > 128 !== (colorScheme === 'light'))
      wrong[`${width} ${colorScheme}`] = { grave, scrolls, cut, paper };
  }
  return wrong;
}

it('each page can be used by everybody in every look, fits, loads nothing from elsewhere and fails at nothing', async () => {
  const { context, page, strangers, faults } = await open({ width: 400, colorScheme: 'light' }, false);
  await go(page, '/login');
  expect(await faultsOf(page), 'login').toEqual({});
  await signIn(page);
  for (const [name, path] of Object.entries(paths)) {
    await go(page, path);
    expect(await faultsOf(page), name).toEqual({});
  }
  expect(strangers).toEqual([]);
  // The missing page is told by the browser itself.
  expect(faults.filter(fault => !fault.includes('404'))).toEqual([]);
  await context.close();
}, 120_000);

describe('in a browser', () => {
  it('the keyboard reaches everything that can be used, in the order in which it stands', async () => {
    const { context, page } = await open({ width: 1280, colorScheme: 'light' });
    for (const [name, path] of Object.entries(paths)) {
      await go(page, path);
      // The first picture replaces what was there.
      if (name === 'live') await page.locator('[data-connection=on]').waitFor();
      const all = await page.evaluate<number>(`(() => {
        const usable = [...document.querySelectorAll('a[href], button, select, input:not([type=hidden]), summary, [tabindex="0"]')]
          .filter(each => each.checkVisibility());
        usable.forEach((each, index) => { each.dataset.stop = String(index); });
        window.stops = [];
        document.addEventListener('focusin', ({ target }) => window.stops.push(Number(target.dataset.stop ?? '-1')));
        return usable.length;
      })()`);
      for (let press = 0; press < all; press++) await page.keyboard.press('Tab');
      expect(await page.evaluate('window.stops'), name).toEqual(Array.from({ length: all }, (_, index) => index));
      if (name === 'live')
        expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
    }
    await context.close();
  }, 120_000);

  it('the live page follows a call by itself, and keeps the focus while it does', async () => {
    const { context, page, faults } = await open({ width: 1280, colorScheme: 'light' });
    await go(page, '/');
    await page.locator('[data-connection=on]').waitFor();
    const call = world.begin('How long?');
    const card = page.locator('article.call');
    await card.getByText('asking google:gemini-2.5-flash').waitFor();
    await card.locator('h3 a').focus();
    const href = await card.locator('h3 a').getAttribute('href');
    await expect.poll(() => card.locator('[data-elapsed]').innerText()).toMatch(/^0:\d\d$/);
    await call.cancel();
    await page.getByText('No calls running').waitFor();
    expect(await page.evaluate('document.activeElement.getAttribute("href")')).toBe(href);
    expect(await page.locator('tbody tr').first().innerText()).toMatch(/chat\s+How long\?[\s\S]*!\s+cancelled/);
    expect(faults).toEqual([]);
    await context.close();
  });

  it('the page of a running call ends by itself', async () => {
    const { context, page, faults } = await open({ width: 1280, colorScheme: 'light' });
    await go(page, '/');
    const call = world.begin('And now?');
    await page.locator('article.call h3 a').click();
    await page.locator('[data-connection=on]').waitFor();
    await call.cancel();
    await page.getByText('complete', { exact: true }).waitFor();
    expect(await page.locator('.steps').innerText()).toContain('Ended: ');
    expect(faults).toEqual([]);
    await context.close();
  });

  it('a thread is found by "/", read, forked and deleted without a mouse', async () => {
    const { context, page, faults } = await open({ width: 1280, colorScheme: 'light' });
    await go(page, '/threads');
    await page.keyboard.press('/');
    await page.keyboard.type('refactoring cart');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=refactoring/);
    await page.locator('.threads h2 a').first().press('Enter');
    await page.getByRole('button', { name: 'Fork from here, turn 2' }).press('Enter');
    await page.getByText('Forked from').waitFor();
    const fork = page.url();
    await page.locator('summary', { hasText: 'Delete' }).press('Enter');
    const remove = page.getByRole('button', { name: 'Delete this thread' });
    await remove.press('Enter');
    expect(page.url(), 'the browser wants the tick first').toBe(fork);
    await page.getByRole('checkbox').press('Space');
    await remove.press('Enter');
    await page.waitForURL(/\/threads$/);
    expect(faults).toEqual([]);
    await context.close();
  });

  it('times are those of the reader, with UTC in their title; "/", "j" and "k" lead to the search and through lists', async () => {
    const context = await browser.newContext({ timezoneId: 'Asia/Kolkata', locale: 'en-GB', storageState });
    const page = await context.newPage();
    await go(page, '/calls');
    const time = page.locator('tbody time').last();
    const utc = new Date((await time.getAttribute('datetime')) ?? '');
    const zone = { timeZone: 'Asia/Kolkata', hour: '2-digit', minute: '2-digit' } as const;
    expect(await time.innerText()).toContain(utc.toLocaleTimeString('en-GB', zone));
    expect(await time.getAttribute('title')).toBe(`${utc.toISOString().slice(0, 19).replace('T', ' ')} UTC`);
    const row = () =>
      page.evaluate(
        "[...document.querySelectorAll('tbody tr')].findIndex(each => each.contains(document.activeElement))",
      );
    for (const [key, at] of [
      ['j', 0],
      ['j', 1],
      ['k', 0],
      ['k', 0],
    ] as const) {
      await page.keyboard.press(key);
      expect(await row(), key).toBe(at);
    }
    await go(page, '/spend');
    await page.keyboard.press('/');
    await page.waitForURL(/\/threads#search$/);
    await page.locator('input[type=search]:focus').waitFor();
    await context.close();
  });

  it('colours are chosen, kept, and light where the system is dark', async () => {
    const { context, page } = await open({ width: 1280, colorScheme: 'dark' });
    await go(page, '/spend?days=7');
    await page.getByRole('button', { name: 'light' }).click();
    await page.getByRole('button', { name: 'light', pressed: true }).waitFor();
    expect(page.url()).toContain('/spend?days=7');
    await go(page, '/providers');
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(246, 247, 249)');
    expect(await page.getByRole('button', { name: 'light' }).getAttribute('aria-pressed')).toBe('true');
    await context.close();
  });

  it('nobody stays in who signed out', async () => {
    const { context, page } = await open({ width: 360, colorScheme: 'light' }, false);
    await signIn(page);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL(/\/login/);
    await go(page, '/threads');
    expect(page.url()).toContain('/login?back=%2Fthreads');
    await context.close();
  });
});
