import { posix } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { JsonObject } from '../../core/json.ts';
import { printablePath, safeCut } from '../../core/text.ts';
import type { Language, Outline } from '../outline/outline.ts';
import { readOutline } from '../outline/read-outline.ts';
import { buildCallGraph, type GraphEdge, type GraphNode } from './call-graph.ts';
import type { UnresolvedReason } from './resolve-calls.ts';
import { createSourceSet, type GoModule } from './symbols.ts';
import { type Trace, type TraceRequest, traceIn } from './trace.ts';

/** How nodes, places and paths are written in one report. */
export type Labels = ReturnType<typeof labelsFor>;

const maxNameLength = 120;
const maxLines = 6;

/** A symbol is called by its name; where several have it, by its file too, and where that is not enough by its line. */
export function labelsFor(nodes: readonly GraphNode[], root: string) {
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
    node: (node: GraphNode) => names.get(node) ?? shortName(node.name),
    /** `src/a.ts:12,15` */
    at: ({ outline }: GraphNode, lines: readonly number[]) =>
      `${file(outline.path)}:${lines.slice(0, maxLines).join(',')}${lines.length > maxLines ? ',…' : ''}`,
    /** `src/a.ts:10-20` */
    place: ({ outline, declared }: GraphNode) =>
      declared ? `${file(outline.path)}:${declared.symbol.from}-${declared.symbol.to}` : file(outline.path),
    file,
  };
}

/** A name as it may stand in a drawing: a method's may be any string, with line breaks too. */
export function shortName(name: string): string {
  const shown = printablePath(name);
  return shown.length <= maxNameLength ? shown : `${safeCut(shown, maxNameLength)}…`;
}

const maxDrawnLines = 150;

const reasons: Readonly<Record<UnresolvedReason, string>> = {
  run_time: 'only known at run time',
  undeclared: 'global or built in',
  package: 'from a package',
  not_read: 'from a file that was not read',
  not_there: 'not declared where it should be',
};

/** A trace as indented text, each node with its file and lines. */
export function renderTrace(trace: Trace, labels: Labels): string {
  const lines = trace.mode === 'precision' ? callFlow(trace, labels) : dependencies(trace, labels);
  const left = lines.length - maxDrawnLines;
  const cut = left > 0 ? [...lines.slice(0, maxDrawnLines), `… ${left} more lines`] : lines;
  if (trace.leftOut > 0)
    cut.push(`… ${trace.leftOut} more uses were left out; narrow relevant_files or the target to see them.`);
  return cut.join('\n');
}

function callFlow(trace: Trace, labels: Labels): string[] {
  const lines: string[] = [];
  const down = Map.groupBy(trace.outgoing, edge => edge.from);
  const up = Map.groupBy(trace.incoming, edge => edge.to);

  /** Adds what is below a node, in the order of the source. A node is unfolded once; `path` is what it is under. */
  function unfold(side: 'from' | 'to', node: GraphNode, path: Set<GraphNode>, depth: number, seen = new Set(path)) {
    const [edges, arrow] = side === 'to' ? [down, '↓'] : [up, '↑'];
    const ordered = (edges.get(node) ?? []).toSorted((a, b) => (a.lines[0] ?? 0) - (b.lines[0] ?? 0));
    for (const edge of ordered) {
      const next = edge[side];
      const note = path.has(next) ? ' ↻ recursion' : seen.has(next) && edges.has(next) ? ' (see above)' : '';
      const doubt = edge.ambiguous ? `? ${edge.ambiguous}: ` : '';
      const used = `${edge.kind} ${labels.node(next)}  ${labels.place(next)}  at ${labels.at(edge.from, edge.lines)}`;
      lines.push(`${'  '.repeat(depth)}${arrow} ${doubt}${used}${note}`);
      if (seen.has(next)) continue;
      seen.add(next);
      unfold(side, next, new Set([...path, next]), depth + 1, seen);
    }
  }

  for (const root of trace.roots) {
    if (!trace.targets.includes(root) && !down.has(root) && !up.has(root)) continue;
    lines.push(headline(root, labels));
    unfold('to', root, new Set([root]), 1);
    if (up.has(root)) lines.push('  called from');
    unfold('from', root, new Set([root]), 2);
    if (!down.has(root) && !up.has(root)) lines.push('  no calls from or to it in the files read');
  }
  return [...lines, ...relationLines(trace, labels), ...openLines(trace, labels)];
}

const headline = (node: GraphNode, labels: Labels): string =>
  `${labels.node(node)} (${node.declared?.symbol.kind ?? 'file'})  ${labels.place(node)}`;

function dependencies(trace: Trace, labels: Labels): string[] {
  const lines = trace.targets.map(target => headline(target, labels));
  const roots = new Set(trace.roots);
  const incoming = trace.incoming.filter(({ from }) => !roots.has(from));
  const outgoing = trace.outgoing.filter(({ to }) => !roots.has(to));
  const inside = trace.outgoing.filter(({ to }) => roots.has(to));
  for (const [title, edges] of Object.entries({ incoming, outgoing, inside })) {
    lines.push(...edgeSection(title, edges, '→', labels));
  }
  const imports = trace.imports.map(
    ({ from, to, line }) => `${labels.file(from.path)}:${line} → ${labels.file(to.path)}`,
  );
  return [...lines, ...relationLines(trace, labels), ...section('imports', imports), ...openLines(trace, labels)];
}

function edgeSection(title: string, edges: readonly GraphEdge[], arrow: string, labels: Labels): string[] {
  const lines = edges.map(({ from, to, kind, lines, ambiguous }) => {
    const doubt = ambiguous ? `  ? ${ambiguous}` : '';
    return `${labels.node(from)} ${arrow} ${kind} ${labels.node(to)}  at ${labels.at(from, lines)}${doubt}`;
  });
  return section(title, lines);
}

const relationLines = ({ relations }: Trace, labels: Labels): string[] => edgeSection('types', relations, '—', labels);

function openLines({ openEnds }: Trace, labels: Labels): string[] {
  const ends = openEnds.map(
    ({ from, target, line, why }) =>
      `${labels.node(from)} → ${target}  at ${labels.at(from, [line])}  (${reasons[why]})`,
  );
  return section('not followed', ends);
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [title, ...lines.map(line => `  ${line}`)];

/**
 * A trace as data and as a drawing. Plain values: it crosses threads and goes into replies. `targets`: how many symbols the
 * description named; none: the rest is empty.
 */
function reportOf(trace: Trace, root: string) {
  const { targets, near, imports, leftOut } = trace;
  const edges = [...new Set([...trace.outgoing, ...trace.incoming, ...trace.relations])];
  const nodes = [...new Set([...targets, ...edges.flatMap(({ from, to }) => [from, to])])];
  const labels = labelsFor(nodes, root);
  const graph: JsonObject = {
    targets: targets.map(labels.node),
    ...(near.length > 0 && { similar_names: near.map(shortName) }),
    nodes: nodes.map(node => ({
      id: labels.node(node),
      kind: node.declared?.symbol.kind ?? 'file',
      file: labels.file(node.outline.path),
      ...(node.declared && { lines: `${node.declared.symbol.from}-${node.declared.symbol.to}` }),
    })),
    edges: edges.map(edge => ({
      from: labels.node(edge.from),
      to: labels.node(edge.to),
      kind: edge.kind,
      at: labels.at(edge.from, edge.lines),
      ...(edge.ambiguous !== undefined && { ambiguous: edge.ambiguous }),
    })),
    unresolved: trace.openEnds.map(({ from, target, kind, line, why }) => ({
      from: labels.node(from),
      target: shortName(target),
      kind,
      at: labels.at(from, [line]),
      why,
    })),
    ...(trace.mode === 'dependencies' && {
      imports: imports.map(({ from, to, line }) => ({
        from: labels.file(from.path),
        to: labels.file(to.path),
        at: `${labels.file(from.path)}:${line}`,
      })),
    }),
    ...(leftOut > 0 && { left_out: leftOut }),
  };
  return { targets: targets.length, graph, drawing: renderTrace(trace, labels) };
}

export interface Source {
  path: string;
  language: Language;
  text: string;
}

/** Everything a trace needs; plain values, so that another thread can have them. */
export interface TraceInput {
  /** Paths are told relative to this. */
  root: string;
  sources: readonly Source[];
  goModules: readonly GoModule[];
  request: TraceRequest;
  /** Its only number is 1 once parsing has taken long enough; in memory that threads share. */
  late: Int32Array<SharedArrayBuffer>;
}

export type TracedSources = Awaited<ReturnType<typeof traceSources>>;

/** Parses the sources, builds their call graph and traces the target in it. */
export async function traceSources(input: TraceInput) {
  const outlines: Outline[] = [];
  for (const { path, language, text } of input.sources) {
    await setImmediate();
    // One is always read: an answer of nothing helps nobody.
    if (outlines.length > 0 && Atomics.load(input.late, 0) === 1) break;
    outlines.push(await readOutline(path, language, text));
  }
  const graph = buildCallGraph(createSourceSet(outlines, input.goModules));
  const report = reportOf(traceIn(graph, input.request), input.root);
  // What syntax errors hide is missing.
  const broken = outlines.filter(outline => outline.broken).map(({ path }) => path);
  // Files for which no time was left: they are not in the graph.
  return { ...report, broken, unread: input.sources.slice(outlines.length).map(({ path }) => path) };
}
