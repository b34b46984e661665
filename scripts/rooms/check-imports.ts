import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import type { FoundImport } from './find-imports.ts';
import { isIn, type SourceFile, type Violation } from './source-file.ts';
import type { HouseTable } from './table.ts';

const tableFile = 'scripts/rooms/table.ts';

function listed(names: readonly string[]): string {
  return names.length > 0 ? names.join(', ') : 'nothing';
}

/** Where a relative import leads, below src/; `../x` when it leaves src/. */
export function targetOf(file: SourceFile, specifier: string): string {
  return posix.normalize(posix.join(posix.dirname(file.place), specifier));
}

function roomProblem(file: SourceFile, target: string, lazy: boolean, table: HouseTable): string | undefined {
  const roomName = file.place.split('/', 1)[0] ?? '';
  const door = table.doors[file.place];
  const room = door ? undefined : table.rooms[roomName];
  if (room && isIn(target, [roomName])) {
    const siblings = room.list && !file.generated;
    return siblings
      ? `${file.place} imports ${target}, but the files of ${roomName}/ know nothing of each other: move what both need into a room below`
      : undefined;
  }
  const rule = door ?? room;
  if (!rule || isIn(target, rule.imports)) return undefined;
  const lazily = 'lazyImports' in rule ? (rule.lazyImports ?? []) : [];
  if (isIn(target, lazily)) {
    return lazy ? undefined : `${file.place} may load ${target} with import() only, so that the start stays quick`;
  }
  const who = room ? `${roomName}/` : file.place;
  return `${who} may not import ${target}; it may import ${listed([...rule.imports, ...lazily])}: pass what is needed as a parameter or a port of domain, or move the file`;
}

function rowOf(specifier: string, rows: HouseTable['packages']): [name: string, rooms: readonly string[] | undefined] {
  const parts = specifier.split('/');
  const name = specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
  return [name, rows[name] ?? rows[`${parts[0]}/*`]];
}

function packageProblem(file: SourceFile, specifier: string, table: HouseTable): string | undefined {
  const builtin = isBuiltin(specifier);
  const [name, rooms] = builtin
    ? rowOf(specifier.startsWith('node:') ? specifier : `node:${specifier}`, table.builtins)
    : rowOf(specifier, table.packages);
  if (!rooms) {
    return `${name} stands in no row: use what is there, or add a row to ${tableFile} and say why in docs/decisions`;
  }
  if (rooms.length === 0 || isIn(file.place, rooms)) return undefined;
  return `${name} belongs to ${listed(rooms)} (${tableFile}): take what you need of it as a parameter, or move this file there`;
}

function importProblem(file: SourceFile, found: FoundImport, table: HouseTable): Omit<Violation, 'path' | 'line'>[] {
  const { specifier } = found;
  if (specifier === undefined) {
    const message =
      'import() of something else than a plain string cannot be checked: write one import() for each file';
    return [{ rule: 'imports', message }];
  }
  if (specifier.startsWith('.')) {
    const message = roomProblem(file, targetOf(file, specifier), found.lazy, table);
    return message ? [{ rule: 'imports', message }] : [];
  }
  const message = packageProblem(file, specifier, table);
  return message ? [{ rule: 'packages', message }] : [];
}

/** Rooms import downwards only, and npm packages and builtin modules only where the table says. */
export function checkImports(files: readonly SourceFile[], table: HouseTable): Violation[] {
  return files.flatMap(file =>
    file.imports.flatMap(found =>
      importProblem(file, found, table).map(problem => ({ path: file.path, line: found.line, ...problem })),
    ),
  );
}
