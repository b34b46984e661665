import { fileRings, folderRings, type Link, type Ring } from './graph.ts';
import { folderOf, type Violation } from './source-file.ts';

function violation(ring: Ring, advice: string): Violation {
  const [first] = ring.steps;
  const imports = ring.steps.map(({ from, to }) => `${from.place} imports ${to.place}`).join(', ');
  return {
    path: first?.from.path ?? 'src',
    line: first?.line ?? 1,
    rule: 'cycle',
    message: `${ring.members.join(' → ')}: ${imports}. ${advice}`,
  };
}

/** The members of a folder cycle in order of name, which identify it at every depth and from every start. */
function nameOfRing({ members }: Ring): string {
  return [...new Set(members)].sort().join(' ');
}

/** Returns the cycles of folders at all depths, each once, by name. */
function allFolderRings(links: readonly Link[]): Map<string, Ring> {
  const deepest = Math.max(0, ...links.map(({ from }) => folderOf(from.place).split('/').length));
  const rings = Array.from({ length: deepest }, (_, at) => folderRings(links, at + 1)).flat();
  return new Map(rings.map(ring => [nameOfRing(ring), ring]));
}

/** Reports cycles of files and of folders at every depth, through any kind of import. */
export function checkCycles(links: readonly Link[]): Violation[] {
  return [
    ...fileRings(links).map(ring =>
      violation(ring, 'Move what both sides need to a third file that imports neither of them.'),
    ),
    ...[...allFolderRings(links).values()].map(ring =>
      violation(ring, 'Move the shared code to the lower folder, or pass it as a parameter.'),
    ),
  ];
}
