import { innerRow, type StructureRules } from './rules.ts';
import { folderOf, isCode, isIn, type SourceFile, type Violation } from './source-file.ts';

type Problem = Pick<Violation, 'rule' | 'message'>;

const kebab = /^[a-z0-9]+(-[a-z0-9]+)*$/;

function placeProblems({ place }: SourceFile, rules: StructureRules): Problem[] {
  const folders = folderOf(place).split('/');
  const [top = '', second = '.'] = folders;
  const problems: Problem[] = [];
  if (top === '') {
    if (rules.files[place]) return [];
    const allowed = Object.keys(rules.files).filter(name => !name.includes('/'));
    return [{ rule: 'place', message: `Only ${allowed.join(', ')} are directly in src/: move ${place} to a folder.` }];
  }
  const layer = rules.layers[top];
  if (!layer) {
    const message = `Unknown folder ${top}/. Known: ${Object.keys(rules.layers).join(', ')}. Use one of them, or add a row to ${rules.file} and to docs/architecture.md.`;
    problems.push({ rule: 'place', message });
  } else if (!innerRow(layer.inner ?? { '.': [] }, second)) {
    const known = Object.keys(layer.inner ?? {}).join(', ') || 'none';
    const message = `${second === '.' ? `${top}/ has no files of its own` : `Unknown folder ${top}/${second}/`}. Known folders of ${top}/: ${known}. Use one of them, or add a row to ${rules.file}.`;
    problems.push({ rule: 'place', message });
  }
  const deepest = rules.deeper.find(row => isIn(place, [row.folder]))?.depth ?? rules.depth;
  if (folders.length > deepest) {
    problems.push({ rule: 'size', message: `${folders.length} folders deep, limit ${deepest}: move the file up.` });
  }
  return problems;
}

function nameProblems({ place, generated }: SourceFile, rules: StructureRules): Problem[] {
  const parts = place.split('/');
  const name = parts.pop() ?? '';
  const stem = name.replace(/(\.gen|\.d)?\.\w+$/, '');
  const problems: string[] = [];
  for (const part of [...parts, stem]) {
    if (!kebab.test(part)) problems.push(`"${part}" is not kebab-case: use lower-case words joined by hyphens.`);
    const banned = part.split('-').find(word => rules.bannedWords.includes(word));
    if (banned) problems.push(`"${banned}" does not say what the file contains: name the file after its one subject.`);
  }
  if (stem === 'index' && !generated && parts.length > 0) {
    problems.push('index.ts is only the entry of the package or a generated list (index.gen.ts): import the files.');
  }
  return problems.map(message => ({ rule: 'name', message }));
}

function lineProblems({ path, lines, generated }: SourceFile, limit: number): Problem[] {
  if (generated || !isCode(path) || lines <= limit) return [];
  return [
    { rule: 'size', message: `${lines} lines, limit ${limit}: move the second subject of the file to a new file.` },
  ];
}

/** Checks that files are in known folders, have descriptive names, and are not too long. */
export function checkShape(files: readonly SourceFile[], rules: StructureRules): Violation[] {
  return files.flatMap(file =>
    [...placeProblems(file, rules), ...nameProblems(file, rules), ...lineProblems(file, rules.lines)].map(problem => ({
      path: file.path,
      line: 1,
      ...problem,
    })),
  );
}
