import { readdirSync, renameSync, statSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import { runProgram } from '../run-program.ts';

let project: TempProject;

const run = (...args: string[]) =>
  runProgram([...args, '--offline'], {
    cwd: project.root,
    env: { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.home') },
  });

const idsOf = async () => {
  const { out } = await run('threads', '--json');
  const ids: string[] = JSON.parse(out).threads.map((thread: { continuation_id: string }) => thread.continuation_id);
  return ids;
};

beforeAll(async () => {
  project = await tempProject({ 'a.ts': 'const one = 1;\n' });
  await run('ask', 'About the pelican', '--file', 'a.ts');
  await run('ask', 'About the walrus');
});

afterAll(() => project.dispose());

describe('polylogue threads', () => {
  it('says on stderr what was set aside and which setting was ignored, and doctor lists the damaged file', async () => {
    const place = await tempProject({ 'home/threads.sqlite': 'x'.repeat(100_000), 'home/.env': 'OFFLNE=on\n' });
    const options = { cwd: place.root, env: { PROJECT_ROOT: place.root, POLYLOGUE_HOME: place.path('home') } };
    const { code, out, err } = await runProgram(['threads', '--json'], options);
    expect([code, JSON.parse(out).status]).toEqual([0, 'success']);
    expect(err).toMatch(/^polylogue: The file of the threads was damaged .* set aside as .*\.corrupt-/m);
    expect(err).toMatch(/^polylogue: "OFFLNE" .* was ignored; did you mean POLYLOGUE_OFFLINE\?/m);
    const { findings } = JSON.parse((await runProgram(['doctor', '--json', '--offline'], options)).out);
    const aside = findings.filter(({ what }: { what: string }) => what === 'set aside');
    expect(aside).toEqual([
      {
        state: 'warn',
        what: 'set aside',
        text: expect.stringContaining('.corrupt-'),
        next: expect.stringContaining('delete'),
      },
    ]);
    await place.dispose();
  });

  it('lists those of the project, the newest first', async () => {
    const { code, out } = await run('threads');
    expect(code).toBe(0);
    expect(out.indexOf('walrus')).toBeLessThan(out.indexOf('pelican'));
    expect(out.indexOf('walrus')).toBeGreaterThan(0);
  });

  it('finds words', async () => {
    const { out } = await run('threads', 'search', 'pelican');
    expect(out).toContain('pelican');
    expect(out).not.toContain('walrus');
    expect((await run('threads', 'search', 'no-such-word')).out).toMatch(/^No matches in this project\. /);
  });

  it('reads a conversation and says what was sent to whom', async () => {
    const [, older = ''] = await idsOf();
    const read = await run('threads', 'read', older);
    expect(read.out).toContain('1. you (chat)\nAbout the pelican');
    expect(read.out).toContain('a.ts');
    expect((await run('threads', 'sent', older)).out).toMatch(/1\. chat to offline-.*\n {3}full: .*a\.ts \(1 lines\)/);
  });

  it('forks and deletes, the latter only with --yes', async () => {
    const before = await idsOf();
    const { out } = await run('threads', 'fork', 'last', '--turn', '2');
    const fork = out.split(' ')[0] ?? '';
    expect(await idsOf()).toEqual([fork, ...before]);
    const refused = await run('threads', 'delete', fork);
    expect(refused.code).toBe(1);
    expect(refused.err).toContain('--yes');
    expect(await idsOf()).toContain(fork);
    expect((await run('threads', 'delete', fork, '--yes')).code).toBe(0);
    expect(await idsOf()).toEqual(before);
  });

  it.each([
    [['threads', 'burn'], 'list, search'],
    [['threads', 'read'], 'threads read ID'],
    [['threads', 'search'], 'words'],
  ])('refuses %j with exit code 2 and what is allowed', async (args, told) => {
    const { code, err } = await run(...args);
    expect(code).toBe(2);
    expect(err).toContain(told);
  });

  it.each([
    [['delete', 'last', '--yes', '--dry-run'], /no --dry-run.*\n.*prune/],
    [['--older-than', '30d'], /no --older-than.*\n.*prune/],
    [['prune', '30d'], /no "30d".*\n.*--older-than/],
    [['list', 'pelican'], /no "pelican".*\n.*search/],
  ])('refuses what belongs to another action, and does nothing: %j', async (words, told) => {
    const before = await idsOf();
    const { code, err } = await run('threads', ...words);
    expect(code).toBe(2);
    expect(err).toMatch(told);
    expect(await idsOf()).toEqual(before);
  });

  it('backs up the threads of all projects into a file that takes the place of the store', async () => {
    const before = await idsOf();
    const file = project.path('kept.sqlite');
    expect(await run('threads', 'backup', 'kept.sqlite')).toMatchObject({
      code: 0,
      out: expect.stringContaining(file),
    });
    const again = await run('threads', 'backup', file);
    expect([again.code, again.err]).toEqual([2, expect.stringContaining('--overwrite')]);
    const { out } = await run('threads', 'backup', file, '--overwrite', '--json');
    const { size, mode } = statSync(file);
    expect([JSON.parse(out), mode & 0o777]).toEqual([{ status: 'success', file, bytes: size }, 0o600]);
    await run('ask', 'About the auk');
    renameSync(file, project.path('.home/threads.sqlite'));
    expect(await idsOf()).toEqual(before);
    expect((await run('threads', 'backup', 'none/kept.sqlite')).err).toMatch(/cannot be written.*\n.*directory/);
    expect((await run('threads', 'backup')).err).toContain('threads backup FILE');
    const memory = await runProgram(['threads', 'backup', 'm.sqlite', '--offline'], {
      cwd: project.root,
      env: { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.home'), POLYLOGUE_STORE: 'memory' },
    });
    expect([memory.code, memory.err]).toEqual([2, expect.stringContaining('not stored in a file')]);
    const left = readdirSync(project.root).filter(name => name.includes('.part') || name === 'm.sqlite');
    expect(left).toEqual([]);
  });

  it('says that a thread does not exist, with exit code 2', async () => {
    const { code, err } = await run('threads', 'read', '00000000-0000-4000-8000-000000000000');
    expect(code).toBe(2);
    expect(err).toContain('polylogue:');
  });
});
