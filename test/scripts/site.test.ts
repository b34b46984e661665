import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { slug } from '../../scripts/doc-links/read-document.ts';
import { hosts } from '../../src/cli/init/hosts.ts';
import { providers } from '../../src/providers/index.gen.ts';
import { tools } from '../../src/tools/index.gen.ts';
import { graveFaults, openPage, startBrowser } from '../support/browser.ts';

const repository = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(repository, 'site', 'test');
const html = join(folder, 'html');
/** Bytes of a page with its styles and scripts, compressed by gzip as it is served, without images. */
const mostBytes = 200 * 1000;

const types: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
const fileOf = (address: string): string => {
  const path = address.replace(/[?#].*$/, '').replace(/\/$/, '/index');
  return join(html, extname(path) in types || path.startsWith('/images/') ? path : `${path}.html`);
};
const compressed = new Map<string, Buffer>();
const served = (address: string): Buffer => {
  const file = fileOf(address);
  const bytes = compressed.get(file) ?? gzipSync(readFileSync(file));
  compressed.set(file, bytes);
  return bytes;
};

let pages: Map<string, string>;
let server: Server;
let browser: Browser;
let origin: string;

beforeAll(async () => {
  // Without a network: nothing is fetched for the site to be built.
  const offline = ['--dev-bind', '/', '/', '--unshare-net', process.execPath, 'scripts/site.ts', folder];
  await promisify(execFile)('bwrap', offline, { cwd: repository });
  const files = readdirSync(html, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith('.html'));
  pages = new Map(
    files.map(path => [`/${path.replace(/(?:(?<![^/])index)?\.html$/, '')}`, readFileSync(join(html, path), 'utf8')]),
  );
  server = createServer(({ url = '/' }, response) => {
    const known = existsSync(fileOf(url));
    const type = types[extname(fileOf(url))] ?? 'image/png';
    response.writeHead(known ? 200 : 404, { 'content-type': type, 'content-encoding': 'gzip' });
    response.end(known ? served(url) : gzipSync(''));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`;
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

const attributes = (text: string, name: string) =>
  [...text.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(([, value = '']) => value);

describe('the documentation site', () => {
  it('has a page for each tool, provider, host, group of options and code of an error', () => {
    const headings = (page: string) =>
      [...readFileSync(join(repository, 'docs', page), 'utf8').matchAll(/^## (.*)$/gm)].map(([, title = '']) =>
        slug(title),
      );
    const expected = [
      ...tools.filter(({ tier }) => tier !== 'internal').map(({ name }) => `/reference/tools/${name}`),
      ...providers.map(({ title }) => `/reference/providers/${slug(title)}`),
      ...hosts.map(({ name }) => `/hosts/${name}`),
      ...headings('reference/options.md').map(group => `/reference/options/${group}`),
      ...headings('troubleshooting.md').map(code => `/errors/${code}`),
    ];
    expect(expected.length).toBeGreaterThan(90);
    expect(expected.filter(address => !pages.has(address))).toEqual([]);
  });

  it('has no link to a page or a heading that is not there', () => {
    const broken = [...pages].flatMap(([page, text]) =>
      attributes(text, 'href')
        .filter(target => /^[/#]/.test(target))
        .filter(target => {
          const [path = '', anchor] = target.split('#');
          const found = path === '' ? text : (pages.get(path) ?? (existsSync(fileOf(path)) ? '' : undefined));
          return found === undefined || (anchor && !attributes(found, 'id').includes(decodeURIComponent(anchor)));
        })
        .map(target => `${page} → ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it('has no page of more than 200 kB with its styles and scripts, and none that loads from elsewhere', () => {
    const parts = (text: string) =>
      [...text.matchAll(/<(?:link|script|img)\b[^>]*>/g)].flatMap(([tag]) => [
        ...attributes(tag, 'href'),
        ...attributes(tag, 'src'),
      ]);
    expect(
      [...pages].flatMap(([page, text]) =>
        parts(text)
          .filter(target => !target.startsWith('/'))
          .map(target => [page, target]),
      ),
    ).toEqual([]);
    const weights = [...pages].map(([page, text]) => {
      const files = new Set(parts(text).filter(target => !target.startsWith('/images/')));
      return [page, [page, ...files].reduce((sum, file) => sum + served(file).length, 0)] as const;
    });
    const heaviest = Math.max(...weights.map(([, bytes]) => bytes));
    expect(heaviest).toBeGreaterThan(50_000);
    expect(weights.filter(([, bytes]) => bytes > mostBytes)).toEqual([]);
  });

  it('draws diagrams into the page, and shows each page next to the others of its part', () => {
    const page = pages.get('/architecture') ?? '';
    expect(page).toMatch(/<svg [^>]*role="img"[^>]*>(?:(?!<style|@import)[\s\S])*>engine</);
    expect(page).not.toContain('flowchart TB');
    expect(page).toContain('href="/recipes/add-a-tool"');
    expect(pages.get('/errors/limit')).toContain('href="/errors/storage"');
  });

  it.each([
    ['over_capacity', '/errors/limit'],
    ['MAX_COST_PER_DAY', '/reference/options/spending'],
    ['threads survive restarts', '/threads'],
  ])('finds "%s" without a network', async (words, address) => {
    const { page, requests, close } = await openPage(browser, `${origin}/faq`, { width: 1280, colorScheme: 'light' });
    const input = page.locator('#localsearch-input');
    // The page hears of keys once its script runs.
    await expect
      .poll(() => page.keyboard.press('Control+k').then(() => input.isVisible()), { timeout: 20_000 })
      .toBe(true);
    await input.fill(words);
    await page.locator(`.result[href^="${address}"]`).first().waitFor();
    expect(requests.filter(url => !url.startsWith(origin))).toEqual([]);
    await close();
  });

  it.each([
    { width: 1280, colorScheme: 'light' },
    { width: 1280, colorScheme: 'dark' },
    { width: 400, colorScheme: 'light' },
  ] as const)('can be used by everybody at $width pixels, $colorScheme', async look => {
    const { page, requests, faults, close } = await openPage(browser, `${origin}/`, look);
    const seen = new Map<string, { grave: string[]; width: number }>();
    for (const address of [
      '/',
      '/get-started',
      '/reference/tools/chat',
      '/reference/options/models',
      '/errors/limit',
      '/changelog',
      '/architecture',
    ]) {
      await page.goto(origin + address, { waitUntil: 'load' });
      const grave = await graveFaults(page, look.colorScheme === 'dark' ? 'colors' : undefined);
      seen.set(address, { grave, width: await scrollWidth(page) });
    }
    const dark = await page.evaluate<boolean>("document.documentElement.classList.contains('dark')");
    await close();
    expect([...seen].filter(([, { grave, width }]) => grave.length > 0 || width > look.width)).toEqual([]);
    expect(dark).toBe(look.colorScheme === 'dark');
    expect(requests.filter(url => !url.startsWith(origin))).toEqual([]);
    expect(faults).toEqual([]);
  });
});

function scrollWidth(page: Page): Promise<number> {
  return page.evaluate('document.scrollingElement.scrollWidth');
}
