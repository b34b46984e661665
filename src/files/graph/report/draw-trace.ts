import type { GraphEdge, GraphNode } from '../../../workspace/call-graph/call-graph.ts';
import type { Trace } from '../../../workspace/call-graph/trace.ts';
import type { Why } from '../meaning.ts';
import type { Labels } from './labels.ts';

const mostLines = 150;

const reasons: Readonly<Record<Why, string>> = {
  run_time: 'only known at run time',
  undeclared: 'global or built in',
  package: 'from a package',
  not_read: 'from a file that was not read',
  not_there: 'not declared where it should be',
};

/** A trace as indented text, each node with its file and lines. */
export function drawTrace(trace: Trace, labels: Labels): string {
  const lines = trace.mode === 'precision' ? callFlow(trace, labels) : dependencies(trace, labels);
  const left = lines.length - mostLines;
  const cut = left > 0 ? [...lines.slice(0, mostLines), `… ${left} more lines`] : lines;
  if (trace.leftOut > 0)
    cut.push(`… ${trace.leftOut} more uses were left out; narrow relevant_files or the target to see them.`);
  return cut.join('\n');
}

function callFlow(trace: Trace, labels: Labels): string[] {
  const lines: string[] = [];
  const down = Map.groupBy(trace.outgoing, edge => edge.from);
  const up = Map.groupBy(trace.incoming, edge => edge.to);
  for (const root of trace.roots) {
    const isTarget = trace.targets.includes(root);
    if (!isTarget && !down.has(root) && !up.has(root)) continue;
    lines.push(headline(root, labels));
    lines.push(...branches({ edges: down, next: edge => edge.to, arrow: '↓', labels }, root, new Set([root]), 1));
    if (up.has(root)) lines.push('  called from');
    lines.push(...branches({ edges: up, next: edge => edge.from, arrow: '↑', labels }, root, new Set([root]), 2));
    if (!down.has(root) && !up.has(root)) lines.push('  no calls from or to it in the files read');
  }
  return [...lines, ...relationLines(trace, labels), ...openLines(trace, labels)];
}

interface Direction {
  edges: ReadonlyMap<GraphNode, readonly GraphEdge[]>;
  next(edge: GraphEdge): GraphNode;
  arrow: string;
  labels: Labels;
}

/** What is below a node, in the order of the source. A node is unfolded once; `path` is what it is under. */
function branches(
  direction: Direction,
  node: GraphNode,
  path: Set<GraphNode>,
  depth: number,
  seen = new Set(path),
): string[] {
  const edges = [...(direction.edges.get(node) ?? [])].sort((a, b) => (a.lines[0] ?? 0) - (b.lines[0] ?? 0));
  const lines: string[] = [];
  for (const edge of edges) {
    const next = direction.next(edge);
    const note = path.has(next) ? ' ↻ recursion' : seen.has(next) && direction.edges.has(next) ? ' (see above)' : '';
    lines.push(`${'  '.repeat(depth)}${edgeText(edge, next, direction)}${note}`);
    if (seen.has(next)) continue;
    seen.add(next);
    lines.push(...branches(direction, next, new Set([...path, next]), depth + 1, seen));
  }
  return lines;
}

function edgeText(edge: GraphEdge, next: GraphNode, { arrow, labels }: Direction): string {
  const doubt = edge.ambiguous ? `? ${edge.ambiguous}: ` : '';
  return `${arrow} ${doubt}${edge.kind} ${labels.node(next)}  ${labels.place(next)}  at ${labels.at(edge.from, edge.lines)}`;
}

function headline(node: GraphNode, labels: Labels): string {
  return `${labels.node(node)} (${node.declared?.symbol.kind ?? 'file'})  ${labels.place(node)}`;
}

function dependencies(trace: Trace, labels: Labels): string[] {
  const lines = trace.targets.map(target => headline(target, labels));
  const roots = new Set(trace.roots);
  const incoming = trace.incoming.filter(({ from }) => !roots.has(from));
  const outgoing = trace.outgoing.filter(({ to }) => !roots.has(to));
  const inside = trace.outgoing.filter(({ to }) => roots.has(to));
  lines.push(
    ...section(
      'incoming',
      incoming.map(edge => plainEdge(edge, '→', labels)),
    ),
  );
  lines.push(
    ...section(
      'outgoing',
      outgoing.map(edge => plainEdge(edge, '→', labels)),
    ),
  );
  lines.push(
    ...section(
      'inside',
      inside.map(edge => plainEdge(edge, '→', labels)),
    ),
  );
  lines.push(...relationLines(trace, labels));
  const imports = trace.imports.map(
    ({ from, to, line }) => `${labels.file(from.path)}:${line} → ${labels.file(to.path)}`,
  );
  return [...lines, ...section('imports', imports), ...openLines(trace, labels)];
}

function plainEdge(edge: GraphEdge, arrow: string, labels: Labels): string {
  const doubt = edge.ambiguous ? `  ? ${edge.ambiguous}` : '';
  return `${labels.node(edge.from)} ${arrow} ${edge.kind} ${labels.node(edge.to)}  at ${labels.at(edge.from, edge.lines)}${doubt}`;
}

function relationLines({ relations }: Trace, labels: Labels): string[] {
  return section(
    'types',
    relations.map(edge => plainEdge(edge, '—', labels)),
  );
}

function openLines({ openEnds }: Trace, labels: Labels): string[] {
  const ends = openEnds.map(
    ({ from, target, line, why }) =>
      `${labels.node(from)} → ${target}  at ${labels.at(from, [line])}  (${reasons[why]})`,
  );
  return section('not followed', ends);
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [title, ...lines.map(line => `  ${line}`)];
}
