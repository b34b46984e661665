import { posix } from 'node:path';
import { printablePath, safeCut } from '../../../core/text.ts';
import type { GraphNode } from '../../../workspace/call-graph/call-graph.ts';

/** How nodes, places and paths are written in one report. */
export interface Labels {
  node(node: GraphNode): string;
  /** `src/a.ts:12,15` */
  at(node: GraphNode, lines: readonly number[]): string;
  /** `src/a.ts:10-20` */
  place(node: GraphNode): string;
  file(path: string): string;
}

const longestName = 120;
const mostLines = 6;

/** A symbol is called by its name; where several have it, by its file too, and where that is not enough by its line. */
export function labelsFor(nodes: readonly GraphNode[], root: string): Labels {
  const file = (path: string) => printablePath(posix.relative(root, path) || path);
  const names = new Map<GraphNode, string>();
  const byName = Map.groupBy(nodes, ({ name }) => name);
  for (const [name, alike] of byName) {
    const byFile = Map.groupBy(alike, ({ outline }) => outline);
    for (const node of alike) {
      const { declared, outline } = node;
      const inFile = alike.length > 1 || !declared ? `${shortName(name)} in ${file(outline.path)}` : shortName(name);
      const twice = (byFile.get(outline)?.length ?? 0) > 1;
      names.set(node, twice ? `${inFile}:${declared?.symbol.from ?? 1}` : inFile);
    }
  }
  return {
    node: node => names.get(node) ?? shortName(node.name),
    at: ({ outline }, lines) =>
      `${file(outline.path)}:${lines.slice(0, mostLines).join(',')}${lines.length > mostLines ? ',…' : ''}`,
    place: ({ outline, declared }) =>
      declared ? `${file(outline.path)}:${declared.symbol.from}-${declared.symbol.to}` : file(outline.path),
    file,
  };
}

/** A name as it may stand in a drawing: a method's may be any string, with line breaks too. */
export function shortName(name: string): string {
  const shown = printablePath(name);
  return shown.length <= longestName ? shown : `${safeCut(shown, longestName)}…`;
}
