import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type Browser, chromium, type Page } from 'playwright-core';

/** Debian's Chromium; `scripts/test-needs.ts` sees to it. The sandbox of the system is not there for root in containers. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
}

export interface OpenPage {
  page: Page;
  /** Addresses that the page asked for, its own first. */
  requests: string[];
  /** What went wrong in it: errors of scripts, refused loads, whatever it wrote to its console as an error. */
  faults: string[];
  close(): Promise<void>;
}

export interface PageLook {
  width: number;
  height?: number;
  colorScheme: 'light' | 'dark';
}

/** Opens an address in a profile of its own and watches what it does. */
export async function openPage(browser: Browser, address: string, look: PageLook): Promise<OpenPage> {
  const { width, height = 800, colorScheme } = look;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  const requests: string[] = [];
  const faults: string[] = [];
  page.on('request', request => requests.push(request.url()));
  page.on('pageerror', error => faults.push(error.message));
  page.on('console', message => {
    if (message.type() === 'error') faults.push(message.text());
  });
  await page.goto(address, { waitUntil: 'load' });
  return { page, requests, faults, close: () => context.close() };
}

/** Signs in to the dashboard by its own page, and comes to the address that was asked for. */
export async function signIn(page: Page, address: string, token: string): Promise<void> {
  await page.goto(address);
  // The page itself puts the caret there, on a slow machine some time after it has loaded; keys before that go nowhere.
  await page.locator('#token:focus').waitFor();
  await page.keyboard.type(token);
  await Promise.all([page.waitForURL(url => url.pathname !== '/login'), page.keyboard.press('Enter')]);
}

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** The rules of axe that look at colors: all that a page in other colors can break. */
const ofColors = ['color-contrast', 'link-in-text-block'];

/** What axe finds that keeps somebody out; `colors`: by its rules of colors alone, where the others looked at the same page before. */
export async function graveFaults(page: Page, only?: 'colors'): Promise<string[]> {
  const isThere = await page.evaluate('typeof axe === "object"');
  if (!isThere) await page.evaluate(await readFile(axe, 'utf8'));
  const options = { resultTypes: ['violations'], ...(only && { runOnly: ofColors }) };
  const found = await page.evaluate<{ id: string; impact: string; nodes: { html: string }[] }[]>(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html }) => ({ html })) })))`,
  );
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
}
