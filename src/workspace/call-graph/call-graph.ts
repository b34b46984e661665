import type { Call, CallKind, Outline } from '../outline/outline.ts';
import { createResolver, type Meaning, type UnresolvedReason } from './resolve-calls.ts';
import { createSymbolIndex, type Declared, type SourceSet, type SymbolIndex } from './symbols.ts';

/** A function, class or other symbol; without `declared` the code of a file outside of all functions. */
export interface GraphNode {
  id: number;
  outline: Outline;
  declared?: Declared;
  /** `Class.method`, `outer.inner`; of a file's own code `(top level)`. */
  name: string;
}

export type EdgeKind = CallKind | 'extends' | 'implements' | 'embeds';

export interface GraphEdge {
  from: GraphNode;
  to: GraphNode;
  kind: EdgeKind;
  /** Where, in the file of `from`; in order. */
  lines: number[];
  /** Another edge of the same place leads elsewhere: only one of them, or none, is what happens. */
  ambiguous?: string;
}

/** A use whose target is not among the files read, or not known before the program runs. */
export interface UnresolvedCall {
  from: GraphNode;
  /** As it is written. */
  target: string;
  kind: EdgeKind;
  line: number;
  why: UnresolvedReason;
}

export type CallGraph = ReturnType<typeof buildCallGraph>;

/** Methods of one name that may be meant where the receiver's type is not known; with more of them the name says nothing. */
const maxNamesakes = 5;

interface Build {
  index: SymbolIndex;
  resolver: ReturnType<typeof createResolver>;
  nodes: Map<Declared | Outline, GraphNode>;
  edges: Map<string, GraphEdge>;
  openEnds: UnresolvedCall[];
}

/** Who calls whom in a set of files, by their syntax: what it leaves open is listed as open. */
export function buildCallGraph(sources: SourceSet) {
  const index = createSymbolIndex(sources);
  const resolver = createResolver(sources, index);
  const nodes = new Map<Declared | Outline, GraphNode>();
  for (const outline of sources.outlines) nodes.set(outline, { id: nodes.size, outline, name: '(top level)' });
  for (const declared of index.all) {
    nodes.set(declared, { id: nodes.size, outline: declared.outline, declared, name: qualifiedName(index, declared) });
  }
  const build: Build = { index, resolver, nodes, edges: new Map(), openEnds: [] };
  for (const outline of sources.outlines) {
    for (const call of outline.calls) addCall(build, outline, call);
    addRelations(build, outline);
  }
  return {
    nodes: [...nodes.values()],
    edges: [...build.edges.values()],
    openEnds: build.openEnds,
    imports: importsOf(sources),
  };
}

function qualifiedName(index: SymbolIndex, declared: Declared): string {
  const above = ({ outline, symbol, owner }: Declared) =>
    owner ?? index.at(outline, outline.scopes[symbol.scope]?.symbol ?? -1);
  // A symbol whose error-ridden source seems to hold itself ends it, too.
  const around = new Set<Declared>();
  for (let at = above(declared); at && !around.has(at); at = above(at)) around.add(at);
  return [declared, ...around]
    .map(({ symbol }) => symbol.name)
    .reverse()
    .join('.');
}

type Use = Pick<GraphEdge, 'from' | 'kind' | 'ambiguous'>;

function addEdge({ edges, nodes }: Build, { from, kind, ambiguous }: Use, target: Declared, line: number): void {
  const to = nodes.get(target);
  if (!to) return;
  const key = `${from.id} ${to.id} ${kind} ${ambiguous}`;
  const edge = edges.get(key) ?? { from, to, kind, lines: [], ambiguous };
  edges.set(key, edge);
  if (!edge.lines.includes(line)) edge.lines.push(line);
}

function addCall(build: Build, outline: Outline, call: Call): void {
  const caller = build.index.at(outline, outline.scopes[call.scope]?.symbol ?? -1);
  const from = build.nodes.get(caller ?? outline);
  if (!from) return;
  // What `super(…)` calls is the parent's constructor.
  const target = call.target[0] === 'super' && call.target.length === 1 ? ['super', 'constructor'] : call.target;
  const meaning = build.resolver.meaning(outline, call.scope, target);
  if (meaning.kind === 'symbols') {
    const targets = meaning.found.flatMap(each => whatRuns(build, each, call.kind));
    const ambiguous = targets.length > 1 ? 'one of several' : undefined;
    for (const { to, kind } of targets) addEdge(build, { from, kind, ambiguous }, to, call.line);
  } else if (call.kind !== 'passes') addOpen(build, from, call, whyOpen(meaning));
}

const whyOpen = (meaning: Meaning): UnresolvedReason => (meaning.kind === 'unknown' ? meaning.why : 'run_time');

const constructors = ['constructor', '__init__'];

/** The node behind a name: of a class that is called its constructor, where it has one of its own. */
function whatRuns({ index }: Build, declared: Declared, kind: CallKind): { to: Declared; kind: CallKind }[] {
  const { symbol } = declared;
  if (symbol.kind === 'object' && kind !== 'calls') return [];
  const isType = symbol.kind !== 'function' && symbol.kind !== 'method';
  if (kind === 'passes' && isType && symbol.kind !== 'class') return [];
  const own = isType && kind !== 'passes' ? constructors.flatMap(name => index.members(declared, name)) : [];
  const constructs = isType || constructors.includes(symbol.name);
  return [{ to: own[0] ?? declared, kind: constructs && kind === 'calls' ? 'constructs' : kind }];
}

function addOpen(build: Build, from: GraphNode, call: Call, why: UnresolvedReason): void {
  const name = call.target.at(-1) ?? '?';
  const namesakes =
    why === 'run_time' && call.target.length > 1
      ? build.index.methods(name).filter(({ outline }) => familyOf(outline) === familyOf(from.outline))
      : [];
  if (namesakes.length > 0 && namesakes.length <= maxNamesakes) {
    for (const to of namesakes) addEdge(build, { from, kind: call.kind, ambiguous: 'by name only' }, to, call.line);
    return;
  }
  const target = call.target.map(part => (part === '?' ? '…' : part)).join('.');
  build.openEnds.push({ from, target, kind: call.kind, line: call.line, why });
}

const familyOf = ({ language }: Outline) => (language === 'python' || language === 'go' ? language : 'script');

function addRelations(build: Build, outline: Outline): void {
  for (const { symbol, kind, target, line } of outline.relations) {
    const declared = build.index.at(outline, symbol);
    const from = declared && build.nodes.get(declared);
    if (!declared || !from) continue;
    const meaning = build.resolver.meaning(outline, declared.symbol.scope, target);
    if (meaning.kind !== 'symbols') {
      build.openEnds.push({ from, target: target.join('.'), kind, line, why: whyOpen(meaning) });
      continue;
    }
    const ambiguous = meaning.found.length > 1 ? 'one of several' : undefined;
    for (const to of meaning.found) addEdge(build, { from, kind, ambiguous }, to, line);
  }
  addGoImplementations(build, outline);
}

/** Go says nowhere which types an interface has: those with all its methods. */
function addGoImplementations(build: Build, outline: Outline): void {
  const { index, resolver, nodes } = build;
  if (outline.language !== 'go') return;
  for (const [number, symbol] of outline.symbols.entries()) {
    const declared = symbol.kind === 'interface' ? index.at(outline, number) : undefined;
    for (const type of declared ? resolver.members.subtypes(declared) : []) {
      const from = nodes.get(type);
      if (from && declared) addEdge(build, { from, kind: 'implements' }, declared, type.symbol.from);
    }
  }
}

function importsOf(sources: SourceSet) {
  const edges: { from: Outline; to: Outline; line: number }[] = [];
  for (const outline of sources.outlines) {
    const passedOn = outline.exports.flatMap(({ from, line }) =>
      from === undefined ? [] : [{ from, name: '*', line }],
    );
    const seen = new Set<Outline>([outline]);
    for (const { from, name, line } of [...outline.imports, ...passedOn]) {
      for (const module of sources.find(outline, from)) {
        const inner = name === '*' ? undefined : sources.submodule(module, name);
        for (const to of sources.filesOf(inner ?? module)) {
          if (seen.has(to)) continue;
          seen.add(to);
          edges.push({ from: outline, to, line });
        }
      }
    }
  }
  return edges;
}
