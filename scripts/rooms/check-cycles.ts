import { targetOf } from './check-imports.ts';
import type { SourceFile, Violation } from './source-file.ts';

interface Edge {
  to: SourceFile;
  line: number;
}

function edgesOf(file: SourceFile, byPlace: ReadonlyMap<string, SourceFile>): Edge[] {
  return file.imports.flatMap(({ specifier, line }) => {
    const to = specifier?.startsWith('.') ? byPlace.get(targetOf(file, specifier)) : undefined;
    return to ? [{ to, line }] : [];
  });
}

/** The shortest way from a file back to itself, as the edges that are walked; undefined when there is none. */
function wayBack(start: SourceFile, edges: (file: SourceFile) => Edge[]): Edge[] | undefined {
  const ways = new Map<SourceFile, Edge[]>([[start, []]]);
  for (const [file, way] of ways) {
    for (const edge of edges(file)) {
      if (edge.to === start) return [...way, edge];
      if (!ways.has(edge.to)) ways.set(edge.to, [...way, edge]);
    }
  }
  return undefined;
}

/** Files that import each other in a ring, through whatever kind of import. One report a ring. */
export function checkCycles(files: readonly SourceFile[]): Violation[] {
  const byPlace = new Map(files.map(file => [file.place, file]));
  const known = new Map(files.map(file => [file, edgesOf(file, byPlace)]));
  const reported = new Set<SourceFile>();
  const violations: Violation[] = [];
  for (const file of files) {
    if (reported.has(file)) continue;
    const ring = wayBack(file, from => known.get(from) ?? []);
    if (!ring) continue;
    for (const edge of ring) reported.add(edge.to);
    violations.push({
      path: file.path,
      line: ring[0]?.line ?? 1,
      rule: 'cycle',
      message: `${[file.place, ...ring.map(edge => edge.to.place)].join(' → ')}: move what both sides need into a file of its own that imports neither`,
    });
  }
  return violations;
}
