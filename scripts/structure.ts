import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { figuresTable, summary } from './structure/figures.ts';
import { findViolations, readTree } from './structure/find-violations.ts';
import { rules } from './structure/rules.ts';
import { walk } from './walk.ts';

const { values, positionals } = parseArgs({ options: { figures: { type: 'boolean' } }, allowPositionals: true });
const root = positionals[0] ?? '.';

if (!existsSync(join(root, 'src'))) {
  console.error(`Cannot find src/ in ${root}: pass the root of the repository`);
  process.exit(2);
}

const files = readTree(new Map(walk(root, 'src').map(path => [path, readFileSync(join(root, path), 'utf8')])));
const violations = findViolations(files, rules);
if (values.figures) console.log(figuresTable(files, rules));
for (const { path, line, rule, message } of violations) console.error(`${path}:${line}  [${rule}] ${message}`);
if (violations.length > 0) {
  console.error(`structure: ${violations.length} violations`);
  process.exit(1);
}
if (!values.figures) console.log(summary(files));
