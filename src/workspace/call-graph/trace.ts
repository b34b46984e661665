import { basename } from 'node:path/posix';
import { languageOf } from '../outline/outline.ts';
import type { CallGraph, EdgeKind, GraphEdge, GraphNode, UnresolvedCall } from './call-graph.ts';

/** Words of any description: a function of that name has to be written as code to be meant. */
const ordinary = new Set(
  'a an and are as at by can do does for from get how in into is it its method of on or function class the this that to trace use uses used when where which who why with'.split(
    ' ',
  ),
);

const maxWords = 100;
const maxTargets = 6;
const maxNear = 8;

/**
 * The symbols that a description in prose names. Words that look like code (`a.b`, `camelCase`, `snake_case`, `in ticks`,
 * `called()`) are what is meant; where there are none, plain words are. A path in the description chooses among namesakes.
 * `near`: names like those, where it names none.
 */
function findTargets(graph: CallGraph, description: string, hints: readonly string[]) {
  const symbols = graph.nodes.filter(node => node.declared);
  const words = (
    description.match(/`[^`\s]+`|[\p{L}_$][\p{L}\p{N}_$]*(?:(?:\.|::|#|->)[\p{L}_$][\p{L}\p{N}_$]*)*(?:\(\))?/gu) ?? []
  )
    .filter(word => !languageOf(bare(word)))
    .slice(0, maxWords);
  const code = [...hints, ...words.filter(word => /[._$]|[a-z][A-Z]|\(\)$|^`/.test(word))].map(bare);
  const plain = words.map(bare).filter(word => !ordinary.has(word));
  // A name that is there as code and names nothing is not made up for by words around it.
  const tries = code.length > 0 ? [code] : [plain.filter(word => /^[A-Z]/.test(word)), plain];
  let targets: GraphNode[] = [];
  for (const candidates of tries) {
    targets = candidates.flatMap(word => namedBy(symbols, word));
    if (targets.length > 0) return { targets: narrowed([...new Set(targets)], description), near: [] };
  }
  const folded = [...code, ...plain].map(word => word.toLowerCase()).filter(word => word.length > 2);
  const near = symbols.filter(({ name }) => folded.some(word => resembles(name.toLowerCase(), word)));
  return { targets, near: [...new Set(near.map(({ name }) => name))].slice(0, maxNear) };
}

const resembles = (name: string, word: string): boolean =>
  name.includes(word) || (name.length > 2 && word.includes(name));

const bare = (word: string): string =>
  word
    .replaceAll('`', '')
    .replace(/\(.*$/, '')
    .replace(/::|#|->/g, '.');

function namedBy(symbols: readonly GraphNode[], word: string): GraphNode[] {
  const whole = symbols.filter(({ name }) => name === word || name.endsWith(`.${word}`));
  if (whole.length > 0 || !word.includes('.')) return whole;
  // `package.Function` in Go and Python: the part before the last dots may be a file or a folder.
  const [last = word, before = ''] = word.split('.').reverse();
  const place = new RegExp(`(?:^|/)${before.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?:/[^/]+|\\.\\w+)$`);
  return symbols.filter(({ name, outline }) => name === last && place.test(outline.path));
}

/** Those in a file that the description names, if there are any; no more than can be traced. */
function narrowed(targets: GraphNode[], description: string): GraphNode[] {
  const inNamed = targets.filter(({ outline }) => description.includes(basename(outline.path)));
  return (inNamed.length > 0 ? inNamed : targets).slice(0, maxTargets);
}

export interface TraceRequest {
  mode: 'precision' | 'dependencies';
  /** What to trace, in the caller's words. */
  target: string;
  /** Names of symbols, given as such. */
  hints: readonly string[];
}

/** The part of a graph that has to do with a target. */
export type Trace = ReturnType<typeof traceIn>;

/** How many steps are followed. */
const limits = { precision: { down: 6, up: 4 }, dependencies: { down: 1, up: 1 } } as const;
const maxEdges = 60;
const maxOpenEnds = 20;
const maxImports = 20;
const relationKinds: ReadonlySet<EdgeKind> = new Set(['extends', 'implements', 'embeds']);

/** Follows the calls from and to what a request names. */
export function traceIn(graph: CallGraph, request: TraceRequest) {
  const { mode } = request;
  const { targets, near } = findTargets(graph, request.target, request.hints);
  // The targets and what is inside them.
  const start = new Set(targets.flatMap(target => [target, ...membersOf(graph, target)]));
  const calls = graph.edges.filter(({ kind }) => !relationKinds.has(kind));
  const { down, up } = limits[mode];
  const outgoing = reach(start, calls, 'to', down);
  const incoming = reach(start, calls, 'from', up);
  const reached = new Set([...start, ...(mode === 'precision' ? outgoing.map(edge => edge.to) : [])]);
  const files = new Set(targets.map(target => target.outline));
  const imports = graph.imports.filter(({ from, to }) => files.has(from) || files.has(to));
  /** Edges and open ends that were left out for their number. */
  let leftOut = 0;
  const first = <Item>(most: number, found: readonly Item[]): readonly Item[] => {
    leftOut += Math.max(0, found.length - most);
    return found.slice(0, most);
  };
  const shown = {
    // What the roots lead to, and what leads to them: nearest first.
    outgoing: first(maxEdges, outgoing),
    incoming: first(maxEdges, incoming),
    relations: first(maxEdges, relationsOf(graph, start)),
    openEnds: first(maxOpenEnds, openEndsOf(graph, reached)),
    imports: first(maxImports, imports),
  };
  return { mode, targets, near, roots: [...start], ...shown, leftOut };
}

/** Of a class all that it holds, of a function the functions in it. */
function membersOf({ nodes }: CallGraph, { outline, name, declared }: GraphNode): GraphNode[] {
  const inside = nodes.filter(each => each.outline === outline && each.name.startsWith(`${name}.`));
  const methods = nodes.filter(each => each.declared?.owner !== undefined && each.declared.owner === declared);
  return [...new Set([...inside, ...methods])];
}

/** The edges that lead `to` or come `from` others within some steps of a start, nearest first; each place once, what is certain before what may be. */
function reach(start: ReadonlySet<GraphNode>, among: readonly GraphEdge[], side: 'from' | 'to', depth: number) {
  const edgesOf = Map.groupBy(among, edge => (side === 'to' ? edge.from : edge.to));
  const found = new Set<GraphEdge>();
  const seen = new Set(start);
  let level = [...start];
  for (let step = 0; step < depth && level.length > 0; step++) {
    const reached = level.flatMap(node => edgesOf.get(node) ?? []);
    const edges = [...reached.filter(edge => !edge.ambiguous), ...reached.filter(edge => edge.ambiguous)];
    const further: GraphNode[] = [];
    for (const edge of edges) {
      found.add(edge);
      const node = edge[side];
      // Behind what only may be called nothing more is followed: it would soon be everything.
      if (seen.has(node) || edge.ambiguous === 'by name only') continue;
      seen.add(node);
      further.push(node);
    }
    level = further;
  }
  return [...found];
}

/** Up to all ancestors, and down to all that descends. */
function relationsOf(graph: CallGraph, start: ReadonlySet<GraphNode>): GraphEdge[] {
  const relations = graph.edges.filter(({ kind }) => relationKinds.has(kind));
  const owners = [...start].flatMap(({ declared }) => declared?.owner ?? []);
  const types = new Set([
    ...start,
    ...owners.flatMap(owner => graph.nodes.find(each => each.declared === owner) ?? []),
  ]);
  return [...new Set([...reach(types, relations, 'to', 10), ...reach(types, relations, 'from', 10)])];
}

/** Library calls and the like: what says most first, each target once for each caller. */
function openEndsOf(graph: CallGraph, reached: ReadonlySet<GraphNode>): UnresolvedCall[] {
  const order = ['run_time', 'not_read', 'not_there', 'package', 'undeclared'];
  const ends = graph.openEnds.filter(({ from }) => reached.has(from));
  const alike = Map.groupBy(ends, ({ from, target, kind }) => `${from.outline.path} ${from.name} ${target} ${kind}`);
  return [...alike.values()]
    .flatMap(([first]) => first ?? [])
    .sort((a, b) => order.indexOf(a.why) - order.indexOf(b.why));
}
