import { posix } from 'node:path';
import type { JsonObject } from '../../domain/json.ts';
import { printablePath, safeCut } from '../../domain/text.ts';
import type { GraphEdge, GraphNode, OpenEnd } from './call-graph.ts';
import { drawTrace } from './draw-trace.ts';
import type { Trace } from './trace.ts';

/** A trace as data and as a drawing. Plain values: it crosses threads and goes into replies. */
export interface TraceReport {
  /** How many symbols the description named; none: the rest is empty. */
  targets: number;
  graph: JsonObject;
  drawing: string;
}

/** How nodes, places and paths are written in one report. */
export interface Labels {
  node(node: GraphNode): string;
  /** `src/a.ts:12` */
  at(node: GraphNode, line: number): string;
  /** `src/a.ts:10-20` */
  place(node: GraphNode): string;
  file(path: string): string;
}

const longestName = 120;

export function reportOf(trace: Trace, root: string): TraceReport {
  const nodes = nodesOf(trace);
  const labels = labelsFor(nodes, root);
  const { targets, near, imports, leftOut } = trace;
  const edges = [...new Set([...trace.outgoing, ...trace.incoming, ...trace.relations])];
  const graph: JsonObject = {
    targets: targets.map(labels.node),
    ...(near.length > 0 && { similar_names: near.map(shortened) }),
    nodes: nodes.map(node => ({
      id: labels.node(node),
      kind: node.declared?.symbol.kind ?? 'file',
      file: labels.file(node.outline.path),
      ...(node.declared && { lines: `${node.declared.symbol.from}-${node.declared.symbol.to}` }),
    })),
    edges: edges.map(edge => edgeJson(edge, labels)),
    unresolved: trace.openEnds.map(end => openEndJson(end, labels)),
    ...(trace.mode === 'dependencies' && {
      imports: imports.map(({ from, to, line }) => ({
        from: labels.file(from.path),
        to: labels.file(to.path),
        at: `${labels.file(from.path)}:${line}`,
      })),
    }),
    ...(leftOut > 0 && { left_out: leftOut }),
  };
  return { targets: targets.length, graph, drawing: drawTrace(trace, labels) };
}

function nodesOf({ targets, outgoing, incoming, relations }: Trace): GraphNode[] {
  const edges = [...outgoing, ...incoming, ...relations];
  return [...new Set([...targets, ...edges.flatMap(({ from, to }) => [from, to])])];
}

function edgeJson({ from, to, kind, line, ambiguous }: GraphEdge, labels: Labels): JsonObject {
  return {
    from: labels.node(from),
    to: labels.node(to),
    kind,
    at: labels.at(from, line),
    ...(ambiguous !== undefined && { ambiguous }),
  };
}

function openEndJson({ from, target, kind, line, why }: OpenEnd, labels: Labels): JsonObject {
  return { from: labels.node(from), target: shortened(target), kind, at: labels.at(from, line), why };
}

/** A symbol is called by its name; where several have it, by its file too, and where that is not enough by its line. */
function labelsFor(nodes: readonly GraphNode[], root: string): Labels {
  const file = (path: string) => printablePath(posix.relative(root, path) || path);
  const names = new Map<GraphNode, string>();
  const byName = Map.groupBy(nodes, ({ name }) => name);
  for (const [name, alike] of byName) {
    const byFile = Map.groupBy(alike, ({ outline }) => outline);
    for (const node of alike) {
      const { declared, outline } = node;
      const inFile = alike.length > 1 || !declared ? `${shortened(name)} in ${file(outline.path)}` : shortened(name);
      const twice = (byFile.get(outline)?.length ?? 0) > 1;
      names.set(node, twice ? `${inFile}:${declared?.symbol.from ?? 1}` : inFile);
    }
  }
  return {
    node: node => names.get(node) ?? shortened(node.name),
    at: ({ outline }, line) => `${file(outline.path)}:${line}`,
    place: ({ outline, declared }) =>
      declared ? `${file(outline.path)}:${declared.symbol.from}-${declared.symbol.to}` : file(outline.path),
    file,
  };
}

function shortened(name: string): string {
  return name.length <= longestName ? name : `${safeCut(name, longestName)}…`;
}
