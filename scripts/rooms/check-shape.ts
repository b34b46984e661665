import { isCode, type SourceFile, type Violation } from './source-file.ts';
import type { HouseTable } from './table.ts';

type Problem = Pick<Violation, 'rule' | 'message'>;

const kebab = /^[a-z0-9]+(-[a-z0-9]+)*$/;

function foldersOf(place: string): string[] {
  return place.split('/').slice(0, -1);
}

function placeProblems({ place }: SourceFile, table: HouseTable): Problem[] {
  if (table.doors[place]) return [];
  const [roomName, ...folders] = foldersOf(place);
  if (roomName === undefined) {
    const message = `only ${Object.keys(table.doors)
      .filter(door => !door.includes('/'))
      .join(', ')} stand directly below src/: put ${place} into a room`;
    return [{ rule: 'place', message }];
  }
  const room = table.rooms[roomName];
  if (!room) {
    const message = `there is no room ${roomName}/: the rooms are ${Object.keys(table.rooms).join(', ')}; a new one needs one closed`;
    return [{ rule: 'place', message }];
  }
  const problems: Problem[] = [];
  const folder = folders.join('/');
  if (folder && !room.folders?.[folder]) {
    const known = Object.keys(room.folders ?? {}).join(', ') || 'none';
    const message = `${roomName}/ has no folder ${folder}/ (it has: ${known}): use one of them, or add it to scripts/rooms/table.ts and say why in docs/decisions`;
    problems.push({ rule: 'place', message });
  }
  if (folders.length + 1 > table.depth) {
    const message = `${folders.length + 1} folders below src/, at most ${table.depth}: move the file up`;
    problems.push({ rule: 'size', message });
  }
  return problems;
}

function nameProblems({ place, generated }: SourceFile, table: HouseTable): Problem[] {
  const parts = place.split('/');
  const name = parts.pop() ?? '';
  const stem = name.replace(/(\.gen|\.d)?\.\w+$/, '');
  const excepted = table.nameExceptions.some(exception => place === exception || place.startsWith(`${exception}/`));
  const problems: Problem[] = [];
  for (const part of [...parts, stem]) {
    if (!kebab.test(part)) {
      problems.push({ rule: 'name', message: `"${part}" is not kebab-case: lower-case words joined by hyphens` });
    }
    const banned = part.split('-').find(word => table.bannedWords.includes(word));
    if (banned && !excepted) {
      const message = `"${banned}" says nothing about what is inside: name the file after the one idea that it holds`;
      problems.push({ rule: 'name', message });
    }
  }
  if (stem === 'index' && !generated && parts.length > 0) {
    const message =
      'index.ts is the door of the package or a generated list (index.gen.ts), nothing else: import the files themselves';
    problems.push({ rule: 'name', message });
  }
  return problems;
}

function lineProblems({ place, path, text, generated }: SourceFile, table: HouseTable): Problem[] {
  const limit = table.doors[place]?.lines ?? table.lines;
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
  if (generated || !isCode(path) || lines <= limit) return [];
  return [
    { rule: 'size', message: `${lines} lines, at most ${limit}: a second idea is in there, give it its own file` },
  ];
}

function crowdedFolders(files: readonly SourceFile[], table: HouseTable): Violation[] {
  const byFolder = Map.groupBy(
    files.filter(file => !file.generated && file.place.includes('/')),
    file => foldersOf(file.place).join('/'),
  );
  return [...byFolder].flatMap(([folder, members]) => {
    const [roomName = '', ...inner] = folder.split('/');
    const room = table.rooms[roomName];
    if (!room || room.list || room.folders?.[inner.join('/')] === 'list') return [];
    const limit = (inner.length === 0 ? room.files : undefined) ?? table.filesPerFolder;
    if (members.length <= limit) return [];
    const message = `${folder}/ holds ${members.length} files of its own, at most ${limit}: join what is one idea, or open a folder in scripts/rooms/table.ts`;
    return [{ path: members.at(-1)?.path ?? folder, line: 1, rule: 'size' as const, message }];
  });
}

/** Files lie in known rooms and folders, are named after what they hold, and stay small. */
export function checkShape(files: readonly SourceFile[], table: HouseTable): Violation[] {
  const alone = files.flatMap(file =>
    [...placeProblems(file, table), ...nameProblems(file, table), ...lineProblems(file, table)].map(problem => ({
      path: file.path,
      line: 1,
      ...problem,
    })),
  );
  return [...alone, ...crowdedFolders(files, table)];
}
