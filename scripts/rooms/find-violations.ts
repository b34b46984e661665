import { checkCode } from './check-code.ts';
import { checkCycles } from './check-cycles.ts';
import { checkImports } from './check-imports.ts';
import { checkShape } from './check-shape.ts';
import { readSource, type Violation } from './source-file.ts';
import { type HouseTable, houseTable } from './table.ts';

/** Holds a source tree (path such as `src/app.ts` → text) against the rules of the house. */
export function findViolations(tree: ReadonlyMap<string, string>, table: HouseTable = houseTable): Violation[] {
  const files = [...tree].filter(([path]) => path.startsWith('src/')).map(([path, text]) => readSource(path, text));
  const found = [
    ...checkImports(files, table),
    ...checkCycles(files),
    ...checkShape(files, table),
    ...checkCode(files, table),
  ];
  return found.sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
}
