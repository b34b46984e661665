import { readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { expandHome, isIn, realOf, upwards } from './paths.ts';

export interface RootSources {
  /** Roots that the operator set (`POLYLOGUE_ROOTS`, `PROJECT_ROOT`); taken as they are, whatever they are. */
  explicit: readonly string[];
  /** The directory that the host says the project is in. */
  projectRoot?: string;
  cwd: string;
  home: string;
}

export interface Roots {
  /** Absolute. Empty: no file may be read. */
  roots: string[];
  /** One sentence: where they come from or, when there are none, why and what to set. */
  reason: string;
  /** Nobody named them: they follow from the working directory. */
  isGuess?: boolean;
}

/**
 * Which directories a server may read when it starts: what the operator set, else the host's project, else the git top
 * level of the working directory (or that of another version control), else the next folder around it that declares a project, else the
 * next one with a build file. `/`, a home directory, what lies above one and the kernel's folders are only ever roots by the operator's
 * word; a mark in one of them hides no other.
 */
export async function defaultRoots({ explicit, projectRoot, cwd, home }: RootSources): Promise<Roots> {
  const set = explicit.filter(root => root.trim() !== '').map(root => resolve(cwd, expandHome(root, home)));
  if (set.length > 0) return { roots: [...new Set(set)], reason: 'set by the operator' };

  if (projectRoot) {
    const root = resolve(cwd, expandHome(projectRoot, home));
    return (await isTooWide(root, home)) ? refused(root) : { roots: [root], reason: 'given by the host' };
  }
  let tooWide: string | undefined;
  for (const name of [gitFolder, /^\.(?:hg|svn|jj)$/, manifest, buildFile]) {
    const isGit = name === gitFolder;
    for (const at of upwards(await realOf(resolve(cwd)))) {
      if (!(await holds(at, name))) continue;
      const isTaken = (isGit || !sharedFolders.test(at)) && !(await isTooWide(at, home));
      const reason = `the ${isGit ? 'git top level' : 'project file'} of the working directory`;
      if (isTaken) return { roots: [at], reason, isGuess: true };
      tooWide ??= at;
    }
  }
  if (tooWide !== undefined) return refused(tooWide);
  return {
    roots: [],
    reason: `${cwd} is in no git repository and has no project file (package.json, pyproject.toml …); set POLYLOGUE_ROOTS to the directories to read.`,
  };
}

const anyOf = (...names: string[]) => new RegExp(`^(?:${names.join('|')})$`);

/** A folder with one of these is a project, as one with `.git` is. */
const manifest = anyOf(
  String.raw`package\.json|deno\.jsonc?|bower\.json|elm\.json|pyproject\.toml|setup\.(?:py|cfg)|requirements\.txt|Pipfile`,
  String.raw`go\.(?:mod|work)|Cargo\.toml|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|build\.(?:sbt|zig)|gleam\.toml`,
  String.raw`composer\.json|Gemfile|mix\.exs|rebar\.config|pubspec\.yaml|Package\.swift|shard\.yml|dub\.json`,
  String.raw`CMakeLists\.txt|meson\.build|stack\.yaml|cabal\.project|dune-project|project\.clj|deps\.edn|Project\.toml`,
  String.raw`foundry\.toml|vcpkg\.json|[^.].*\.(?:csproj|fsproj|vbproj|slnx?|cabal|gemspec|nimble|rockspec)`,
);

/** The same, but it also stands in folders within a project: only counts where nothing around declares one. */
const buildFile = anyOf(
  String.raw`[jt]sconfig\.json|pnpm-workspace\.yaml|poetry\.lock|uv\.lock|environment\.ya?ml|tox\.ini|build\.(?:sc|xml)|Rakefile`,
  String.raw`(?:GNU)?[Mm]akefile|configure\.ac|SConstruct|WORKSPACE|(?:MODULE|BUILD)\.bazel|[Jj]ustfile|Taskfile\.ya?ml`,
  String.raw`flake\.nix|DESCRIPTION|cpanfile|Makefile\.PL|conanfile\.(?:txt|py)|global\.json|Dockerfile|Podfile`,
  String.raw`[^.].*\.(?:opam|xcodeproj|tf)`,
);

/** Makes a project of a folder for everybody's files, too. */
const gitFolder = /^\.git$/;

/** Anybody's file there, or the system's, makes no project of what others keep there. */
const sharedFolders =
  /^(\/private)?\/(tmp|var|var\/tmp|etc|usr|usr\/local|opt|srv|data|mnt|media|dev|dev\/shm|bin|sbin|lib|run)$|^[a-z]:\\(windows|temp)$/i;

const refused = (root: string): Roots => ({
  roots: [],
  reason: `${root} is too broad to be a default root; set POLYLOGUE_ROOTS to the directories to read.`,
});

/** Holds what processes and the kernel tell of themselves, environments with keys among it. */
const kernelFolders = /^\/(proc|sys)(\/|$)/;

/** Whether a directory is `/`, a home directory, or lies above one; or no place of projects at all. */
export async function isTooWide(root: string, home: string): Promise<boolean> {
  const real = await realOf(root);
  const names = real.split(/[\\/]/).filter(name => name !== '' && !/^[a-z]:$/i.test(name));
  const isHomeByPlace = ['home', 'users'].includes(names[0]?.toLowerCase() ?? '') && names.length <= 2;
  if (dirname(real) === real || real === '/root' || isHomeByPlace || kernelFolders.test(real)) return true;
  return home !== '' && isIn(await realOf(home), real);
}

/** Marks that are, or may be, folders; all others are files. */
const markFolders = /^\.(?:git|hg|svn|jj)$|.\.xcodeproj$/;

/** Whether a directory holds one of these. `.git` is a folder or (in a work tree of its own) a file. */
async function holds(folder: string, name: RegExp): Promise<boolean> {
  // One that can't be listed is no top level we could read from.
  for (const each of (await readdir(folder).catch(() => [])).filter(each => name.test(each))) {
    const found = await stat(join(folder, each)).catch(() => undefined);
    if (found?.isFile() || (found?.isDirectory() && markFolders.test(each))) return true;
  }
  return false;
}
