import { posix } from 'node:path';
import type { Outline } from '../../workspace/outline/outline.ts';

/** The place of a Go module: its `go.mod` and the import path that it declares. */
export interface GoModule {
  directory: string;
  importPath: string;
}

/**
 * The files of a trace as their languages see them. A module is named by a path: a file (TypeScript), a file or folder without
 * its ending (Python), a folder (Go).
 */
export interface SourceSet {
  outlines: readonly Outline[];
  /** Modules that an import may mean, among the files there are: none when it leads elsewhere. */
  find(from: Outline, specifier: string): string[];
  /** The files of a module. */
  filesOf(module: string): readonly Outline[];
  moduleOf(outline: Outline): string;
  /** A module inside a module, as Python has them. */
  submodule(module: string, name: string): string | undefined;
  /** The import is written so that it can only mean a file of the project. */
  isOurs(from: Outline, specifier: string): boolean;
}

const endings = ['.ts', '.tsx', '.mts', '.cts', '.js', '.jsx', '.mjs', '.cjs', '.d.ts'];
/** What is imported as JavaScript may be written in TypeScript. */
const written: Readonly<Record<string, readonly string[]>> = {
  '.js': ['.ts', '.tsx', '.d.ts'],
  '.jsx': ['.tsx'],
  '.mjs': ['.mts'],
  '.cjs': ['.cts'],
};

export function createSourceSet(outlines: readonly Outline[], goModules: readonly GoModule[]): SourceSet {
  const byModule = Map.groupBy(outlines, moduleOf);
  const folders = new Set(outlines.flatMap(({ path, language }) => (language === 'python' ? foldersAbove(path) : [])));
  const exists = (module: string) => byModule.has(module) || folders.has(module);

  function findTypescript(from: Outline, specifier: string): string[] {
    if (!/^\.{0,2}\//.test(specifier) && specifier !== '.' && specifier !== '..') return [];
    const target = posix.resolve(posix.dirname(from.path), specifier);
    const ending = posix.extname(target);
    const bare = target.slice(0, target.length - ending.length);
    const tries = [
      target,
      ...(written[ending] ?? []).map(other => `${bare}${other}`),
      ...endings.map(other => `${target}${other}`),
      ...endings.map(other => `${target}/index${other}`),
    ];
    return tries.filter(path => byModule.has(path)).slice(0, 1);
  }

  function findPython(from: Outline, specifier: string): string[] {
    const dots = /^\.*/.exec(specifier)?.[0].length ?? 0;
    const parts = specifier.slice(dots).split('.').filter(Boolean);
    if (dots > 0) {
      const start = posix.resolve(posix.dirname(from.path), ...Array.from({ length: dots - 1 }, () => '..'));
      return [posix.join(start, ...parts)].filter(exists);
    }
    // Where the search for modules starts is a matter of how the program is run: any folder above may be it.
    return foldersAbove(from.path)
      .flatMap(folder => [posix.join(folder, ...parts), posix.join(folder, 'src', ...parts)])
      .filter((module, index, all) => exists(module) && all.indexOf(module) === index);
  }

  function findGo(specifier: string): string[] {
    return goModules
      .filter(({ importPath }) => specifier === importPath || specifier.startsWith(`${importPath}/`))
      .map(({ directory, importPath }) => posix.join(directory, specifier.slice(importPath.length)))
      .filter(exists);
  }

  return {
    outlines,
    find(from, specifier) {
      if (from.language === 'python') return findPython(from, specifier);
      return from.language === 'go' ? findGo(specifier) : findTypescript(from, specifier);
    },
    filesOf: module => withoutStubs(byModule.get(module) ?? []),
    moduleOf,
    submodule(module, name) {
      const inner = posix.join(module, name);
      return exists(inner) && !endings.some(ending => module.endsWith(ending)) ? inner : undefined;
    },
    isOurs: (from, specifier) =>
      from.language === 'go'
        ? goModules.some(({ importPath }) => specifier.startsWith(importPath))
        : specifier.startsWith('.'),
  };
}

function moduleOf({ path, language }: Outline): string {
  if (language === 'go') return posix.dirname(path);
  if (language !== 'python') return path;
  return posix.basename(path).startsWith('__init__.') ? posix.dirname(path) : path.replace(/\.pyi?$/, '');
}

/** A Python stub says again what the source beside it says. */
function withoutStubs(outlines: readonly Outline[]): readonly Outline[] {
  const sources = outlines.filter(({ path }) => !path.endsWith('.pyi'));
  return sources.length > 0 ? sources : outlines;
}

function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let at = posix.dirname(path); at !== '/' && at !== '.'; at = posix.dirname(at)) folders.push(at);
  return folders;
}
