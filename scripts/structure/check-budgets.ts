import { type Link, onlyImports } from './graph.ts';
import type { StructureRules } from './rules.ts';
import { folderOf, isCode, type SourceFile, type Violation } from './source-file.ts';

/** Lines of all files that are written by hand. */
export function writtenLines(files: readonly SourceFile[]): number {
  return files.reduce((sum, { generated, lines }) => sum + (generated ? 0 : lines), 0);
}

/**
 * Returns short files that only one file of the same folder imports. Members of a generated list, files that are loaded with
 * `import()` and programs of worker threads have to be separate files and do not count.
 */
export function foldableFiles(links: readonly Link[], rules: StructureRules): string[] {
  return onlyImports(links)
    .filter(({ from, to }) => folderOf(from.place) === folderOf(to.place) && isCode(to.path))
    .filter(({ from, to }) => to.lines < rules.foldable.lines && !from.generated && !to.generated)
    .filter(({ to }) => !rules.workers.includes(to.place))
    .filter(({ to }) => !links.some(link => link.to === to && link.lazy))
    .map(({ to }) => to.place)
    .sort();
}

function foldableProblem(links: readonly Link[], rules: StructureRules): string | undefined {
  const { files: limit, lines } = rules.foldable;
  const found = foldableFiles(links, rules);
  if (found.length < limit)
    return `foldable.files is ${limit}, but only ${found.length} are left: lower the figure to ${found.length}.`;
  if (found.length === limit) return undefined;
  return `${found.length} files under ${lines} lines are imported by one file of their folder only, limit ${limit}: ${found.join(', ')}. Fold one of them into its importer, or raise foldable.files to ${found.length} and state the reason.`;
}

function budgetProblem(what: string, count: number, limit: number): string | undefined {
  if (count <= limit) return undefined;
  return `src/ has ${count} ${what}, limit ${limit}: remove or merge code that is no longer needed, or raise the budget and state the reason.`;
}

/** Checks the size of the whole tree. */
export function checkBudgets(files: readonly SourceFile[], links: readonly Link[], rules: StructureRules): Violation[] {
  const problems = [
    budgetProblem('files', files.length, rules.budgets.files),
    budgetProblem('hand-written lines', writtenLines(files), rules.budgets.lines),
    foldableProblem(links, rules),
  ];
  return problems
    .filter(message => message !== undefined)
    .map(message => ({ path: rules.file, line: 1, rule: 'budget', message }));
}
