import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBrokenLinks } from './doc-links/find-broken-links.ts';
import { walk } from './walk.ts';

const root = process.argv[2] ?? '.';
const paths = walk(root).filter(path => path.endsWith('.md') && !path.startsWith('test/fixtures/'));
const texts = new Map(paths.map(path => [path, readFileSync(join(root, path), 'utf8')]));
const broken = findBrokenLinks(texts, path => existsSync(join(root, path)));

for (const { path, line, message } of broken) console.error(`${path}:${line}  ${message}`);
if (broken.length > 0) {
  console.error(`${broken.length} links lead nowhere`);
  process.exit(1);
}
console.log(`doc links: ${texts.size} documents lead where they say`);
