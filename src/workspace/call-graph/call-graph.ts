import type { Call, CallKind, Outline } from '../outline/outline.ts';
import { createResolver, type ResolvedName, type UnresolvedReason } from './resolve-calls.ts';
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

/** Who calls whom in a set of files, by their syntax: what it leaves open is listed as open. */
export function buildCallGraph(sources: SourceSet) {
  const index = createSymbolIndex(sources);
  const resolver = createResolver(sources, index);
  const nodes = new Map<Declared | Outline, GraphNode>();
  const edges = new Map<string, GraphEdge>();
  const openEnds: UnresolvedCall[] = [];

  function addEdge({ from, kind, ambiguous }: Use, target: Declared, line: number): void {
    const to = nodes.get(target);
    if (!to) return;
    const key = `${from.id} ${to.id} ${kind} ${ambiguous}`;
    const edge = edges.get(key) ?? { from, to, kind, lines: [], ambiguous };
    edges.set(key, edge);
    if (!edge.lines.includes(line)) edge.lines.push(line);
  }

  function addCall(outline: Outline, call: Call): void {
    const from = nodes.get(index.at(outline, outline.scopes[call.scope]?.symbol ?? -1) ?? outline);
    if (!from) return;
    // What `super(…)` calls is the parent's constructor.
    const target = call.target[0] === 'super' && call.target.length === 1 ? ['super', 'constructor'] : call.target;
    const meaning = resolver.meaning(outline, call.scope, target);
    // The receiver of a Python class method is the class, which constructs.
    const isClass = meaning.kind === 'instance' && target.length === 1 && target[0] === 'cls';
    const found = isClass ? meaning.types : meaning.kind === 'symbols' ? meaning.found : undefined;
    if (found) {
      const targets = found.flatMap(each => whatRuns(index, each, call.kind));
      const ambiguous = targets.length > 1 ? 'one of several' : undefined;
      for (const { to, kind } of targets) addEdge({ from, kind, ambiguous }, to, call.line);
    } else if (call.kind !== 'passes') addOpen(from, call, whyOpen(meaning));
  }

  function addOpen(from: GraphNode, { target, kind, line }: Call, why: UnresolvedReason): void {
    const name = target.at(-1) ?? '?';
    const alike = why === 'run_time' && target.length > 1 ? index.methods(name) : [];
    const namesakes = alike.filter(({ outline }) => familyOf(outline) === familyOf(from.outline));
    if (namesakes.length > 0 && namesakes.length <= maxNamesakes) {
      for (const to of namesakes) addEdge({ from, kind, ambiguous: 'by name only' }, to, line);
      return;
    }
    openEnds.push({ from, target: target.map(part => (part === '?' ? '…' : part)).join('.'), kind, line, why });
  }

  function addRelations(outline: Outline): void {
    for (const { symbol, kind, target, line } of outline.relations) {
      const declared = index.at(outline, symbol);
      const from = declared && nodes.get(declared);
      if (!declared || !from) continue;
      const meaning = resolver.meaning(outline, declared.symbol.scope, target);
      if (meaning.kind !== 'symbols') {
        openEnds.push({ from, target: target.join('.'), kind, line, why: whyOpen(meaning) });
        continue;
      }
      const ambiguous = meaning.found.length > 1 ? 'one of several' : undefined;
      for (const to of meaning.found) addEdge({ from, kind, ambiguous }, to, line);
    }
  }

  /** Go says nowhere which types an interface has: those with all its methods. */
  function addGoImplementations(declared: Declared | undefined): void {
    if (declared?.outline.language !== 'go' || declared.symbol.kind !== 'interface') return;
    for (const type of resolver.members.subtypes(declared)) {
      const from = nodes.get(type);
      if (from) addEdge({ from, kind: 'implements' }, declared, type.symbol.from);
    }
  }

  for (const outline of sources.outlines) nodes.set(outline, { id: nodes.size, outline, name: '(top level)' });
  for (const declared of index.all) {
    nodes.set(declared, { id: nodes.size, outline: declared.outline, declared, name: qualifiedName(index, declared) });
  }
  for (const outline of sources.outlines) {
    for (const call of outline.calls) addCall(outline, call);
    addRelations(outline);
    for (const number of outline.symbols.keys()) addGoImplementations(index.at(outline, number));
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()], openEnds, imports: importsOf(sources) };
}

type Use = Pick<GraphEdge, 'from' | 'kind' | 'ambiguous'>;

function qualifiedName(index: SymbolIndex, declared: Declared): string {
  const above = ({ outline, symbol, owner }: Declared) =>
    owner ?? index.at(outline, outline.scopes[symbol.scope]?.symbol ?? -1);
  // A symbol whose error-ridden source seems to hold itself ends it, too.
  const around = new Set<Declared>();
  for (let at = above(declared); at && !around.has(at); at = above(at)) around.add(at);
  return [declared, ...around]
    .flatMap(({ symbol, owner }) => (owner || !symbol.ownerName ? symbol.name : [symbol.name, symbol.ownerName]))
    .reverse()
    .join('.');
}

const whyOpen = (meaning: ResolvedName): UnresolvedReason => (meaning.kind === 'unknown' ? meaning.why : 'run_time');

const constructors = ['constructor', '__init__'];

/** The node behind a name: of a class that is called its constructor, where it has one of its own. */
function whatRuns(index: SymbolIndex, declared: Declared, kind: CallKind): { to: Declared; kind: CallKind }[] {
  const { symbol } = declared;
  if (symbol.kind === 'object' && kind !== 'calls') return [];
  const isType = symbol.kind !== 'function' && symbol.kind !== 'method';
  if (kind === 'passes' && isType && symbol.kind !== 'class') return [];
  const own = isType && kind !== 'passes' ? constructors.flatMap(name => index.members(declared, name)) : [];
  const constructs = isType || constructors.includes(symbol.name);
  return [{ to: own[0] ?? declared, kind: constructs && kind === 'calls' ? 'constructs' : kind }];
}

const familyOf = ({ language }: Outline) => (language === 'python' || language === 'go' ? language : 'script');

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
