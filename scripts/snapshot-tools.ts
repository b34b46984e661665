import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { schemaOf } from '../src/calls/argument-schema.ts';
import { release } from '../src/engine/exposure.ts';
import { tools } from '../src/tools/index.gen.ts';

/** What callers see of every tool, as it was at the release that is written with it. */
const file = 'test/fixtures/catalogue.json';

const snapshot = { release, tools: tools.map(tool => schemaOf(tool).listing) };
const text = `${JSON.stringify(snapshot, undefined, 2)}\n`;
const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;

if (before !== undefined && before !== text && JSON.parse(before).release === release) {
  console.error('A tool changed: first raise "release" in src/engine/exposure.ts, then run "npm run snapshot" again.');
  process.exit(1);
}
writeFileSync(file, text);
console.log(`${file}: ${tools.length} tools at ${release}`);
