import type { Declared } from '../../workspace/call-graph/symbols.ts';

/**
 * Why a name's meaning is not known: `run_time`, a value that only running tells; `undeclared`, nothing here declares it (a
 * global, a builtin); `package`, from a library; `not_read`, from a file of the project that was not among those read;
 * `not_there`, its module or class has no such name.
 */
export type Why = 'run_time' | 'undeclared' | 'package' | 'not_read' | 'not_there';

/** What a chain of names stands for. Several symbols or types: any of them. */
export type Meaning =
  /** Functions or classes themselves. */
  | { kind: 'symbols'; found: readonly Declared[] }
  /** A value of one of these types; `exact`: none of their subtypes'. */
  | { kind: 'instance'; types: readonly Declared[]; exact?: boolean }
  | { kind: 'module'; modules: readonly string[] }
  | { kind: 'unknown'; why: Why };

export function unknown(why: Why): Meaning {
  return { kind: 'unknown', why };
}

export function symbolsOf(found: readonly Declared[]): Meaning {
  return { kind: 'symbols', found };
}

export function instances(types: readonly Declared[]): Meaning {
  return { kind: 'instance', types };
}

/** Several meanings as one: of the same kind they are joined, of different kinds nothing is certain. */
export function merged(meanings: readonly Meaning[]): Meaning {
  const [first, ...others] = meanings;
  if (!first) return unknown('run_time');
  return others.reduce(joined, first);
}

function joined(a: Meaning, b: Meaning): Meaning {
  if (a.kind === 'symbols' && b.kind === 'symbols') return symbolsOf([...new Set([...a.found, ...b.found])]);
  if (a.kind === 'instance' && b.kind === 'instance') return instances([...new Set([...a.types, ...b.types])]);
  if (a.kind === 'module' && b.kind === 'module')
    return { kind: 'module', modules: [...new Set([...a.modules, ...b.modules])] };
  return a.kind === 'unknown' && b.kind === 'unknown' ? a : unknown('run_time');
}
