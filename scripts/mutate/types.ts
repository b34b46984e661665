import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Mutant } from './mutants.ts';

/** The type check of the repository; what is unused and what is never reached are errors of style, not of types. */
const overrides = { noUnusedLocals: false, noUnusedParameters: false, allowUnreachableCode: true, types: ['node'] };

/** Relative imports of a source, which is checked in another directory. */
const relative = /((?:from|import\() ?')(\.\.?\/[^']+)'/g;

/** Returns the mutants that the type check refuses: nobody could merge them, so they measure no test. Each is compiled as a file. */
export function refusedByTypes<Each extends Mutant & { file: string }>(
  root: string,
  sources: ReadonlyMap<string, string>,
  mutants: readonly Each[],
): Set<Each> {
  // Inside `node_modules`, so that packages are found.
  const folder = mkdtempSync(join(root, 'node_modules', '.mutate-'));
  try {
    const files: string[] = [];
    const write = (name: string, file: string, code: string) => {
      const at = dirname(join(root, file));
      files.push(name);
      writeFileSync(
        join(folder, name),
        code.replaceAll(relative, (_, start: string, path: string) => `${start}${join(at, path)}'`),
      );
    };
    const originals = [...sources.keys()];
    originals.forEach((file, index) => {
      write(`original-${index}.ts`, file, sources.get(file) ?? '');
    });
    mutants.forEach(({ file, start, end, edited }, index) => {
      const source = sources.get(file) ?? '';
      write(`mutant-${index}.ts`, file, source.slice(0, start) + (edited ?? '{}') + source.slice(end));
    });
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.json'),
        compilerOptions: overrides,
        files,
        include: [],
        exclude: [],
      }),
    );
    const tsc = join(root, 'node_modules', '.bin', 'tsc');
    const { stdout } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    });
    const failed = new Set([...stdout.matchAll(/^(?:.*\/)?((?:original|mutant)-\d+\.ts)\(/gm)].map(match => match[1]));
    const broken = originals.filter((_, index) => failed.has(`original-${index}.ts`));
    if (broken.length > 0) throw new Error(`Cannot check types of ${broken.join(', ')}:\n${stdout.slice(0, 2_000)}`);
    return new Set(mutants.filter((_, index) => failed.has(`mutant-${index}.ts`)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
