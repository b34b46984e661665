import { checkBudgets } from './check-budgets.ts';
import { checkCode } from './check-code.ts';
import { checkCycles } from './check-cycles.ts';
import { checkImports } from './check-imports.ts';
import { checkShape } from './check-shape.ts';
import { linksOf } from './graph.ts';
import type { StructureRules } from './rules.ts';
import { readSource, type SourceFile, type Violation } from './source-file.ts';

/** Reads the files below src/ of a tree (path such as `src/main.ts` → text). */
export function readTree(tree: ReadonlyMap<string, string>): SourceFile[] {
  return [...tree].filter(([path]) => path.startsWith('src/')).map(([path, text]) => readSource(path, text));
}

/** Checks source files against the rules. */
export function findViolations(files: readonly SourceFile[], rules: StructureRules): Violation[] {
  const links = linksOf(files);
  const found = [
    ...checkImports(files, rules),
    ...checkCycles(links),
    ...checkShape(files, rules),
    ...checkCode(files, rules),
    ...checkBudgets(files, links, rules),
  ];
  return found.sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
}
