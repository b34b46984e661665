import { isBuiltin } from 'node:module';
import type { FoundImport } from './find-imports.ts';
import { innerRow, type Layer, type StructureRules } from './rules.ts';
import { isIn, type SourceFile, targetOf, type Violation } from './source-file.ts';

type Problem = Pick<Violation, 'rule' | 'message'>;

function listed(names: readonly string[]): string {
  return names.length > 0 ? names.join(', ') : 'nothing';
}

/** Problems of an import within one top folder: between its inner folders, or between files that stay apart. */
function innerProblem(
  place: string,
  target: string,
  generated: boolean,
  { inner = {}, apart }: Layer,
): string | undefined {
  const [top = '', ...rest] = place.split('/');
  const ownFolder = rest.length > 1 ? (rest[0] ?? '.') : '.';
  const innerTarget = target.slice(top.length + 1);
  const targetFolder = innerTarget.includes('/') ? (innerTarget.split('/', 1)[0] ?? '.') : '.';
  if (ownFolder === targetFolder) {
    if (!apart || generated) return undefined;
    return `${place} cannot import ${target}: the files of ${top}/ do not import each other. Move the shared code to a folder that both may import.`;
  }
  const allowed = innerRow(inner, ownFolder);
  // An unknown folder is a problem of its place.
  if (!allowed || allowed.includes(targetFolder) || allowed.includes(innerTarget)) return undefined;
  const who = ownFolder === '.' ? `A file directly in ${top}/` : `${top}/${ownFolder}/`;
  return `${who} cannot import ${target}. Allowed within ${top}/: ${listed(allowed)} ("." is ${top}/ itself). Move the shared code down, or pass it as a parameter.`;
}

function layerProblem(file: SourceFile, target: string, types: boolean, rules: StructureRules): string | undefined {
  const top = file.place.split('/', 1)[0] ?? '';
  const ownRow = rules.files[file.place];
  const row = ownRow ?? rules.layers[top];
  if (!row) return undefined;
  if (!ownRow && isIn(target, [top])) return innerProblem(file.place, target, file.generated, row);
  if (isIn(target, row.imports)) return undefined;
  const onlyTypes = row.types ?? [];
  const who = ownRow ? file.place : `${top}/`;
  if (isIn(target, onlyTypes)) {
    return types ? undefined : `${who} may import only types of ${target}: use "import type".`;
  }
  const allowed = listed([...row.imports, ...onlyTypes.map(name => `${name} (types)`)]);
  return `${who} cannot import ${target}. Allowed: ${allowed}. Pass the value as a parameter or a port of core/ports.ts, or move the file.`;
}

function lazyProblem(file: SourceFile, target: string, found: FoundImport, rules: StructureRules): string | undefined {
  const together = rules.lazy[target];
  if (!together || found.lazy || found.types || together.includes(file.place)) return undefined;
  return `${file.place} cannot import ${target} at load time: use import(), so that it is loaded only when it is needed.`;
}

function rowOf(
  specifier: string,
  rows: StructureRules['packages'],
): [name: string, row: readonly string[] | undefined] {
  const parts = specifier.split('/');
  const name = specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
  return [name, rows[name] ?? rows[`${parts[0]}/*`]];
}

function packageProblem(file: SourceFile, specifier: string, rules: StructureRules): string | undefined {
  const [name, allowed] = isBuiltin(specifier)
    ? rowOf(specifier.startsWith('node:') ? specifier : `node:${specifier}`, rules.builtins)
    : rowOf(specifier, rules.packages);
  if (!allowed) {
    return `${name} has no row: use an existing package, or add a row to ${rules.file} and state the reason in docs/decisions.`;
  }
  if (allowed.length === 0 || isIn(file.place, allowed)) return undefined;
  return `${name} is allowed only in ${listed(allowed)} (${rules.file}): take what you need as a parameter, or move this file.`;
}

function importProblems(file: SourceFile, found: FoundImport, rules: StructureRules): Problem[] {
  const { specifier } = found;
  if (specifier === undefined) {
    const message = 'Cannot check an import() without a plain string: write one import() for each file.';
    return [{ rule: 'imports', message }];
  }
  if (!specifier.startsWith('.')) {
    const message = packageProblem(file, specifier, rules);
    return message ? [{ rule: 'packages', message }] : [];
  }
  const target = targetOf(file, specifier);
  const message = layerProblem(file, target, found.types, rules) ?? lazyProblem(file, target, found, rules);
  return message ? [{ rule: 'imports', message }] : [];
}

/** Checks the layers and the lazy boundaries, and where packages and builtin modules may be imported. */
export function checkImports(files: readonly SourceFile[], rules: StructureRules): Violation[] {
  return files.flatMap(file =>
    file.imports.flatMap(found =>
      importProblems(file, found, rules).map(problem => ({ path: file.path, line: found.line, ...problem })),
    ),
  );
}
