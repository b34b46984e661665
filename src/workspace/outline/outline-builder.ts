import type { Node } from 'web-tree-sitter';
import type {
  CallKind,
  Chain,
  Import,
  Language,
  Outline,
  OutlineSymbol,
  Scope,
  TypeRelation,
  Variable,
} from './outline.ts';
import { scopesAround } from './outline.ts';

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

export type Writer = ReturnType<typeof createWriter>;

export const lineOf = (node: Node): number => node.startPosition.row + 1;

/** An outline that is being written. */
export function createWriter(path: string, language: Language, root: Node) {
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
  /** Of each name in a scope the first two: more say no more. */
  const firstTwo = new Map<string, readonly Variable[]>();
  const variablesOf = (scope: number, name: string) => firstTwo.get(`${scope} ${name}`) ?? [];
  return {
    outline,
    /** Adds a symbol and answers its number. */
    symbol({ node, place, name, kind, ownerName, returns, declared = false }: SymbolDraft): number {
      const { owner, scope } = place;
      const [from, to] = [lineOf(node), node.endPosition.row + 1];
      return outline.symbols.push({ name, kind, from, to, scope, owner, ownerName, declared, returns }) - 1;
    },
    /** Opens a scope inside another; with a symbol, as that symbol's body. */
    open(parent: number, kind: Scope['kind'], symbol?: number, self?: Scope['self']): number {
      const opened = outline.scopes.push({ parent, kind, symbol: symbol ?? outline.scopes[parent]?.symbol, self }) - 1;
      const owner = symbol === undefined ? undefined : outline.symbols[symbol];
      if (owner) owner.body = opened;
      return opened;
    },
    variable(scope: number, name: string, value?: Chain, how?: Variable['how']): void {
      const variable = { scope, name, value, how };
      outline.variables.push(variable);
      const isKnown = ({ number }: { number: number }) => variablesOf(number, name).length > 0;
      const declared = how === 'assigned' ? scopesAround(outline, scope).find(isKnown) : undefined;
      const place = declared?.number ?? scope;
      firstTwo.set(`${place} ${name}`, [...variablesOf(place, name), variable].slice(0, 2));
    },
    variablesOf,
    call: (scope: number, target: Chain, kind: CallKind, node: Node) =>
      void outline.calls.push({ scope, target, kind, line: lineOf(node) }),
    import: (node: Node, entry: Omit<Import, 'line'>) => void outline.imports.push({ ...entry, line: lineOf(node) }),
    relation: (symbol: number, kind: TypeRelation['kind'], target: Chain, node: Node) =>
      void outline.relations.push({ symbol, kind, target, line: lineOf(node) }),
  };
}

/** The member scope of the class whose method a scope is in. */
export function membersAround({ outline }: Writer, from: number): number | undefined {
  const method = scopesAround(outline, from).find(({ self }) => self)?.symbol;
  const owner = outline.symbols[method ?? -1]?.owner;
  return outline.symbols[owner ?? -1]?.body;
}

/** What a method sets a field to, as the class looks it up: own names stand for what they hold. Undefined: unknown. */
export function fieldValue({ outline, variablesOf }: Writer, from: number, value: Chain | undefined) {
  let [at, chain] = [from, value];
  for (let left = maxChainLength; chain && left > 0; left--) {
    const [first = '', ...rest]: Chain = chain;
    const around = scopesAround(outline, at);
    const end = around.findIndex(({ kind }) => kind === 'class');
    const inside = around.slice(0, end);
    const self = inside.find(scope => scope.self)?.self;
    if (self?.name === first) return [...self.type, ...rest];
    const name = first.replace('()', '');
    const [[held, other] = []] = inside
      .map(({ number }) => variablesOf(number, name))
      .filter(found => found.length > 0);
    if (!held) return chain;
    at = held.scope;
    chain = other === undefined && first === name && held.value ? [...held.value, ...rest] : undefined;
  }
  return undefined;
}

/** Opens a namespace. Where a class, a function or another namespace has its name, they are one, which gets the members. */
export function enterNamespace(writer: Writer, node: Node, { scope, owner }: Place, name: string): Required<Place> {
  const known = writer.outline.symbols.findIndex(
    each => each.scope === scope && each.name === name && each.kind !== 'method',
  );
  if (known !== -1) return { scope: writer.open(scope, 'block'), owner: known };
  const symbol = writer.symbol({ node, place: { scope, owner }, name, kind: 'object' });
  return { scope: writer.open(scope, 'block', symbol), owner: symbol };
}

/** A node to visit, and where it stands. */
export type Pending = readonly [node: Node, place: Place];

/** Reads one kind of node; answers what is to be visited next. */
export type Read = (writer: Writer, node: Node, place: Place) => readonly Pending[];

/** How a language's nodes are read, by their kind. Of all others the children are visited. */
export type Readers = Readonly<Record<string, Read>>;

/** One reader for several kinds of nodes, which are separated by blanks. */
export const readersOf = (kinds: string, read: Read): Readers =>
  Object.fromEntries(kinds.split(' ').map(kind => [kind, read]));

/** Reads a tree from its root without recursion: source may be nested deeper than a stack. */
export function readTree(writer: Writer, root: Node, readers: Readers): void {
  const waiting: Pending[] = [[root, { scope: 0 }]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [node, place] = next;
    const read = readers[node.type];
    const inner = read ? read(writer, node, place) : childrenAt(node, place);
    // One by one: as arguments of one call, the children of a large node would not fit on the stack.
    for (const pending of inner.toReversed()) waiting.push(pending);
  }
}

/** Of what declares and uses nothing by itself. */
export const nothing: Read = () => [];

export const block: Read = (writer, node, place) => childrenAt(node, { scope: writer.open(place.scope, 'block') });

/** All named children of a node, at one place. */
export const childrenAt = (node: Node, place: Place): Pending[] => named(node).map(child => [child, place]);

export const named = (node: Node): Node[] => node.namedChildren.filter(child => child !== null);

export const field = (node: Node, name: string): Node | undefined => node.childForFieldName(name) ?? undefined;

export const fields = (node: Node, name: string): Node[] =>
  node.childrenForFieldName(name).filter(child => child !== null);

/** The named children of a field; none where it is not there. */
export function namedIn(node: Node, name: string): Node[] {
  const found = field(node, name);
  return found ? named(found) : [];
}

/** A field as what is to be visited next, where it is there. */
export function fieldAt(node: Node, name: string, place: Place): Pending[] {
  const found = field(node, name);
  return found ? [[found, place]] : [];
}

/** The children of a field as what is to be visited next. */
export const insideAt = (node: Node, name: string, place: Place): Pending[] =>
  namedIn(node, name).map(child => [child, place]);

export const nameOf = (node: Node, otherwise = '?'): string => field(node, 'name')?.text ?? otherwise;

/** The text between the quotes. */
export const stringText = (node: Node | undefined): string =>
  node ? node.text.replace(/^[brufBRUF]*(['"`]{1,3})([\s\S]*)\1$/, '$2') : '';

/** The last part of a chain marked as called. */
export function called(chain: Chain): Chain {
  const last = chain.at(-1);
  return last === undefined || last === '?' ? ['?'] : [...chain.slice(0, -1), `${last}()`];
}

/** How a language writes what chains are made of, by kinds of nodes. */
export interface ChainSyntax {
  /** A name, `this`, `super`. */
  names: ReadonlySet<string>;
  /** The fields with the object of a member and with its name. */
  members: Readonly<Record<string, readonly [object: string, name: string]>>;
  /** Values of the language itself. */
  literals: ReadonlySet<string>;
  /** What may be a function that is handed over by its name. */
  passable: ReadonlySet<string>;
  /** The field with the callee of a call or the class of a construction. */
  callees: Readonly<Record<string, string>>;
  /** What is inside something that changes nothing here: parentheses, `await`, `!`. Undefined for other nodes. */
  inside(node: Node): Node | undefined;
}

const maxChainLength = 12;

function calleeOf({ callees }: ChainSyntax, node: Node): Node | undefined {
  const name = callees[node.type];
  return name === undefined ? undefined : field(node, name);
}

function memberOf({ members }: ChainSyntax, node: Node): { object: Node; name: string } | undefined {
  const [object, name] = members[node.type]?.map(part => field(node, part)) ?? [];
  return object && name && { object, name: name.text };
}

/** An expression as a chain. */
export function chainOf(syntax: ChainSyntax, expression: Node): Chain {
  const parts: string[] = [];
  let suffix = '';
  for (let node: Node | undefined = expression; node && parts.length < maxChainLength; ) {
    if (syntax.names.has(node.type)) return [`${node.text}${suffix}`, ...parts];
    const member = memberOf(syntax, node);
    if (member) {
      parts.unshift(`${member.name}${suffix}`);
      suffix = '';
      node = member.object;
      continue;
    }
    const callee = calleeOf(syntax, node);
    // A call of what a call gave is nothing that a name stands for.
    if (callee && suffix !== '') break;
    if (callee) suffix = '()';
    node = callee ?? syntax.inside(node);
  }
  return ['?', ...parts];
}

/** By a name that no source can declare. */
export const builtIn: Chain = ['(built in)()'];

/** What a value is, if that can be told. */
export function heldBy(syntax: ChainSyntax, value: Node | undefined): Chain | undefined {
  if (value && syntax.literals.has(value.type)) return builtIn;
  const chain = value && chainOf(syntax, value);
  return chain?.[0] === '?' ? undefined : chain;
}

/** Takes note of a function that is handed over by its name, also as a keyword argument or an element of a literal. */
export function passes(syntax: ChainSyntax, writer: Writer, given: Node | undefined, { scope }: Place): void {
  const element = given?.type === 'literal_element' ? named(given)[0] : given;
  const value = element?.type === 'keyword_argument' ? field(element, 'value') : element;
  if (!value || !syntax.passable.has(value.type)) return;
  const target = chainOf(syntax, value);
  if (target[0] !== '?') writer.call(scope, target, 'passes', value);
}

/** Of what hands over each of its children. */
export function passesChildren(syntax: ChainSyntax): Read {
  return (writer, node, place) => {
    for (const child of named(node)) passes(syntax, writer, child, place);
    return childrenAt(node, place);
  };
}

/** A pair of a key and the value that it hands over. */
export const pairReader =
  (syntax: ChainSyntax): Read =>
  (writer, node, place) => {
    passes(syntax, writer, field(node, 'value'), place);
    return childrenAt(node, place);
  };

/** A call, and the functions that are handed over to it. */
export const callReader =
  (syntax: ChainSyntax, kindOf: (node: Node, callee: Node) => CallKind): Read =>
  (writer, node, place) => {
    const callee = calleeOf(syntax, node);
    const list = field(node, 'arguments');
    if (callee && callee.type !== 'import')
      writer.call(place.scope, chainOf(syntax, callee), kindOf(node, callee), node);
    // A generator as the only argument hands over nothing by its name.
    for (const argument of list && list.type !== 'generator_expression' ? named(list) : [])
      passes(syntax, writer, argument, place);
    return childrenAt(node, place);
  };
