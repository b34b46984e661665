import { folderOf, type SourceFile, targetOf } from './source-file.ts';

/** An import of one file below src/ by another, of whatever kind. */
export interface Link {
  from: SourceFile;
  to: SourceFile;
  line: number;
  lazy: boolean;
}

export function linksOf(files: readonly SourceFile[]): Link[] {
  const byPlace = new Map(files.map(file => [file.place, file]));
  return files.flatMap(from =>
    from.imports.flatMap(({ specifier, line, lazy }) => {
      const to = specifier?.startsWith('.') ? byPlace.get(targetOf(from, specifier)) : undefined;
      return to ? [{ from, to, line, lazy }] : [];
    }),
  );
}

/** A cycle: the import behind each of its steps, and the names of its members from the first back to the first. */
export interface Ring {
  steps: Link[];
  members: string[];
}

/** Finds cycles among named groups of files, e.g. the folders of a depth. One report for each group at most. */
function findRings(links: readonly Link[], nameOf: (file: SourceFile) => string, withSelf: boolean): Ring[] {
  const steps = links.filter(({ from, to }) => withSelf || nameOf(from) !== nameOf(to));
  const known = Map.groupBy(steps, ({ from }) => nameOf(from));
  const reported = new Set<string>();
  return [...known.keys()].flatMap(start => {
    const ring = reported.has(start) ? undefined : wayBack(start, known, nameOf);
    if (!ring) return [];
    const members = [start, ...ring.map(({ to }) => nameOf(to))];
    for (const member of members) reported.add(member);
    return [{ steps: ring, members }];
  });
}

/** The shortest way from a group back to itself. */
function wayBack(
  start: string,
  known: ReadonlyMap<string, Link[]>,
  nameOf: (file: SourceFile) => string,
): Link[] | undefined {
  const ways = new Map<string, Link[]>([[start, []]]);
  for (const [name, way] of ways) {
    for (const link of known.get(name) ?? []) {
      const next = nameOf(link.to);
      if (next === start) return [...way, link];
      if (!ways.has(next)) ways.set(next, [...way, link]);
    }
  }
  return undefined;
}

export function fileRings(links: readonly Link[]): Ring[] {
  return findRings(links, file => file.place, true);
}

/** Cycles of folders, each path cut to `depth` folders: files directly in `engine` belong to `engine` at every depth. */
export function folderRings(links: readonly Link[], depth: number): Ring[] {
  return findRings(links, file => folderOf(file.place, depth) || 'src', false);
}

/** Returns the only importer of each file that has exactly one, with its first import. */
export function onlyImports(links: readonly Link[]): Link[] {
  const byTarget = Map.groupBy(links, ({ to }) => to);
  return [...byTarget.values()].flatMap(imports => {
    const [first] = imports;
    return first && imports.every(({ from }) => from === first.from) ? [first] : [];
  });
}
