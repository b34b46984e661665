import { foldableFiles, writtenLines } from './check-budgets.ts';
import { checkImports } from './check-imports.ts';
import { fileRings, folderRings, linksOf, onlyImports } from './graph.ts';
import type { StructureRules } from './rules.ts';
import { folderOf, type SourceFile } from './source-file.ts';

/** Counts the folders that have files, src/ itself included. */
function folders(files: readonly SourceFile[]): number {
  return new Set(files.map(({ place }) => folderOf(place))).size;
}

/** Describes the tree in one line. */
export function summary(files: readonly SourceFile[]): string {
  const lines = writtenLines(files).toLocaleString('en-US');
  return `structure: ${files.length} files in ${folders(files)} folders, ${lines} lines, no cycle`;
}

/** Measures the tree: name → figure, as a table of text. */
export function figuresTable(files: readonly SourceFile[], rules: StructureRules): string {
  const links = linksOf(files);
  const written = files.filter(({ generated }) => !generated).sort((a, b) => a.lines - b.lines);
  const share = (part: number): number => written[Math.floor(written.length * part)]?.lines ?? 0;
  const longest = written.at(-1);
  const deepest = Math.max(rules.depth, ...rules.deeper.map(({ depth }) => depth));
  const { budgets, foldable } = rules;
  const rows: [name: string, figure: string | number][] = [
    ['files', `${files.length} (limit ${budgets.files})`],
    ['folders', folders(files)],
    ['top folders', new Set(files.map(({ place }) => folderOf(place, 1)).filter(folder => folder !== '')).size],
    ['hand-written lines', `${writtenLines(files)} (limit ${budgets.lines})`],
    ['median lines of a file', share(0.5)],
    ['90th percentile', share(0.9)],
    ['longest file', longest ? `${longest.lines} ${longest.place}` : 0],
    ['files with one importer', onlyImports(links).length],
    ['foldable files', `${foldableFiles(links, rules).length} (limit ${foldable.files})`],
    ...Array.from({ length: deepest }, (_, at): [string, number] => [
      `folder cycles, depth ${at + 1}`,
      folderRings(links, at + 1).length,
    ]),
    ['file cycles', fileRings(links).length],
    ['imports', links.length],
    ['imports against the layers', checkImports(files, rules).filter(({ rule }) => rule === 'imports').length],
  ];
  return rows.map(([name, figure]) => `${name.padEnd(28)}${figure}`).join('\n');
}
