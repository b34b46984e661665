import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'vitepress';
import { readSite } from './site/pages.ts';

// Builds the documentation site from docs/ and the definitions in src/ into site/html: npm run docs. Another folder than site/ may
// be named; it has to be below the repository, where packages are found.

const root = join(import.meta.dirname, '..');
const folder = resolve(process.argv[2] ?? join(root, 'site'));
const pages = join(folder, 'pages');
const html = join(folder, 'html');

const site = readSite(root);
for (const made of [pages, html]) rmSync(made, { recursive: true, force: true });

function write(path: string, text: string): void {
  mkdirSync(dirname(join(pages, path)), { recursive: true });
  writeFileSync(join(pages, path), text);
}

for (const [path, text] of site.pages) write(path, text);
for (const [path, file] of site.images) {
  mkdirSync(dirname(join(pages, 'public', path)), { recursive: true });
  copyFileSync(join(root, file), join(pages, 'public', path));
}
// The configuration is TypeScript, which Node itself loads.
const config = JSON.stringify(pathToFileURL(join(root, 'scripts/site/config.ts')));
write(
  '.vitepress/config.mjs',
  `const source = ${config};
const { siteConfig } = await import(source);
export default siteConfig(${JSON.stringify(site.sidebar)}, ${JSON.stringify(html)});\n`,
);
// The default theme with the fonts of the reader's system, so that no page loads one.
const style = JSON.stringify(join(root, 'scripts/site/style.css'));
const theme = "import theme from 'vitepress/theme-without-fonts';";
write('.vitepress/theme/index.mjs', `${theme}\nimport ${style};\nexport default theme;\n`);
await build(pages);
console.log(`docs: ${site.pages.size} pages in ${html}`);
