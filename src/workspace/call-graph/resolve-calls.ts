import { type Chain, type Outline, scopesAround } from '../outline/outline.ts';
import type { Declared, Held, SourceSet, SymbolIndex } from './symbols.ts';

/**
 * Why a name's meaning is not known: `run_time`, a value that only running tells; `undeclared`, nothing here declares it (a
 * global, a builtin); `package`, from a library; `not_read`, from a file of the project that was not among those read;
 * `not_there`, its module or class has no such name.
 */
export type UnresolvedReason = 'run_time' | 'undeclared' | 'package' | 'not_read' | 'not_there';

/** What a chain of names stands for. Several symbols or types: any of them. */
export type ResolvedName =
  /** Functions or classes themselves. */
  | { kind: 'symbols'; found: readonly Declared[] }
  /** A value of one of these types; `exact`: none of their subtypes'. */
  | { kind: 'instance'; types: readonly Declared[]; exact?: boolean }
  | { kind: 'module'; modules: readonly string[] }
  | { kind: 'unknown'; why: UnresolvedReason };

export const unknown = (why: UnresolvedReason): ResolvedName => ({ kind: 'unknown', why });

export const symbolsOf = (found: readonly Declared[]): ResolvedName => ({ kind: 'symbols', found });

export const instances = (types: readonly Declared[]): ResolvedName => ({ kind: 'instance', types });

/** Several meanings as one: of the same kind they are joined, of different kinds nothing is certain. */
const merged = (meanings: readonly ResolvedName[]): ResolvedName =>
  meanings.length === 0 ? unknown('run_time') : meanings.reduce(joined);

const union = <Item>(a: readonly Item[], b: readonly Item[]): Item[] => [...new Set([...a, ...b])];

function joined(a: ResolvedName, b: ResolvedName): ResolvedName {
  if (a.kind === 'symbols' && b.kind === 'symbols') return symbolsOf(union(a.found, b.found));
  if (a.kind === 'instance' && b.kind === 'instance') return instances(union(a.types, b.types));
  if (a.kind === 'module' && b.kind === 'module') return { kind: 'module', modules: union(a.modules, b.modules) };
  return a.kind === 'unknown' && b.kind === 'unknown' ? a : unknown('run_time');
}

export type Members = ReturnType<typeof createMembers>;

export type Follow = (outline: Outline, scope: number, chain: Chain) => ResolvedName;

/** What types have, inherit and override. */
export function createMembers(index: SymbolIndex, follow: Follow) {
  const parentsOf = new Map<Declared, Declared[]>();
  let childrenOf: Map<Declared, Declared[]> | undefined;
  /** Fields whose value is being found: one that is made from itself says nothing. */
  const open = new Set<Held>();

  /** Direct parents: what a type extends, implements or embeds, among the files read. */
  function parents(type: Declared): readonly Declared[] {
    const known = parentsOf.get(type);
    if (known) return known;
    const found: Declared[] = [];
    // Set before it is complete, so that a class that extends itself ends.
    parentsOf.set(type, found);
    for (const { symbol, target } of type.outline.relations) {
      if (symbol !== type.number) continue;
      const meaning = follow(type.outline, type.symbol.scope, target);
      if (meaning.kind === 'symbols') found.push(...meaning.found);
    }
    return found;
  }

  function children(type: Declared): readonly Declared[] {
    if (!childrenOf) {
      childrenOf = new Map();
      for (const each of index.all) {
        // A Go struct that embeds a type is no subtype of it.
        if (each.outline.language === 'go') continue;
        for (const parent of parents(each)) childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), each]);
      }
    }
    return childrenOf.get(type) ?? [];
  }

  /** Direct and indirect subtypes; for a Go interface, the types that have all its methods. */
  function subtypes(type: Declared): readonly Declared[] {
    if (type.outline.language === 'go') return type.symbol.kind === 'interface' ? implementers(type) : [];
    return reachable(type, children).slice(1);
  }

  function implementers(type: Declared): Declared[] {
    const members = reachable(type, parents).flatMap(index.allMembers);
    const wanted = new Set(members.map(({ symbol }) => symbol.name));
    if (wanted.size === 0) return [];
    const [rarest = ''] = [...wanted].sort((a, b) => index.methods(a).length - index.methods(b).length);
    const owners = new Set(index.methods(rarest).flatMap(({ owner }) => (owner ? [owner] : [])));
    return index.all.filter(each => {
      if (each.outline.language !== 'go' || (each.symbol.kind !== 'class' && each.symbol.kind !== 'type')) return false;
      // What has not even the rarest method itself can only have inherited it.
      if (!owners.has(each) && parents(each).length === 0) return false;
      return [...wanted].every(name => inherited(each, name)?.kind === 'symbols');
    });
  }

  /** The member of a type itself or of the nearest type that it inherits from. */
  function inherited(type: Declared, name: string): ResolvedName | undefined {
    for (const each of reachable(type, parents)) {
      const own = index.members(each, name);
      if (own.length > 0) return symbolsOf(own);
      const { body } = each.symbol;
      const held = body === undefined ? undefined : index.held(each.outline, body, name);
      if (held === undefined) continue;
      if (held === 'unsure' || open.has(held)) return unknown('run_time');
      open.add(held);
      const meaning = follow(each.outline, body ?? 0, held.value);
      open.delete(held);
      return meaning;
    }
    return undefined;
  }

  /** A member of one of the types; unless `exact`, what subtypes have in its place counts too. */
  const find = (types: readonly Declared[], name: string, exact: boolean): ResolvedName =>
    merged(types.map(type => findIn(type, name, exact)));

  function findIn(type: Declared, name: string, exact: boolean): ResolvedName {
    const found = inherited(type, name);
    if (found && (exact || found.kind !== 'symbols')) return found;
    const below = exact ? [] : subtypes(type).flatMap(each => index.members(each, name));
    const own = found?.kind === 'symbols' ? found.found : [];
    if (own.length + below.length > 0) return symbolsOf([...new Set([...own, ...below])]);
    const knowsParents = (each: Declared) =>
      parents(each).length >= each.outline.relations.filter(({ symbol }) => symbol === each.number).length;
    return unknown(reachable(type, parents).every(knowsParents) ? 'not_there' : 'package');
  }

  return { parents, subtypes, find };
}

/** A type and all that `next` leads to from it, the near ones first. */
function reachable(start: Declared, next: (type: Declared) => readonly Declared[]): Declared[] {
  const found = new Set([start]);
  for (const each of found) for (const other of next(each)) found.add(other);
  return [...found];
}

/** Values that lead from one to the next are followed this far; circles end here too. */
const deepest = 12;

interface Ask {
  sources: SourceSet;
  index: SymbolIndex;
  members: Members;
  outline: Outline;
  scope: number;
  depth: number;
}

/** Finds what names mean, as far as syntax tells: what would have to be guessed is said to be unknown. */
export function createResolver(sources: SourceSet, index: SymbolIndex) {
  const meaning: Follow = (outline, scope, chain) =>
    follow({ sources, index, members, outline, scope, depth: 0 }, chain);
  const members = createMembers(index, meaning);
  return { meaning, members };
}

function follow(ask: Ask, chain: Chain): ResolvedName {
  if (ask.depth > deepest) return unknown('run_time');
  const [first = '?', ...rest] = chain;
  let found = apply(ask, first, name => lookUp(ask, name));
  for (const part of rest) {
    const object = found;
    found = apply(ask, part, name => member(ask, object, name));
  }
  return found;
}

/** One part of a chain, and what its call gives where it is called. */
function apply(ask: Ask, part: string, find: (name: string) => ResolvedName): ResolvedName {
  if (!part.endsWith('()')) return find(part);
  const name = part.slice(0, -2);
  return name === 'super' ? find(name) : callOf(ask, find(name));
}

function callOf(ask: Ask, callee: ResolvedName): ResolvedName {
  if (callee.kind === 'module') return callOf(ask, exported(deeper(ask), callee.modules, 'default'));
  if (callee.kind !== 'symbols') return callee.kind === 'unknown' ? callee : unknown('run_time');
  return merged(callee.found.map(each => resultOf(ask, each)));
}

function resultOf(ask: Ask, callee: Declared): ResolvedName {
  const { kind, returns, scope } = callee.symbol;
  if (kind !== 'function' && kind !== 'method') return instances([callee]);
  return returns ? follow({ ...deeper(ask), outline: callee.outline, scope }, returns) : unknown('run_time');
}

/** A name without a receiver, from the innermost scope outwards. */
function lookUp(ask: Ask, name: string): ResolvedName {
  if (name === '?') return unknown('run_time');
  if (name === 'super') return parentsAround(ask);
  for (const { number, kind, self, parent = 0 } of scopesAround(ask.outline, ask.scope)) {
    if (kind === 'class' && number !== ask.scope) continue;
    if (self?.name === name) return follow({ ...deeper(ask), scope: parent }, self.type);
    const found = inScope({ ...ask, scope: number }, name);
    if (found) return found;
  }
  const elsewhere = imported(ask, name) ?? beside(ask, name) ?? starred(ask, name);
  return elsewhere ?? unknown(name === 'this' ? 'run_time' : 'undeclared');
}

function inScope(ask: Ask, name: string): ResolvedName | undefined {
  const symbols = ask.index.named(ask.outline, ask.scope, name);
  const held = ask.index.held(ask.outline, ask.scope, name);
  if (!held) return symbols.length > 0 ? symbolsOf(symbols) : undefined;
  if (held === 'unsure' || symbols.length > 0) return unknown('run_time');
  // `x = x or y` says nothing of itself.
  const scope = held.value[0]?.replace('()', '') === name ? ask.outline.scopes[ask.scope]?.parent : ask.scope;
  return scope === undefined ? unknown('run_time') : follow({ ...deeper(ask), scope }, held.value);
}

function imported(ask: Ask, name: string): ResolvedName | undefined {
  const entries = ask.outline.imports.filter(entry => entry.local === name);
  return entries.length === 0 ? undefined : merged(entries.map(entry => fromModule(ask, entry.from, entry.name)));
}

/** What another module has under a name; the module itself for `*`. */
function fromModule(ask: Ask, specifier: string, name: string): ResolvedName {
  const { sources, outline } = ask;
  const modules = sources.find(outline, specifier);
  if (modules.length === 0) return unknown(sources.isOurs(outline, specifier) ? 'not_read' : 'package');
  return name === '*' ? { kind: 'module', modules } : exported(deeper(ask), modules, name);
}

/** The other files of a Go package share its names. */
function beside(ask: Ask, name: string): ResolvedName | undefined {
  if (ask.outline.language !== 'go') return undefined;
  const found = exported(deeper(ask), [ask.sources.moduleOf(ask.outline)], name);
  return isMissing(found) ? undefined : found;
}

function starred(ask: Ask, name: string): ResolvedName | undefined {
  const entries = ask.outline.imports.filter(entry => entry.local === '*');
  const modules = entries.map(entry => ask.sources.find(ask.outline, entry.from));
  const found = modules.flat().length > 0 ? exported(deeper(ask), modules.flat(), name) : undefined;
  if (found && !isMissing(found)) return found;
  return modules.some(none => none.length === 0) ? unknown('package') : undefined;
}

const isMissing = (meaning: ResolvedName): boolean => meaning.kind === 'unknown' && meaning.why === 'not_there';

/** A name that modules offer to others. */
function exported(ask: Ask, modules: readonly string[], name: string): ResolvedName {
  if (ask.depth > deepest) return unknown('run_time');
  const found = modules.flatMap(module => {
    const inFiles = ask.sources.filesOf(module).flatMap(outline => exportedBy({ ...ask, outline, scope: 0 }, name));
    const inner = inFiles.length === 0 ? ask.sources.submodule(module, name) : undefined;
    return inner === undefined ? inFiles : [{ kind: 'module', modules: [inner] } as const];
  });
  return found.length > 0 ? merged(found) : unknown('not_there');
}

function exportedBy(ask: Ask, name: string): ResolvedName[] {
  const { outline } = ask;
  if (outline.language === 'go') return present(inScope(ask, name));
  if (outline.language === 'python') return present(inScope(ask, name) ?? imported(ask, name) ?? starred(ask, name));
  const own = outline.exports.filter(entry => entry.as === name);
  const entries = own.length > 0 || name === 'default' ? own : outline.exports.filter(entry => entry.as === '*');
  const found = entries.map(entry => {
    if (entry.from === undefined) return inScope(ask, entry.name) ?? imported(ask, entry.name) ?? unknown('run_time');
    return fromModule(ask, entry.from, entry.as === '*' ? name : entry.name);
  });
  // Of several `export *` those that don't have the name don't count.
  const having = found.filter(each => !isMissing(each));
  return having.length > 1 ? having.filter(each => each.kind !== 'unknown') : having;
}

/** What stands after a dot. */
function member(ask: Ask, object: ResolvedName, name: string): ResolvedName {
  switch (object.kind) {
    case 'unknown':
      return object;
    case 'module':
      return exported(deeper(ask), object.modules, name);
    case 'instance':
      return ask.members.find(object.types, name, object.exact ?? false);
    case 'symbols': {
      const { kind } = object.found[0]?.symbol ?? {};
      if (kind !== 'function' && kind !== 'method') return ask.members.find(object.found, name, true);
      // The function itself, called in another way.
      return ['bind', 'call', 'apply'].includes(name) ? object : unknown('run_time');
    }
  }
}

function parentsAround(ask: Ask): ResolvedName {
  const { self, parent = 0 } = scopesAround(ask.outline, ask.scope).find(scope => scope.self) ?? {};
  const own = self && follow({ ...deeper(ask), scope: parent }, self.type);
  if (own?.kind !== 'instance') return unknown('run_time');
  const types = own.types.flatMap(type => ask.members.parents(type));
  return types.length > 0 ? { kind: 'instance', types, exact: true } : unknown('package');
}

const deeper = (ask: Ask): Ask => ({ ...ask, depth: ask.depth + 1 });

const present = (meaning: ResolvedName | undefined): ResolvedName[] => (meaning ? [meaning] : []);
