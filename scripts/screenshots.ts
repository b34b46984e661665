import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { openPage, startBrowser } from '../test/support/browser.ts';
import { liveThrough, models, startDashboardWorld, tokens } from '../test/support/dashboard-world.ts';

// Writes the pictures of the dashboard in docs/images/: real pages over real calls, with fake vendors.

const folder = process.argv[2] ?? join(import.meta.dirname, '..', 'docs', 'images');
const mostBytes = 150 * 1024;

const world = await startDashboardWorld();
const browser = await startBrowser();
try {
  const { cart, panel } = await liveThrough(world);
  world.vendors.google.script({ answer: 'A long answer. '.repeat(40), delayMs: 120_000 });
  const gone = new AbortController();
  const running = world.polylogue.call(
    'thinkdeep',
    {
      step: 'Could the two writers of the session table ever deadlock?',
      step_number: 1,
      total_steps: 1,
      next_step_required: false,
      findings: 'Both take the file lock first.',
      model: models.google,
    },
    { owner: 'alice', signal: gone.signal },
  );
  await new Promise(resolve => setTimeout(resolve, 1_500));
  const shots: [name: string, path: string, width: number, look: 'light' | 'dark'][] = [
    ['live', '/', 1280, 'light'],
    ['live-dark', '/', 1280, 'dark'],
    ['live-narrow', '/', 360, 'dark'],
    ['threads', '/threads', 1280, 'light'],
    ['thread', `/threads/${cart}`, 1280, 'light'],
    ['thread-narrow', `/threads/${cart}`, 360, 'light'],
    ['consensus', `/threads/${panel}/verdicts`, 1280, 'dark'],
    ['providers', '/providers', 1280, 'light'],
    ['spend', '/spend', 1280, 'light'],
    ['spend-dark', '/spend', 1280, 'dark'],
  ];
  for (const [name, path, width, look] of shots) await shoot(name, path, width, look);
  const [call] = await ids();
  if (call) await shoot('call', call, 1280, 'light');
  await shoot('login', '/login', 1280, 'light', false);
  gone.abort();
  await running;
} finally {
  await browser.close();
  await world.close();
}

async function signIn(page: Page): Promise<void> {
  const isIn = (await page.locator('input[name=token]').count()) === 0;
  if (isIn) return;
  await page.fill('input[name=token]', tokens.alice);
  await Promise.all([page.waitForURL(url => !url.pathname.startsWith('/login')), page.click('button.main')]);
}

async function shoot(name: string, path: string, width: number, colorScheme: 'light' | 'dark', signed = true) {
  const height = width < 500 ? 700 : 760;
  const { page, close } = await openPage(browser, `${world.daemon.url}${path}`, { width, height, colorScheme });
  if (signed) await signIn(page);
  await page.waitForTimeout(600);
  const file = join(folder, `dashboard-${name}.png`);
  await page.screenshot({ path: file, fullPage: true, clip: await clipOf(page, width) });
  await close();
  const { size } = await stat(file);
  console.log(`${file} ${Math.round(size / 1024)} KiB`);
  if (size > mostBytes) throw new Error(`${file} is larger than ${mostBytes} bytes`);
}

async function clipOf(page: Page, width: number) {
  const height = Number(await page.evaluate('document.documentElement.scrollHeight'));
  return { x: 0, y: 0, width, height: Math.min(height, width < 500 ? 1_000 : 740) };
}

async function ids(): Promise<string[]> {
  const { page, close } = await openPage(browser, `${world.daemon.url}/`, { width: 1280, colorScheme: 'light' });
  await signIn(page);
  const found = await page.locator('td a').evaluateAll(links => links.map(link => String(link.getAttribute('href'))));
  const rows = await page.locator('tbody tr').allInnerTexts();
  await close();
  const at = rows.findIndex(row => row.includes('consensus'));
  return found.slice(Math.max(0, at), at + 1);
}
