import type { Declared, SymbolIndex } from '../../workspace/call-graph/symbols.ts';
import type { Chain, Outline } from '../../workspace/outline/outline.ts';
import { type Meaning, merged, symbolsOf, unknown } from './meaning.ts';

/** What types have, inherit and override. */
export interface Members {
  /** Direct parents: what a type extends, implements or embeds, among the files read. */
  parents(type: Declared): readonly Declared[];
  /** Direct and indirect subtypes; for a Go interface, the types that have all its methods. */
  subtypes(type: Declared): readonly Declared[];
  /** A member of one of the types; unless `exact`, what subtypes have in its place counts too. */
  find(types: readonly Declared[], name: string, exact: boolean): Meaning;
}

export type Follow = (outline: Outline, scope: number, chain: Chain) => Meaning;

export function createMembers(index: SymbolIndex, follow: Follow): Members {
  const parentsOf = new Map<Declared, Declared[]>();
  let childrenOf: Map<Declared, Declared[]> | undefined;

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

  function subtypes(type: Declared): readonly Declared[] {
    if (type.outline.language === 'go') return type.symbol.kind === 'interface' ? implementers(type) : [];
    return reachable(type, children).slice(1);
  }

  function implementers(type: Declared): Declared[] {
    const wanted = new Set(
      reachable(type, parents).flatMap(each => index.allMembers(each).map(({ symbol }) => symbol.name)),
    );
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
  function inherited(type: Declared, name: string): Meaning | undefined {
    for (const each of reachable(type, parents)) {
      const own = index.members(each, name);
      if (own.length > 0) return symbolsOf(own);
      const { body } = each.symbol;
      const held = body === undefined ? undefined : index.held(each.outline, body, name);
      if (held === 'unsure') return unknown('run_time');
      if (held) return follow(each.outline, body ?? 0, held.value);
    }
    return undefined;
  }

  function find(types: readonly Declared[], name: string, exact: boolean): Meaning {
    return merged(types.map(type => findIn(type, name, exact)));
  }

  function findIn(type: Declared, name: string, exact: boolean): Meaning {
    const found = inherited(type, name);
    if (found && (exact || found.kind !== 'symbols')) return found;
    const below = exact ? [] : subtypes(type).flatMap(each => index.members(each, name));
    const own = found?.kind === 'symbols' ? found.found : [];
    if (own.length + below.length > 0) return symbolsOf([...new Set([...own, ...below])]);
    const complete = reachable(type, parents).every(each => knowsParents(each));
    return unknown(complete ? 'not_there' : 'package');
  }

  function knowsParents(type: Declared): boolean {
    const written = type.outline.relations.filter(({ symbol }) => symbol === type.number).length;
    return parents(type).length >= written;
  }

  return { parents, subtypes, find };
}

/** A type and all that `next` leads to from it, the near ones first. */
function reachable(start: Declared, next: (type: Declared) => readonly Declared[]): Declared[] {
  const found = new Set([start]);
  for (const each of found) for (const other of next(each)) found.add(other);
  return [...found];
}
