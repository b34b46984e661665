import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import { main, runProgram } from '../run-program.ts';

let project: TempProject;

const run = (...args: string[]) =>
  runProgram([...args, '--offline'], {
    cwd: project.root,
    env: { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.home') },
  });
const documentOf = async (...args: string[]) => JSON.parse((await run(...args, '--json')).out);

beforeAll(async () => {
  project = await tempProject({
    'src/pelican.ts': '/** Feeds the bird. */\nexport function feedPelican(fish: number) {\n  return fish;\n}\n',
    'notes.md': '# Walrus\n\nIt sleeps.\n',
    'src/trap.ts': 'export const trapDoor = "\u001b]0;owned\u0007";\n',
    id_rsa: 'pelican\n',
  });
});

afterAll(() => project.dispose());

describe('polylogue index', () => {
  it('indexes what may be read, then only what changed, or all of it when told', async () => {
    const first = await documentOf('index');
    expect(first).toMatchObject({
      status: 'success',
      root: project.root,
      files: 3,
      indexed: 3,
      removed: 0,
      skipped: 1,
    });
    expect(first.skips[0]).toMatchObject({ code: 'secret' });
    await project.write('notes.md', '# Walrus\n\nIt swims.\n');
    expect(await documentOf('index')).toMatchObject({ files: 3, indexed: 1 });
    expect(await documentOf('index', '--rebuild')).toMatchObject({ files: 3, indexed: 3 });
    const { out, code } = await run('index');
    expect(out).toContain('3 files, 0 of them read now');
    expect(code).toBe(0);
  });

  it('names all directories that its counts are about', async () => {
    const other = await tempProject({ 'lib/heron.ts': 'export const heron = 1;\n' });
    const { out } = await runProgram(['index', '--offline', '--private'], {
      cwd: project.root,
      env: { PROJECT_ROOT: [project.root, other.root].join(delimiter), POLYLOGUE_HOME: project.path('.private') },
    });
    expect(out).toContain(`${project.root}, ${other.root}: 4 files`);
    await other.dispose();
  });

  it('leaves nothing behind in private mode', async () => {
    const home = project.path('.private');
    const { code, out } = await runProgram(['index', '--offline', '--private'], {
      cwd: project.root,
      env: { PROJECT_ROOT: project.root, POLYLOGUE_HOME: home },
    });
    expect(out).toContain('3 files, 3 of them read now');
    expect(code).toBe(0);
    expect(existsSync(home)).toBe(false);
  });
});

describe('polylogue search', () => {
  it.each([
    [{ EMBEDDING_MODEL: 'foo' }, 'EMBEDDING_MODEL is "foo"'],
    [{ EMBEDDING_MODEL: 'openai:vectors', OPENAI_API_KEY: 'sk-key' }, '--offline is on'],
  ])('says on stderr and in its document why there are no vectors: %o', async (set, why) => {
    const place = {
      cwd: project.root,
      env: { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.home'), ...set },
    };
    for (const words of [['index'], ['search', 'pelican']]) {
      const { code, err } = await runProgram([...words, '--offline'], place);
      expect(code).toBe(0);
      expect(err).toContain(why);
      const { out } = await runProgram([...words, '--offline', '--json'], place);
      expect(JSON.parse(out).warning).toContain(why);
    }
  });

  it('prints places with their lines, the best first', async () => {
    const { out, code } = await run('search', 'who', 'feeds', 'the', 'pelican');
    expect(out.split('\n')[0]).toMatch(/^src\/pelican\.ts:1-4\s+feedPelican$/);
    expect(out).toContain('export function feedPelican');
    expect(code).toBe(0);
    const { hits } = await documentOf('search', 'walrus', '--limit', '1');
    expect(hits).toMatchObject([{ path: project.path('notes.md'), from: 1, to: 3, name: '# Walrus' }]);
  });

  it('lets no file command the terminal', async () => {
    const { out } = await run('search', 'trapDoor');
    expect(out).toContain('trapDoor = "\\u{1b}]0;owned');
    expect(out).not.toContain('\u001b');
  });

  it('says what the disk refused when the index cannot grow', () => {
    // In units of 1,024 bytes; a write beyond it fails instead of ending the process.
    const limited = ['-c', 'trap "" XFSZ; ulimit -f 40; exec "$@"', 'bash'];
    const { stderr } = spawnSync('bash', [...limited, process.execPath, main, 'search', 'pelican', '--offline'], {
      cwd: project.root,
      env: { HOME: project.root, PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.limited') },
      encoding: 'utf8',
    });
    expect(stderr).toContain('polylogue: The search index cannot be used: disk I/O error. (STORAGE)');
  });

  it('says so when it finds nothing, and refuses to look for nothing', async () => {
    expect((await run('search', 'zeppelin')).out).toContain('No matches');
    const empty = await run('search');
    expect(empty.code).not.toBe(0);
    expect(empty.err).toContain('As in: polylogue search');
    expect((await run('search', 'x', '--limit', '0')).err).toContain('from 1 to 50');
  });
});

describe('the threads of the built program', () => {
  it('outline a file that has no room', async () => {
    const source = Array.from(
      { length: 4_000 },
      (_, n) => `export function part${n}(a: number, b: number) {\n  return a * ${n} + b - ${n * 7};\n}\n`,
    ).join('\n');
    await project.write('src/large.ts', source);
    const reply = await documentOf('ask', 'What does part77 do?', '--file', 'src/large.ts');
    expect(reply.metadata.files.outlined).toEqual([project.path('src/large.ts')]);
  });
});
