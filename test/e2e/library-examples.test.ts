import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../', import.meta.url));
const pages = ['README.md', 'docs/library.md'];

/** The programs of a page: what stands in its blocks of TypeScript that import the package. */
async function examplesOf(page: string): Promise<{ name: string; code: string }[]> {
  const text = await readFile(`${repository}${page}`, 'utf8');
  const blocks = [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);
  return blocks
    .filter(code => code.includes("from 'polylogue'"))
    .map((code, index) => ({ name: `${page.replaceAll(/\W/g, '-')}-${index + 1}.ts`, code }));
}

const examples = (await Promise.all(pages.map(examplesOf))).flat();
let place: TempProject;

beforeAll(async () => {
  place = await tempProject({
    'package.json': '{ "type": "module" }',
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        target: 'es2024',
        lib: ['es2024', 'esnext.disposable'],
        module: 'nodenext',
        types: ['node'],
        strict: true,
        noEmit: true,
        erasableSyntaxOnly: true,
      },
      include: ['*.ts'],
    }),
    'src/greet.ts': 'export function greet(name?: string) {\n  return `Hello ${name!.trim()}`;\n}\n',
    ...Object.fromEntries(examples.map(({ name, code }) => [name, code])),
  });
  await mkdir(place.path('node_modules/@types'), { recursive: true });
  await symlink(repository, place.path('node_modules/polylogue'));
  await symlink(`${repository}node_modules/ai`, place.path('node_modules/ai'));
  await symlink(`${repository}node_modules/@types/node`, place.path('node_modules/@types/node'));
});
afterAll(() => place.dispose());

describe('the examples of the library', () => {
  it('stand in the README and in docs/library.md', () => {
    for (const page of pages)
      expect(examples.filter(({ name }) => name.startsWith(page.replaceAll(/\W/g, '-')))).not.toEqual([]);
  });

  it('are sound TypeScript, by the types of the package', async () => {
    const tsc = `${repository}node_modules/typescript/bin/tsc`;
    const { stdout } = await run(process.execPath, [tsc, '-p', place.root]).catch(
      (failed: { stdout: string }) => failed,
    );
    // Types of the AI SDK want those of browsers.
    const own = stdout.split('\n').filter(line => /^\S/.test(line) && !line.startsWith('node_modules/'));
    expect(own).toEqual([]);
  });

  it.each(examples)('$name runs', async ({ name }) => {
    const home = place.path(`.home-${name}`);
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: place.root,
      POLYLOGUE_HOME: home,
      PROJECT_ROOT: place.root,
      OFFLINE: 'on',
    };
    const { stdout, stderr } = await run(process.execPath, [place.path(name)], { cwd: place.root, env });
    expect(stderr).toBe('');
    expect(stdout).not.toBe('');
  });
});
