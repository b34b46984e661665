import { readdir, readFile, stat, symlink } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { runProgram } from './run-program.ts';

let project: TempProject;
let id: string;

const run = (args: string[], home = '.home') =>
  runProgram([...args, '--offline'], {
    cwd: project.root,
    env: { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path(home) },
  });

beforeAll(async () => {
  project = await tempProject({ 'a.ts': 'const one = 1;\n' });
  await run(['ask', 'About the pelican', '--file', 'a.ts']);
  id = JSON.parse((await run(['threads', '--json'])).out).threads[0].continuation_id;
});

afterAll(() => project.dispose());

describe('polylogue export and import', () => {
  it('carry a conversation to another place, byte for byte', async () => {
    const first = await run(['export', 'last']);
    expect(first.code).toBe(0);
    await project.write('talk.jsonl', first.out);
    const imported = await run(['import', 'talk.jsonl'], '.elsewhere');
    expect(imported).toMatchObject({ code: 0, out: `${id}  2 turns\n` });
    expect((await run(['export', id], '.elsewhere')).out).toBe(first.out);
    expect((await run(['threads', 'read', id], '.elsewhere')).out).toContain('1. you (chat)\nAbout the pelican');
  });

  it('reads a file from standard input', async () => {
    const whole = (await run(['export', 'last'])).out;
    const env = { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.piped') };
    const piped = { cwd: project.root, env, ownProcess: true };
    const imported = await runProgram(['import', '-', '--offline'], { ...piped, input: whole });
    expect(imported).toMatchObject({ code: 0, out: `${id}  2 turns\n` });
    expect((await run(['export', id], '.piped')).out).toBe(whole);
    const empty = await runProgram(['import', '-', '--offline'], { ...piped, input: '' });
    expect([empty.code, empty.out]).toEqual([2, '']);
  });

  it('write the format that the file is named after, for the user alone, and replace only what they are told to', async () => {
    expect((await run(['export', id, '--output', 'talk.html'])).code).toBe(0);
    const page = await readFile(project.path('talk.html'), 'utf8');
    expect(page).toMatch(/^<!doctype html>[\s\S]*pelican[\s\S]*<\/html>\n$/);
    expect((await stat(project.path('talk.html'))).mode & 0o777).toBe(0o600);
    const again = await run(['export', id, '--format', 'md', '--output', 'talk.html']);
    expect(again).toMatchObject({ code: 2 });
    expect(again.err).toContain('--overwrite');
    expect(await readFile(project.path('talk.html'), 'utf8')).toBe(page);
    const told = await run(['export', id, '--format', 'md', '--output', 'talk.html', '--overwrite', '--json']);
    expect(JSON.parse(told.out)).toMatchObject({ continuation_id: id, format: 'md', file: project.path('talk.html') });
    expect(await readFile(project.path('talk.html'), 'utf8')).toMatch(/^# About the pelican/);
  });

  it('follow no link that somebody put where the file is made', async () => {
    await project.write('precious.txt', 'mine');
    await symlink(project.path('precious.txt'), project.path('.linked.md.part'));
    await symlink(project.path('precious.txt'), project.path('linked.md'));
    expect((await run(['export', id, '--output', 'linked.md'])).code).toBe(2);
    expect((await run(['export', id, '--output', 'linked.md', '--overwrite'])).code).toBe(0);
    expect(await readFile(project.path('precious.txt'), 'utf8')).toBe('mine');
    expect(await readFile(project.path('linked.md'), 'utf8')).toMatch(/^# About the pelican/);
    expect((await readdir(project.root)).filter(name => name.startsWith('.polylogue'))).toEqual([]);
  });

  it('say what is wrong, and end with 2 for the command line and 1 for what failed', async () => {
    const unknown = await run(['export', '00000000-0000-4000-8000-000000000000']);
    expect(unknown).toMatchObject({ code: 2, out: '' });
    expect(unknown.err).toContain('Unknown thread');
    expect((await run(['export', id, '--output', 'none/talk.md'])).code).toBe(1);
    expect((await run(['export', id, '--format', 'pdf'])).code).toBe(2);
    expect((await run(['import', 'gone.jsonl'])).code).toBe(2);
    await project.write('cut.jsonl', (await run(['export', id])).out.slice(0, -20));
    const cut = await run(['import', 'cut.jsonl', '--as-new', '--json']);
    expect(cut.code).toBe(2);
    expect(JSON.parse(cut.out).error).toMatchObject({
      class: 'broken_file',
      message: expect.stringMatching(/^Line \d/),
    });
  });

  it('say that what is imported into memory is gone at once', async () => {
    await project.write('kept.jsonl', (await run(['export', id])).out);
    const { code, err } = await run(['import', 'kept.jsonl', '--private']);
    expect(code).toBe(0);
    expect(err).toContain('in memory alone');
  });

  it('make a copy where the conversation is there already', async () => {
    await project.write('own.jsonl', (await run(['export', id])).out);
    const refused = await run(['import', 'own.jsonl']);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.err).toContain('--as-new');
    const copy = JSON.parse((await run(['import', 'own.jsonl', '--as-new', '--json'])).out);
    expect(copy).toMatchObject({ status: 'success', turns: 2, texts: 1, missing_texts: 0 });
    expect(copy.continuation_id).not.toBe(id);
    await run(['threads', 'delete', copy.continuation_id, '--yes']);
  });
});

describe('polylogue threads prune', () => {
  it('says what would go, and takes just that', async () => {
    expect(await run(['threads', 'prune'])).toMatchObject({ code: 0, out: 'removed 0 threads, 0 texts, 0.0 kB\n' });
    const young = await run(['threads', 'prune', '--older-than', '1h', '--json']);
    expect(JSON.parse(young.out)).toEqual({ status: 'success', dry_run: false, threads: 0, blobs: 0, bytes: 0 });
    for (const age of ['30', '0d', 'd', '1.5h', '-1d']) {
      expect((await run(['threads', 'prune', `--older-than=${age}`])).code, age).toBe(2);
    }
    expect(JSON.parse((await run(['threads', '--json'])).out).threads).toHaveLength(1);
  });
});
