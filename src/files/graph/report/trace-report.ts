import type { JsonObject } from '../../../core/json.ts';
import type { GraphEdge, GraphNode, OpenEnd } from '../../../workspace/call-graph/call-graph.ts';
import type { Trace } from '../../../workspace/call-graph/trace.ts';
import { drawTrace } from './draw-trace.ts';
import { type Labels, labelsFor, shortName } from './labels.ts';

/** A trace as data and as a drawing. Plain values: it crosses threads and goes into replies. */
export interface TraceReport {
  /** How many symbols the description named; none: the rest is empty. */
  targets: number;
  graph: JsonObject;
  drawing: string;
}

export function reportOf(trace: Trace, root: string): TraceReport {
  const nodes = nodesOf(trace);
  const labels = labelsFor(nodes, root);
  const { targets, near, imports, leftOut } = trace;
  const edges = [...new Set([...trace.outgoing, ...trace.incoming, ...trace.relations])];
  const graph: JsonObject = {
    targets: targets.map(labels.node),
    ...(near.length > 0 && { similar_names: near.map(shortName) }),
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

function edgeJson({ from, to, kind, lines, ambiguous }: GraphEdge, labels: Labels): JsonObject {
  return {
    from: labels.node(from),
    to: labels.node(to),
    kind,
    at: labels.at(from, lines),
    ...(ambiguous !== undefined && { ambiguous }),
  };
}

function openEndJson({ from, target, kind, line, why }: OpenEnd, labels: Labels): JsonObject {
  return { from: labels.node(from), target: shortName(target), kind, at: labels.at(from, [line]), why };
}
