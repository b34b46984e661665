import { execFile } from 'node:child_process';
import { appendFile, cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
let copy: string;
let recipe: string;

/** The one block of a language in the recipe's first section. */
function block(language: string): string {
  const [section = ''] = recipe.split('\n## Any other vendor');
  const found = [...section.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))];
  expect(found).toHaveLength(1);
  return found[0]?.[1] ?? '';
}

beforeAll(async () => {
  recipe = await readFile(join(repository, 'docs/recipes/add-a-provider.md'), 'utf8');
  copy = await mkdtemp(join(tmpdir(), 'polylogue-recipe-'));
  for (const part of ['src', 'scripts', 'docs', 'test/contracts', 'test/support', 'test/models', 'test/providers']) {
    await cp(join(repository, part), join(copy, part), { recursive: true });
  }
  for (const file of ['package.json', 'tsconfig.json', 'vitest.config.ts']) {
    await cp(join(repository, file), join(copy, file));
  }
  await symlink(join(repository, 'node_modules'), join(copy, 'node_modules'));
});
afterAll(() => rm(copy, { recursive: true, force: true }));

interface Report {
  success: boolean;
  testResults: { name: string; assertionResults: { status: string; fullName: string }[] }[];
}

async function follow(command: string): Promise<void> {
  const env = { PATH: `${join(copy, 'node_modules/.bin')}:${process.env.PATH}`, HOME: copy };
  const report = 'npx vitest run test/contracts --reporter=json --outputFile=report.json --testNamePattern acme';
  const line = command === 'npx vitest run test/contracts' ? report : command;
  await run('sh', ['-c', line], { cwd: copy, env, maxBuffer: 64 * 1_048_576 });
}

describe('the recipe for a vendor of the chat dialect, followed by the letter', () => {
  it('adds the vendor with one file and its rows, and the contract suite runs over it unasked', async () => {
    const source = block('ts');
    const name = /export const (\w+)/.exec(source)?.[1] ?? '';
    await writeFile(join(copy, `src/providers/${name}.ts`), source);
    await appendFile(join(copy, 'scripts/data/model-facts.jsonl'), block('jsonl'));
    const commands = block('sh').trim().split('\n');
    expect(commands.at(-1)).toBe('npx vitest run test/contracts');
    for (const command of commands) await follow(command);

    const read = (file: string) => readFile(join(copy, file), 'utf8');
    expect(await read('src/providers/index.gen.ts')).toContain("import { acme } from './acme.ts';");
    expect(await read('.env.sample')).toContain('ACME_API_KEY');
    expect(await read('docs/reference/providers.md')).toContain('https://docs.acme.example/api');
    const rows = JSON.parse(await read('src/models/catalogue/catalogue.gen.json')).acme;
    expect(rows.map(({ id }: { id: string }) => id)).toEqual(['acme-large-2', 'acme-small-2']);

    const report: Report = JSON.parse(await read('report.json'));
    expect(report.success).toBe(true);
    const suite = report.testResults.find(({ name: file }) => file.endsWith('/test/contracts/providers.test.ts'));
    const passed = suite?.assertionResults.filter(({ status }) => status === 'passed') ?? [];
    expect(passed.filter(({ fullName }) => fullName.includes('acme')).length).toBeGreaterThan(60);
  }, 180_000);
});
