import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FileRecord } from '../../src/core/file.ts';
import { hashOf, start } from '../contracts/store-fixtures.ts';
import { openPage, startBrowser } from '../support/browser.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { here, transferRig } from '../threads/transfer/transfer-rig.ts';

const attack = '<img src=x onerror="window.ran = 1"><script>window.ran = 2</script>';
const longLine = `const wide = '${'x'.repeat(400)}';\n`;

let browser: Browser;
let project: TempProject;
let address: string;

/** Six turns with code, files, citations and markup that must stay text. */
async function threadPage(): Promise<string> {
  const rig = transferRig();
  const sha = hashOf(longLine);
  const file: FileRecord = {
    path: '/p/wide.ts',
    form: 'full',
    size: longLine.length,
    mtimeMs: 1,
    lines: 1,
    sha256: sha,
    base: sha,
  };
  let thread = { ...rig.threads.start(here, 'debug'), title: `Why is the cart empty? ${attack}` };
  for (let round = 0; round < 3; round++) {
    const exchange = rig.threads.newExchange();
    const common = { exchange, timestamp: start + round * 60_000, toolName: 'debug', images: [], tokens: 9 };
    const seq = round * 2 + 1;
    const ask = { ...common, seq, role: 'user' as const, content: `Round ${round + 1} ${attack}`, citations: [] };
    const answer = `It loops:\n\n\`\`\`ts\nfor (const n of cart) use(n);\n\`\`\`\n${attack}`;
    const citations = [{ title: 'The manual', url: 'https://docs.example/cart', provider: 'openai' }];
    const reply = { ...common, seq: seq + 1, role: 'assistant' as const, content: answer, citations, files: [] };
    const who = { modelProvider: 'openai', modelName: 'gpt-5.2' };
    const turns = [
      { ...ask, files: round === 0 ? [file] : [] },
      { ...reply, ...who },
    ];
    thread = await rig.threads.add(thread, exchange, {
      turns,
      blobs: [{ sha256: sha, text: longLine }],
      status: 'done',
    });
  }
  return rig.exported(thread.id, 'html');
}

beforeAll(async () => {
  project = await tempProject({ 'thread.html': await threadPage() });
  address = pathToFileURL(project.path('thread.html')).href;
  browser = await startBrowser();
});

afterAll(async () => {
  await browser?.close();
  await project?.dispose();
});

describe('an exported thread in a browser', () => {
  it('shows all turns, loads nothing else and runs nothing', async () => {
    const { page, requests, faults, close } = await openPage(browser, address, { width: 1200, colorScheme: 'light' });
    expect(await page.locator('article').count()).toBe(6);
    expect(await page.locator('h1').innerText()).toContain('Why is the cart empty? <img');
    expect(await page.locator('article').nth(1).locator('pre').innerText()).toContain('for (const n of cart) use(n);');
    expect(await page.evaluate('window.ran')).toBeUndefined();
    expect(requests).toEqual([address]);
    expect(faults).toEqual([]);
    await close();
  });

  it('leads from its contents to each turn, and from a citation to its source without telling from where', async () => {
    const { page, close } = await openPage(browser, address, { width: 1200, height: 400, colorScheme: 'light' });
    await page.locator('nav a').nth(4).click();
    expect(await page.evaluate("document.querySelectorAll('article')[4].getBoundingClientRect().top")).toBeLessThan(
      400,
    );
    const source = page.locator('a[href="https://docs.example/cart"]').first();
    expect(await source.getAttribute('rel')).toMatch(/noreferrer/);
    await close();
  });

  it.each(['light', 'dark'] as const)('fits a telephone and can be read, in %s', async colorScheme => {
    const { page, close } = await openPage(browser, address, { width: 360, colorScheme });
    await page.locator('details summary').first().click();
    expect(await page.evaluate('document.scrollingElement.scrollWidth')).toBeLessThanOrEqual(360);
    const [ink = 0, paper = 0] = await page.evaluate<number[]>(`(() => {
      const { color, backgroundColor } = getComputedStyle(document.body);
      return [color, backgroundColor].map(each => Number(/[0-9]+/.exec(each)[0]));
    })()`);
    expect(Math.abs(ink - paper)).toBeGreaterThan(150);
    expect(ink < paper).toBe(colorScheme === 'light');
    await close();
  });
});
