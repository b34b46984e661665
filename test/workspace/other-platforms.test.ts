import { win32 } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isIn, leavesRoots, parsePathReference, slashedFrom } from '../../src/workspace/paths.ts';
import { runTree } from '../../src/workspace/process-tree.ts';
import { findProgram, variablesFor } from '../../src/workspace/programs.ts';
import { checkTarget } from '../../src/workspace/write-file.ts';
import { realClock } from '../support/clock.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const clock = realClock();
const app = 'C:\\dev\\app';
const share = '\\\\server\\share\\app';

describe('a path of Windows', () => {
  it.each([
    ['c:\\DEV\\App\\src\\a.ts', app, true],
    ['C:/dev/app/a.ts', app, true],
    ['C:\\dev\\app', app, true],
    ['C:\\dev\\app-evil\\a.ts', app, false],
    ['C:\\dev', app, false],
    ['D:\\dev\\app\\a.ts', app, false],
    ['D:\\', 'C:\\', false],
    ['\\\\SERVER\\share\\app\\a.ts', share, true],
    ['\\\\server\\other\\a.ts', share, false],
    ['C:\\dev\\app\\..cache', app, true],
  ])('%s is in %s: %s', (path, folder, expected) => {
    expect(isIn(path, folder, win32)).toBe(expected);
  });

  it.each([
    [app, 'C:\\dev\\app\\src\\a.ts', 'src/a.ts'],
    [app, 'c:\\Dev\\App\\src', 'src'],
    [app, app, ''],
    [share, '\\\\server\\share\\app\\x\\y', 'x/y'],
  ])('is told from %s: %s', (folder, path, expected) => {
    expect(slashedFrom(folder, path, win32)).toBe(expected);
  });

  it.each([
    [app, 'C:\\dev\\app\\a.ts', false],
    [app, 'D:\\elsewhere\\a.ts', false],
    [app, '\\\\evil\\share\\a.ts', true],
    [app, '//evil/share/a.ts', true],
    [share, '\\\\server\\share\\app\\a.ts', false],
    [share, '\\\\evil\\share\\app\\a.ts', true],
    [app, '\\\\?\\C:\\dev\\app\\a.ts', true],
    [app, '\\\\.\\pipe\\x', true],
    [app, 'C:\\dev\\app\\.env::$DATA', true],
    [app, 'C:\\dev\\app\\a.ts:hidden', true],
    [share, '\\\\server\\share\\app\\a.ts:hidden', true],
    ...['CON', 'src\\COM1', 'aux.ts', 'NUL.txt', 'con ', 'prn.', 'nul .txt', 'COM¹', 'CONIN$', 'aux/a.ts'].map(
      (name): [string, string, boolean] => [app, `C:\\dev\\app\\${name}`, true],
    ),
    ...['console.ts', 'auxiliary\\a.ts', 'com10.ts', 'null.ts', 'a.con', 'com.ts'].map(
      (name): [string, string, boolean] => [app, `C:\\dev\\app\\${name}`, false],
    ),
  ])('below the root %s, %s is not looked at: %s', (root, path, expected) => {
    expect(leavesRoots(path, [root], win32)).toBe(expected);
    expect(leavesRoots(path, [root])).toBe(false);
  });

  const links: Record<string, string> = {
    ...{
      away: '\\\\evil\\share',
      hop: 'away',
      up: '..\\..\\dev\\app\\hop',
      circle: 'circle',
      inside: 'src',
      pipe: '\\\\.\\pipe',
    },
    ...{ nas: '\\\\server\\share\\app\\lib', device: 'NUL' },
  };
  it.each([
    ...['away', 'away\\a.ts', 'hop\\x\\a.ts', 'up', 'circle', 'pipe\\x', 'device', 'inside/../away/x'].map(
      (way): [string, boolean] => [way, true],
    ),
    ...['inside', 'inside\\a.ts', 'nas\\a.ts', 'none\\a.ts'].map((way): [string, boolean] => [way, false]),
  ])('with links on the way, %s is not followed: %s', (way, expected) => {
    const looked: string[] = [];
    const read = (path: string) => {
      looked.push(path);
      const target = links[win32.relative(app, path)];
      if (target === undefined) throw new Error('EINVAL');
      return target;
    };
    expect(leavesRoots(`${app}\\${way}`, [app, share], win32, read)).toBe(expected);
    expect(looked.filter(path => path.startsWith('\\\\evil'))).toEqual([]);
  });

  it.each([
    ...['NUL.txt', 'con ', 'a.ts:hidden', 'PACKAG~1.JSO', 'AGENTS~1.MD', 'GIT~1', 'aux\\a.ts'].map(
      (name): [string, boolean] => [name, false],
    ),
    ...['a.ts', 'a~b.ts', 'console.ts', 'GIT~1x\\a.ts'].map((name): [string, boolean] => [name, true]),
  ])('is written as %s: %s', (name, expected) => {
    const path = `C:\\dev\\app\\${name}`;
    const check = (separator: '/' | '\\') => () => checkTarget({ isOwn: () => false }, path, separator);
    if (expected) expect(check('\\')).not.toThrow();
    else expect(check('\\')).toThrow('another');
    expect(check('/')).not.toThrow();
  });

  it.each([
    ['src\\a.ts', 'C:\\dev\\app\\src\\a.ts', undefined],
    ['src/a.ts:10-20', 'C:\\dev\\app\\src\\a.ts', { from: 10, to: 20 }],
    ['D:\\x\\a.ts:7', 'D:\\x\\a.ts', { from: 7, to: 7 }],
    ['D:/x', 'D:\\x', undefined],
    ['~\\notes.md', 'C:\\Users\\ann\\notes.md', undefined],
    ['file:///c%3A/dev/app/a%20b.ts:3', 'c:\\dev\\app\\a b.ts', { from: 3, to: 3 }],
    ['file://server/share/a.ts', '\\\\server\\share\\a.ts', undefined],
  ])('is read from %s', (input, path, range) => {
    expect(parsePathReference(input, app, 'C:\\Users\\ann', win32)).toMatchObject({ path, ...(range && { range }) });
  });
});

describe('a program on Windows', () => {
  let place: TempProject;
  beforeAll(async () => {
    const files = ['npm', 'npm.cmd', 'tool.ps1', 'plain', 'python3.12.exe'];
    place = await tempProject(Object.fromEntries(files.map(name => [`bin/${name}`, ''])));
  });
  afterAll(() => place.dispose());
  const search = () => ({
    env: { Path: place.path('bin'), PATHEXT: '.com;.exe;.cmd' },
    projects: [],
    platform: 'win32',
  });

  it.each([
    ['npm', 'npm.cmd'],
    ['npm.CMD', undefined],
    ['npm.cmd', 'npm.cmd'],
    ['python3.12', 'python3.12.exe'],
    ['tool.ps1', undefined],
    ['plain', undefined],
  ])('%s is %s, by its name and by its path', async (name, file) => {
    const expected = file && place.path(`bin/${file}`);
    expect(await findProgram(name, search())).toBe(expected);
    expect(await findProgram(place.path(`bin/${name}`), search())).toBe(expected);
  });

  it('gets the variables that the system writes in other cases, and no keys', () => {
    const env = { Path: 'C:\\bin', SystemRoot: 'C:\\Windows', ComSpec: 'cmd', LOCALAPPDATA: 'C:\\l', LC_ALL: 'C' };
    expect(variablesFor({ ...env, OPENAI_API_KEY: 'sk', Unset: undefined }, ['LC_*'])).toEqual(env);
  });

  const shim = 'C:\\npm\\x.cmd';
  it.each([
    [shim, 'two\nlines', 'input'],
    ['C:\\x.BAT', 'two\nlines', 'input'],
    ['C:\\x.js', 'two\nlines', 'input'],
    [shim, 'a\r', 'input'],
    [shim, '%'.repeat(1_000), 'input'],
    [shim, '"'.repeat(4_000), 'input'],
    [shim, 'x'.repeat(8_000), 'input'],
    ['C:\\x.exe', '\\'.repeat(17_000), 'input'],
    [shim, 'x'.repeat(6_000), undefined],
    ['C:\\x.EXE', `%\n${'x'.repeat(30_000)}`, undefined],
  ])('%s is given an argument (%#)', async (file, argument, kind) => {
    const signal = AbortSignal.timeout(60_000);
    const run = { file, args: ['-p', argument], cwd: place.root, env: {}, mark: 'x=1', platform: 'win32' };
    const ended = runTree({ ...run, clock, signal, graceMs: 0, onOutput: () => undefined });
    // there is no such file here: what is not refused is tried
    if (kind === undefined) expect(await ended).toMatchObject({ failure: expect.stringContaining('ENOENT') });
    else
      await expect(ended).rejects.toMatchObject({ kind, details: { next: expect.stringContaining('standard input') } });
  });
});
