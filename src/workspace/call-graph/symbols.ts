import type { SourceSet } from '../../files/graph/source-set.ts';
import type { Chain, Outline, OutlineSymbol } from '../outline/outline.ts';

/** A symbol of some file of the set. */
export interface Declared {
  outline: Outline;
  /** Its number in the outline. */
  number: number;
  symbol: OutlineSymbol;
  /** Its class, if it has one. */
  owner?: Declared;
}

/** A variable's one value, or `unsure` when it has several or none that can be read. */
export type Held = { value: Chain } | 'unsure';

/** All symbols and variables, by where and how they can be named. */
export interface SymbolIndex {
  all: readonly Declared[];
  at(outline: Outline, number: number): Declared | undefined;
  named(outline: Outline, scope: number, name: string): readonly Declared[];
  members(owner: Declared, name: string): readonly Declared[];
  allMembers(owner: Declared): readonly Declared[];
  held(outline: Outline, scope: number, name: string): Held | undefined;
  /** Methods of that name, whosever they are. */
  methods(name: string): readonly Declared[];
}

export function createSymbolIndex(sources: SourceSet): SymbolIndex {
  const all = sources.outlines.flatMap(declaredIn);
  const byOutline = Map.groupBy(all, each => each.outline);
  adoptGoMethods(sources, all);
  const members = Map.groupBy(
    all.filter(each => each.owner),
    each => each.owner,
  );
  const names = new Map<Outline, Map<string, Declared[]>>();
  for (const [outline, list] of byOutline) {
    const free = list.filter(({ symbol }) => symbol.kind !== 'method');
    names.set(outline, withoutSignatures(Map.groupBy(free, ({ symbol }) => `${symbol.scope} ${symbol.name}`)));
  }
  const variables = new Map(sources.outlines.map(outline => [outline, heldIn(outline)]));
  const methods = Map.groupBy(
    all.filter(({ symbol }) => symbol.kind === 'method'),
    ({ symbol }) => symbol.name,
  );
  return {
    all,
    at: (outline, number) => byOutline.get(outline)?.[number],
    named: (outline, scope, name) => names.get(outline)?.get(`${scope} ${name}`) ?? [],
    members: (owner, name) => implemented((members.get(owner) ?? []).filter(({ symbol }) => symbol.name === name)),
    allMembers: owner => members.get(owner) ?? [],
    held: (outline, scope, name) => variables.get(outline)?.get(`${scope} ${name}`),
    methods: name => methods.get(name) ?? [],
  };
}

function declaredIn(outline: Outline): Declared[] {
  const list = outline.symbols.map((symbol, number): Declared => ({ outline, number, symbol }));
  for (const each of list) if (each.symbol.owner !== undefined) each.owner = list[each.symbol.owner];
  return list;
}

/** A Go method belongs to a type of its package, in whichever file that is. */
function adoptGoMethods(sources: SourceSet, all: readonly Declared[]): void {
  const key = (outline: Outline, name: string) => `${sources.moduleOf(outline)} ${name}`;
  const types = new Map<string, Declared>();
  for (const each of all) {
    const { kind, scope, name } = each.symbol;
    if (each.outline.language === 'go' && scope === 0 && kind !== 'function' && kind !== 'method') {
      types.set(key(each.outline, name), each);
    }
  }
  for (const each of all) {
    const { ownerName } = each.symbol;
    if (ownerName !== undefined) each.owner = types.get(key(each.outline, ownerName));
  }
}

function withoutSignatures(groups: Map<string, Declared[]>): Map<string, Declared[]> {
  return new Map([...groups].map(([name, list]) => [name, implemented(list)]));
}

/** Overloads are one function: their signatures go where a body is; of signatures alone the first stays. */
function implemented(list: Declared[]): Declared[] {
  const bodies = list.filter(({ symbol }) => !symbol.declared);
  return bodies.length > 0 ? bodies : list.slice(0, 1);
}

function heldIn(outline: Outline): Map<string, Held> {
  const held = new Map<string, Held>();
  const declared = new Set(
    outline.variables.filter(each => !each.assigned).map(({ scope, name }) => `${scope} ${name}`),
  );
  for (const { scope, name } of outline.symbols) declared.add(`${scope} ${name}`);
  for (const { scope, name, value, assigned } of outline.variables) {
    const key = assigned ? declaringKey(outline, scope, name, declared) : `${scope} ${name}`;
    const before = held.get(key);
    const same = before === undefined || (before !== 'unsure' && before.value.join('.') === value?.join('.'));
    held.set(key, value && same ? { value } : 'unsure');
  }
  return held;
}

/** Where the variable that is assigned to is declared. */
function declaringKey(outline: Outline, scope: number, name: string, known: ReadonlySet<string>): string {
  for (let at: number | undefined = scope; at !== undefined; at = outline.scopes[at]?.parent) {
    if (known.has(`${at} ${name}`)) return `${at} ${name}`;
  }
  return `0 ${name}`;
}
