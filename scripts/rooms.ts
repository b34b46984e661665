import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findViolations } from './rooms/find-violations.ts';
import { walk } from './walk.ts';

const root = process.argv[2] ?? '.';

if (!existsSync(join(root, 'src'))) {
  console.error(`${root} has no src/: give the root of the repository`);
  process.exit(2);
}

const tree = new Map(walk(root, 'src').map(path => [path, readFileSync(join(root, path), 'utf8')]));
// While the source moves to its new folders, the rules about folders wait; syntax, names and import cycles are still checked.
const moving = existsSync(join(root, 'src/core'));
const violations = findViolations(tree).filter(({ rule }) => !moving || rule === 'syntax' || rule === 'cycle');
for (const { path, line, rule, message } of violations) console.error(`${path}:${line}  [${rule}] ${message}`);
if (violations.length > 0) {
  console.error(`${violations.length} of the house's rules are broken`);
  process.exit(1);
}
console.log(`rooms: ${tree.size} files keep the rules of the house`);
