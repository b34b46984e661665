import { posix } from 'node:path';
import { type Chain, languageOf, type Outline, type OutlineSymbol, scopesAround } from '../outline/outline.ts';

/** The place of a Go module: its `go.mod` and the import path that it declares. */
export interface GoModule {
  directory: string;
  importPath: string;
}

export type SourceSet = ReturnType<typeof createSourceSet>;

const endings = ['.ts', '.tsx', '.mts', '.cts', '.js', '.jsx', '.mjs', '.cjs', '.d.ts'];

/** What is imported as JavaScript may be written in TypeScript. */
const written: Readonly<Record<string, readonly string[]>> = {
  '.js': ['.ts', '.tsx', '.d.ts'],
  '.jsx': ['.tsx'],
  '.mjs': ['.mts'],
  '.cjs': ['.cts'],
};

/** The files of a trace by module: a path (TypeScript), a path without its ending (Python), a folder and a slash (Go). */
export function createSourceSet(outlines: readonly Outline[], goModules: readonly GoModule[]) {
  const byModule = Map.groupBy(outlines, moduleOf);
  const folders = new Set(outlines.flatMap(({ path, language }) => (language === 'python' ? foldersAbove(path) : [])));
  const exists = (module: string) => byModule.has(module) || folders.has(module);
  for (const each of outlines.flatMap(({ imports }) => imports).filter(({ guessed }) => guessed)) {
    const files = findGo(each.from).flatMap(module => byModule.get(module) ?? []);
    each.local = files.find(({ path }) => !path.endsWith('_test.go'))?.packageName ?? each.local;
  }

  function findTypescript(from: Outline, specifier: string): string[] {
    const isRelative = /^(?:\.{0,2}\/|\.\.?$)/.test(specifier);
    if (!isRelative && !specifier.includes('/')) return [];
    // Where `@/store` and `app/store` start is a setting of many tools: any folder above may be it.
    const starts = isRelative ? [posix.dirname(from.path)] : searched(from);
    const ending = posix.extname(specifier);
    const others = written[ending] ?? [];
    for (const start of starts) {
      const target = posix.resolve(start, specifier.replace(alias, ''));
      const bare = target.slice(0, target.length - ending.length);
      const more = [...endings, ...endings.map(each => `/index${each}`)].map(each => `${target}${each}`);
      const tries = [target, ...others.map(each => `${bare}${each}`), ...more];
      // A Python module has no ending.
      const found = tries.find(path => languageOf(path) && byModule.has(path));
      if (found !== undefined) return [found];
    }
    return [];
  }

  function findPython(from: Outline, specifier: string): string[] {
    const dots = /^\.*/.exec(specifier)?.[0].length ?? 0;
    const parts = specifier.slice(dots).split('.').filter(Boolean);
    if (dots > 0) {
      const start = posix.resolve(posix.dirname(from.path), ...Array.from({ length: dots - 1 }, () => '..'));
      return [posix.join(start, ...parts)].filter(exists);
    }
    // Where the search for modules starts is a matter of how the program is run: any folder above may be it.
    const modules = searched(from).map(folder => posix.join(folder, ...parts));
    return [...new Set(modules)].filter(exists);
  }

  function findGo(specifier: string): string[] {
    return goModules
      .filter(({ importPath }) => specifier === importPath || specifier.startsWith(`${importPath}/`))
      .map(({ directory, importPath }) => `${posix.join(directory, specifier.slice(importPath.length))}/`)
      .filter(exists);
  }

  return {
    outlines,
    /** Modules that an import may mean, among the files there are: none when it leads elsewhere. */
    find(from: Outline, specifier: string): string[] {
      if (from.language === 'python') return findPython(from, specifier);
      return from.language === 'go' ? findGo(specifier) : findTypescript(from, specifier);
    },
    filesOf(module: string): readonly Outline[] {
      const all = byModule.get(module) ?? [];
      // A Python stub says again what the source beside it says.
      const sources = all.filter(({ path }) => !path.endsWith('.pyi'));
      return sources.length > 0 ? sources : all;
    },
    moduleOf,
    /** A module inside a module, as Python has them. */
    submodule(module: string, name: string): string | undefined {
      const inner = posix.join(module, name);
      return exists(inner) && !endings.some(ending => module.endsWith(ending)) ? inner : undefined;
    },
    /** The import is written so that it can only mean a file of the project. */
    isOurs: (from: Outline, specifier: string) =>
      from.language === 'go'
        ? goModules.some(({ importPath }) => specifier.startsWith(importPath))
        : specifier.startsWith('.') || (from.language !== 'python' && alias.test(specifier)),
  };
}

/** What tools take for the folder of a project's sources. */
const alias = /^[@~#]\//;

/** The folders in which a name that is not relative may be looked for. */
const searched = ({ path }: Outline): string[] =>
  foldersAbove(path).flatMap(folder => [folder, posix.join(folder, 'src')]);

function moduleOf({ path, language }: Outline): string {
  if (language === 'go') return `${posix.dirname(path)}/`;
  if (language !== 'python') return path;
  return posix.basename(path).startsWith('__init__.') ? posix.dirname(path) : path.replace(/\.pyi?$/, '');
}

function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let at = posix.dirname(path); at !== '/' && at !== '.'; at = posix.dirname(at)) folders.push(at);
  return folders;
}

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

export type SymbolIndex = ReturnType<typeof createSymbolIndex>;

/** All symbols and variables, by where and how they can be named. */
export function createSymbolIndex(sources: SourceSet) {
  const all = sources.outlines.flatMap(declaredIn);
  const byOutline = Map.groupBy(all, each => each.outline);
  adoptMethods(sources, all);
  const members = Map.groupBy(all, each => each.owner);
  const names = new Map<Outline, Map<string, Declared[]>>();
  for (const [outline, list] of byOutline) {
    const free = list.filter(each => !isMethod(each));
    const byPlace = Map.groupBy(free, ({ symbol }) => `${symbol.scope} ${symbol.name}`);
    names.set(outline, new Map([...byPlace].map(([place, same]) => [place, implemented(same)])));
  }
  const variables = new Map(sources.outlines.map(outline => [outline, heldIn(outline)]));
  const methods = Map.groupBy(all.filter(isMethod), ({ symbol }) => symbol.name);
  return {
    all,
    at: (outline: Outline, number: number) => byOutline.get(outline)?.[number],
    named: (outline: Outline, scope: number, name: string) => names.get(outline)?.get(`${scope} ${name}`) ?? [],
    members: (owner: Declared, name: string) =>
      implemented((members.get(owner) ?? []).filter(({ symbol }) => symbol.name === name)),
    allMembers: (owner: Declared) => members.get(owner) ?? [],
    held: (outline: Outline, scope: number, name: string) => variables.get(outline)?.get(`${scope} ${name}`),
    /** Methods of that name, whosever they are. */
    methods: (name: string) => methods.get(name) ?? [],
  };
}

const isMethod = ({ symbol }: Declared): boolean => symbol.kind === 'method';

function declaredIn(outline: Outline): Declared[] {
  const list = outline.symbols.map((symbol, number): Declared => ({ outline, number, symbol }));
  for (const each of list) if (each.symbol.owner !== undefined) each.owner = list[each.symbol.owner];
  return list;
}

/** A Go method belongs to a type of its package, in whichever file that is; a function that JavaScript hangs on a type, to that. */
function adoptMethods(sources: SourceSet, all: readonly Declared[]): void {
  const key = (outline: Outline, name: string) => `${sources.moduleOf(outline)} ${name}`;
  const named = all.filter(({ symbol: { kind, scope } }) => scope === 0 && kind !== 'function' && kind !== 'method');
  const types = new Map(named.map(each => [key(each.outline, each.symbol.name), each]));
  for (const each of all) {
    const { ownerName } = each.symbol;
    const type = ownerName === undefined ? undefined : types.get(key(each.outline, ownerName));
    if (type && !isDeclaredWithin(each, type)) each.owner = type;
  }
}

/** Something between a symbol and the top of its file has the name of a type that is declared there. */
function isDeclaredWithin({ outline, symbol }: Declared, { symbol: { name } }: Declared): boolean {
  const between = scopesAround(outline, symbol.scope).filter(({ number }) => number !== 0);
  return between.some(({ number }) =>
    [...outline.variables, ...outline.symbols].some(each => each.scope === number && each.name === name),
  );
}

/** Overloads are one function: their signatures go where a body is; of signatures alone the first stays. */
function implemented(list: Declared[]): Declared[] {
  const bodies = list.filter(({ symbol }) => !symbol.declared);
  return bodies.length > 0 ? bodies : list.slice(0, 1);
}

function heldIn(outline: Outline): Map<string, Held> {
  const held = new Map<string, Held>();
  const declaring = [...outline.variables.filter(each => each.how !== 'assigned'), ...outline.symbols];
  const typed = new Set<string>();
  const declared = new Set(declaring.map(({ scope, name }) => `${scope} ${name}`));
  for (const { scope, name, value, how } of outline.variables) {
    // What is assigned to may be declared in a scope around.
    const isDeclared = (number: number) => declared.has(`${number} ${name}`);
    const place =
      how === 'assigned' ? scopesAround(outline, scope).find(({ number }) => isDeclared(number))?.number : scope;
    const key = `${place ?? 0} ${name}`;
    const before = held.get(key);
    if (typed.has(key)) continue;
    if (how === 'typed' && value && !before) typed.add(key);
    const same = before === undefined || (before !== 'unsure' && before.value.join('.') === value?.join('.'));
    held.set(key, value && same ? { value } : 'unsure');
  }
  return held;
}
