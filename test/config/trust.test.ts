import { readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { options } from '../../src/config/options.ts';
import { parseTrusted, readIfPresent, trustDirectory } from '../../src/config/settings-files.ts';
import { tempProject } from '../support/temp-project.ts';

const project = await tempProject({ 'app/.env': 'DEFAULT_MODEL=theirs', 'b/x': '' });
afterAll(project.dispose);

describe('trusting a directory', () => {
  it('lets its .env set options from then on', () => {
    const home = project.path('home');
    const load = () =>
      loadConfig({
        tables: { app: options },
        env: { POLYLOGUE_HOME: home },
        argvFlags: {},
        homeDir: project.root,
        platform: process.platform,
        cwd: project.path('app'),
        readFile: readIfPresent,
      }).values.app.defaultModel;
    expect(load()).toBe('auto');
    expect(trustDirectory(home, project.path('app'))).toBe(project.path('app'));
    expect(load()).toBe('theirs');
  });

  it('keeps the others, lists each once, and is readable by its owner only', async () => {
    const home = project.path('home');
    trustDirectory(home, project.path('b'));
    trustDirectory(home, project.path('b'));
    const file = project.path('home/trusted.json');
    expect(parseTrusted(await readFile(file, 'utf8'))).toEqual([project.path('app'), project.path('b')]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('is about the real directory, not about a link to it', async () => {
    await symlink(project.path('b'), project.path('link'));
    expect(trustDirectory(project.path('home'), project.path('link'))).toBe(project.path('b'));
  });

  it('refuses what is no directory, and does not write over a damaged list', async () => {
    expect(() => trustDirectory(project.path('home'), project.path('absent'))).toThrow(/is not a directory/);
    expect(() => trustDirectory(project.path('home'), project.path('b/x'))).toThrow(/is not a directory/);
    await project.write('damaged/trusted.json', '{"directories": ');
    expect(() => trustDirectory(project.path('damaged'), project.path('b'))).toThrow(/is damaged/);
    expect(await readFile(project.path('damaged/trusted.json'), 'utf8')).toBe('{"directories": ');
  });
});

describe('reading a settings file', () => {
  it('is undefined where there is none, and refuses what is no small regular file', async () => {
    expect(readIfPresent(project.path('absent/.env'))).toBeUndefined();
    expect(readIfPresent(project.path('app/.env'))).toBe('DEFAULT_MODEL=theirs');
    const text = 'A=é\r\n';
    const wide = Buffer.from(`\uFEFF${text}`, 'utf16le');
    await writeFile(project.path('little'), wide);
    await writeFile(project.path('big-endian'), Buffer.from(wide).swap16());
    for (const name of ['little', 'big-endian']) expect(readIfPresent(project.path(name))).toBe(text);
    expect(() => readIfPresent(project.root)).toThrow(/regular file/);
    await writeFile(project.path('big'), Buffer.alloc(1_048_577));
    expect(() => readIfPresent(project.path('big'))).toThrow(/larger than/);
  });
});
