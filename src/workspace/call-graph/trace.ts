import { findTargets } from '../../files/graph/find-targets.ts';
import type { CallGraph, EdgeKind, GraphEdge, GraphNode, ModuleEdge, OpenEnd } from './call-graph.ts';

export type TraceMode = 'precision' | 'dependencies';

export interface TraceRequest {
  mode: TraceMode;
  /** What to trace, in the caller's words. */
  target: string;
  /** Names of symbols, given as such. */
  hints: readonly string[];
}

/** The part of a graph that has to do with a target. */
export interface Trace {
  mode: TraceMode;
  targets: readonly GraphNode[];
  near: readonly string[];
  /** The targets and what is inside them. */
  roots: readonly GraphNode[];
  /** What the roots lead to, and what leads to them: nearest first. */
  outgoing: readonly GraphEdge[];
  incoming: readonly GraphEdge[];
  relations: readonly GraphEdge[];
  openEnds: readonly OpenEnd[];
  imports: readonly ModuleEdge[];
  /** Edges and open ends that were left out for their number. */
  leftOut: number;
}

const limits = {
  precision: { down: 6, up: 4, edges: 60 },
  dependencies: { down: 1, up: 1, edges: 60 },
} as const;
const mostOpenEnds = 20;
const mostImports = 20;

const relationKinds: ReadonlySet<EdgeKind> = new Set(['extends', 'implements', 'embeds']);

/** Follows the calls from and to what a request names. */
export function traceIn(graph: CallGraph, request: TraceRequest): Trace {
  const { mode } = request;
  const { targets, near } = findTargets(graph, request.target, request.hints);
  const start = new Set(targets.flatMap(target => [target, ...membersOf(graph, target)]));
  const calls = graph.edges.filter(({ kind }) => !relationKinds.has(kind));
  const { down, up, edges } = limits[mode];
  const outgoing = reach(
    start,
    Map.groupBy(calls, edge => edge.from),
    edge => edge.to,
    down,
  );
  const incoming = reach(
    start,
    Map.groupBy(calls, edge => edge.to),
    edge => edge.from,
    up,
  );
  const relations = relationsOf(graph, start);
  const reached = new Set([...start, ...(mode === 'precision' ? outgoing.map(edge => edge.to) : [])]);
  const openEnds = openEndsOf(graph, reached);
  const files = new Set(targets.map(target => target.outline));
  const imports = graph.imports.filter(({ from, to }) => files.has(from) || files.has(to));
  return {
    mode,
    targets,
    near,
    roots: [...start],
    outgoing: outgoing.slice(0, edges),
    incoming: incoming.slice(0, edges),
    relations: relations.slice(0, edges),
    openEnds: openEnds.slice(0, mostOpenEnds),
    imports: imports.slice(0, mostImports),
    leftOut:
      [outgoing, incoming, relations].reduce((sum, list) => sum + Math.max(0, list.length - edges), 0) +
      Math.max(0, openEnds.length - mostOpenEnds) +
      Math.max(0, imports.length - mostImports),
  };
}

/** Of a class all that it holds, of a function the functions in it. */
function membersOf({ nodes }: CallGraph, { outline, name, declared }: GraphNode): GraphNode[] {
  const inside = nodes.filter(each => each.outline === outline && each.name.startsWith(`${name}.`));
  const methods = nodes.filter(each => each.declared?.owner !== undefined && each.declared.owner === declared);
  return [...new Set([...inside, ...methods])];
}

/** The edges within some steps of a start, nearest first; each place once, what is certain before what may be. */
function reach(
  start: ReadonlySet<GraphNode>,
  edgesOf: ReadonlyMap<GraphNode, GraphEdge[]>,
  next: (edge: GraphEdge) => GraphNode,
  depth: number,
): GraphEdge[] {
  const found = new Set<GraphEdge>();
  const seen = new Set(start);
  let level = [...start];
  for (let step = 0; step < depth && level.length > 0; step++) {
    const edges = level.flatMap(node => edgesOf.get(node) ?? []).sort(byCertainty);
    const further: GraphNode[] = [];
    for (const edge of edges) {
      found.add(edge);
      const node = next(edge);
      // Behind what only may be called nothing more is followed: it would soon be everything.
      if (seen.has(node) || edge.ambiguous === 'by name only') continue;
      seen.add(node);
      further.push(node);
    }
    level = further;
  }
  return [...found];
}

function byCertainty(a: GraphEdge, b: GraphEdge): number {
  return Number(a.ambiguous !== undefined) - Number(b.ambiguous !== undefined);
}

/** Up to all ancestors, and down to all that descends. */
function relationsOf(graph: CallGraph, start: ReadonlySet<GraphNode>): GraphEdge[] {
  const relations = graph.edges.filter(({ kind }) => relationKinds.has(kind));
  const types = new Set(start);
  for (const { declared } of start) {
    const owner = declared?.owner;
    const node = owner && graph.nodes.find(each => each.declared === owner);
    if (node) types.add(node);
  }
  const up = reach(
    types,
    Map.groupBy(relations, edge => edge.from),
    edge => edge.to,
    10,
  );
  const down = reach(
    types,
    Map.groupBy(relations, edge => edge.to),
    edge => edge.from,
    10,
  );
  return [...new Set([...up, ...down])];
}

/** Library calls and the like: what says most first, each target once for each caller. */
function openEndsOf(graph: CallGraph, reached: ReadonlySet<GraphNode>): OpenEnd[] {
  const order = ['run_time', 'not_read', 'not_there', 'package', 'undeclared'];
  const found = new Map<string, OpenEnd>();
  for (const end of graph.openEnds) {
    if (!reached.has(end.from)) continue;
    const key = `${end.from.outline.path} ${end.from.name} ${end.target} ${end.kind}`;
    if (!found.has(key)) found.set(key, end);
  }
  return [...found.values()].sort((a, b) => order.indexOf(a.why) - order.indexOf(b.why));
}
