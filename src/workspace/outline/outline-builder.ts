import type { Node } from 'web-tree-sitter';
import type { CallKind, Chain, Import, Language, Outline, OutlineSymbol, Scope, TypeRelation } from './outline.ts';

/** Where a reader of a language stands in the tree. */
export interface Place {
  scope: number;
  /** Number of the class or object whose members these are. */
  owner?: number;
}

export interface SymbolDraft extends Pick<OutlineSymbol, 'name' | 'kind'> {
  /** The whole declaration. */
  node: Node;
  place: Place;
  ownerName?: string;
  declared?: boolean;
  returns?: Chain;
}

/** An outline that is being written. */
export interface Sketch {
  outline: Outline;
  /** Adds a symbol and answers its number. */
  symbol(draft: SymbolDraft): number;
  /** Opens a scope inside another; with a symbol, as that symbol's body. */
  open(parent: number, kind: Scope['kind'], symbol?: number, self?: Scope['self']): number;
  variable(scope: number, name: string, value?: Chain, assigned?: boolean): void;
  call(scope: number, target: Chain, kind: CallKind, node: Node): void;
  import(node: Node, entry: Omit<Import, 'line'>): void;
  relation(symbol: number, kind: TypeRelation['kind'], target: Chain, node: Node): void;
}

export function lineOf(node: Node): number {
  return node.startPosition.row + 1;
}

export function createSketch(path: string, language: Language, root: Node): Sketch {
  const outline: Outline = {
    path,
    language,
    scopes: [{ kind: 'file' }],
    symbols: [],
    imports: [],
    exports: [],
    variables: [],
    calls: [],
    relations: [],
    broken: root.hasError,
  };
  return {
    outline,
    symbol({ node, place, name, kind, ownerName, returns, declared = false }) {
      const { owner, scope } = place;
      const [from, to] = [lineOf(node), node.endPosition.row + 1];
      return outline.symbols.push({ name, kind, from, to, scope, owner, ownerName, declared, returns }) - 1;
    },
    open(parent, kind, symbol, self) {
      const opened = outline.scopes.push({ parent, kind, symbol: symbol ?? outline.scopes[parent]?.symbol, self }) - 1;
      const owner = symbol === undefined ? undefined : outline.symbols[symbol];
      if (owner) owner.body = opened;
      return opened;
    },
    variable: (scope, name, value, assigned) => void outline.variables.push({ scope, name, value, assigned }),
    call: (scope, target, kind, node) => void outline.calls.push({ scope, target, kind, line: lineOf(node) }),
    import: (node, entry) => void outline.imports.push({ ...entry, line: lineOf(node) }),
    relation: (symbol, kind, target, node) => void outline.relations.push({ symbol, kind, target, line: lineOf(node) }),
  };
}

/** The member scope of the class whose method a scope is in. */
export function membersAround({ outline }: Sketch, from: number): number | undefined {
  for (let at: number | undefined = from; at !== undefined; at = outline.scopes[at]?.parent) {
    const scope = outline.scopes[at];
    if (!scope?.self) continue;
    const owner = outline.symbols[scope.symbol ?? -1]?.owner;
    return owner === undefined ? undefined : outline.symbols[owner]?.body;
  }
  return undefined;
}

/** A node to visit, and where it stands. */
export type Pending = readonly [node: Node, place: Place];

/** Visits a tree from its root without recursion: source may be nested deeper than a stack. `visit` answers what comes next. */
export function walkTree(root: Node, visit: (node: Node, place: Place) => readonly Pending[]): void {
  const waiting: Pending[] = [[root, { scope: 0 }]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const found = visit(...next);
    for (let at = found.length - 1; at >= 0; at--) {
      const pending = found[at];
      if (pending) waiting.push(pending);
    }
  }
}

/** All named children of a node, at one place. */
export function childrenAt(node: Node, place: Place): Pending[] {
  return named(node).map(child => [child, place]);
}

export function named(node: Node): Node[] {
  return node.namedChildren.filter(child => child !== null);
}

export function field(node: Node, name: string): Node | undefined {
  return node.childForFieldName(name) ?? undefined;
}

export function fields(node: Node, name: string): Node[] {
  return node.childrenForFieldName(name).filter(child => child !== null);
}

/** The text between the quotes. */
export function stringText(node: Node | undefined): string {
  return node ? node.text.replace(/^[brufBRUF]*(['"`]{1,3})([\s\S]*)\1$/, '$2') : '';
}

/** The last part of a chain marked as called. */
export function called(chain: Chain): Chain {
  const last = chain.at(-1);
  return last === undefined || last === '?' ? ['?'] : [...chain.slice(0, -1), `${last}()`];
}

/** How a language writes what chains are made of; every function answers undefined for other nodes. */
export interface ChainSyntax {
  /** A name, `this`, `super`. */
  name(node: Node): string | undefined;
  member(node: Node): { object: Node; name: string } | undefined;
  /** The callee of a call or the class of a construction. */
  callee(node: Node): Node | undefined;
  /** What is inside something that changes nothing here: parentheses, `await`, `!`. */
  inside(node: Node): Node | undefined;
}

const maxChainLength = 12;

/** An expression as a chain. */
export function chainOf(syntax: ChainSyntax, expression: Node): Chain {
  const parts: string[] = [];
  let suffix = '';
  for (let node: Node | undefined = expression; node && parts.length < maxChainLength; ) {
    const name = syntax.name(node);
    if (name !== undefined) return [`${name}${suffix}`, ...parts];
    const member = syntax.member(node);
    if (member) {
      parts.unshift(`${member.name}${suffix}`);
      suffix = '';
      node = member.object;
      continue;
    }
    const callee = syntax.callee(node);
    // A call of what a call gave is nothing that a name stands for.
    if (callee && suffix !== '') break;
    if (callee) suffix = '()';
    node = callee ?? syntax.inside(node);
  }
  return ['?', ...parts];
}
