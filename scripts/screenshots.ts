import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startBrowser } from '../test/support/browser.ts';
import { type DashboardWorld, models, pagesOf, startDashboardWorld, tokens } from '../test/support/dashboard-world.ts';

// Writes the pictures of the dashboard in docs/images/: real pages over real calls, with fake vendors. Each page once on a
// sheet with its four looks, some in full too. `node scripts/screenshots.ts FOLDER` writes elsewhere.

const folder = process.argv[2] ?? join(import.meta.dirname, '..', 'docs', 'images');
const mostBytes = 150 * 1024;

const looks = [
  { width: 1400, height: 800, colorScheme: 'light' },
  { width: 1400, height: 800, colorScheme: 'dark' },
  { width: 400, height: 800, colorScheme: 'light' },
  { width: 400, height: 800, colorScheme: 'dark' },
] as const;
/** Pages that are shown in full too, by the look. */
const large: Readonly<Record<string, number>> = {
  live: 0,
  run: 0,
  thread: 0,
  consensus: 1,
  providers: 0,
  spend: 1,
  call: 0,
};

const world = await startDashboardWorld();
const browser = await startBrowser();
try {
  const pages = { login: '/login', ...(await pagesOf(world)) };
  const running = beginSlowly(world);
  for (const [name, path] of Object.entries(pages)) {
    const shots: Buffer[] = [];
    for (const look of looks) shots.push(await shoot(path, look));
    await keep(`${name}-looks`, await sheet(shots));
    const full = shots[large[name] ?? -1];
    if (full) await keep(name, full);
  }
  running.stop();
  await running.ended;
} finally {
  await browser.close();
  await world.close();
}

/** A call that is under way for as long as pictures are taken. */
function beginSlowly({ polylogue, vendors }: DashboardWorld) {
  vendors.google.script({ delayMs: 300_000 });
  const gone = new AbortController();
  const ended = polylogue.call(
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
  return { ended, stop: () => gone.abort() };
}

async function shoot(path: string, { width, height, colorScheme }: (typeof looks)[number]): Promise<Buffer> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  await page.goto(`${world.daemon.url}${path}`);
  if (path !== '/login') await signIn(page);
  if (path === '/') await page.locator('[data-connection=on]').waitFor();
  await page.waitForTimeout(400);
  const picture = await page.screenshot();
  await context.close();
  return picture;
}

async function signIn(page: Page): Promise<void> {
  await page.fill('input[name=token]', tokens.alice);
  await Promise.all([page.waitForURL(url => url.pathname !== '/login'), page.click('button.main')]);
}

/** Pictures beside each other, as large as a file may be. */
async function sheet(shots: readonly Buffer[], height = 296): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: 1_400, height: 320 } });
  const images = shots.map(shot => `<img height="${height}" src="data:image/png;base64,${shot.toString('base64')}">`);
  await page.setContent(
    `<body style="margin:0;background:#868e99;display:flex;gap:12px;padding:12px;width:max-content">${images.join('')}</body>`,
  );
  const picture = await page.locator('body').screenshot();
  await page.close();
  return picture.length > mostBytes ? sheet(shots, height - 24) : picture;
}

async function keep(name: string, picture: Buffer): Promise<void> {
  const file = join(folder, `dashboard-${name}.png`);
  await writeFile(file, picture);
  console.log(`${file} ${Math.round(picture.length / 1024)} KiB`);
  if (picture.length > mostBytes) throw new Error(`${file} is larger than ${mostBytes} bytes`);
}
