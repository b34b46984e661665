import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isAppError } from '../../src/core/errors.ts';
import { createSandbox, type Sandbox } from '../../src/workspace/sandbox.ts';
import { processTime } from '../support/own-time.ts';
import { tempTree } from './temp-tree.ts';

async function read(sandbox: Sandbox, path: string): Promise<string> {
  const opened = await sandbox.open(path);
  if ('code' in opened) return opened.code;
  try {
    return await opened.handle.readFile('utf8');
  } finally {
    await opened.handle.close();
  }
}

async function timed<Result>(work: Promise<Result>): Promise<Result> {
  const started = processTime();
  const result = await work;
  expect(processTime() - started).toBeLessThan(1_000);
  return result;
}

/** `root/app` is open, `root/app-evil` and `root/secret.txt` are not. */
function tree() {
  const root = tempTree({
    'app/a.ts': 'inside',
    'app/sub/b.ts': 'below',
    'app-evil/c.ts': 'evil',
    'secret.txt': 'outside',
  });
  return { root, app: join(root, 'app') };
}

describe.each([
  ['with descriptor links', '/proc/self/fd'],
  ['by comparing identities', '/nowhere/fd'],
])('sandbox %s', (_, descriptors) => {
  const sandboxOf = (roots: string[], allowSecrets = false) => createSandbox({ roots, allowSecrets, descriptors });

  it('reads regular files of one folder at once, and none by a link, outside, secret or too large', async () => {
    const { root, app } = tree();
    mkdirSync(join(app, 'folder'));
    symlinkSync('a.ts', join(app, 'inner-link'));
    symlinkSync('../secret.txt', join(app, 'outer-link'));
    symlinkSync(root, join(app, 'up'));
    execFileSync('mkfifo', [join(app, 'pipe')]);
    const names = ['a.ts', 'inner-link', 'outer-link', 'pipe', 'folder', '.env', 'gone'];
    const found = await timed(sandboxOf([app]).readIn(app, names, 100));
    if ('code' in found) throw new Error(found.reason);
    const outcomes = [...found].map(([name, one]) => [name, 'code' in one ? one.code : one.bytes.toString()]);
    expect(Object.fromEntries(outcomes)).toEqual({
      'a.ts': 'inside',
      'inner-link': 'unreadable',
      'outer-link': 'unreadable',
      pipe: 'not_regular',
      folder: 'not_regular',
      '.env': 'secret',
      gone: 'not_found',
    });
    const small = await sandboxOf([app]).readIn(app, ['a.ts'], 5);
    expect(small).toEqual(new Map([['a.ts', expect.objectContaining({ code: 'too_large' })]]));
    expect(await sandboxOf([app]).readIn(root, ['secret.txt'], 100)).toMatchObject({ code: 'outside_roots' });
    expect(await sandboxOf([app]).readIn(join(app, 'up'), ['secret.txt'], 100)).toMatchObject({
      code: 'outside_roots',
    });
    expect(await sandboxOf([root]).readIn(join(app, 'up'), ['secret.txt'], 100)).toMatchObject({ code: 'not_regular' });
    expect(await sandboxOf([app]).readIn(join(app, 'a.ts'), ['x'], 100)).toMatchObject({ code: 'not_regular' });
  });

  it('opens files inside its roots and says their real path', async () => {
    const { app } = tree();
    const opened = await sandboxOf([app]).open(join(app, 'sub/../a.ts'));
    if ('code' in opened) throw new Error(opened.reason);
    expect(opened.path).toBe(join(app, 'a.ts'));
    await opened.handle.close();
  });

  it('refuses a neighbour whose name begins like the root', async () => {
    const { root, app } = tree();
    expect(await read(sandboxOf([app]), join(root, 'app-evil/c.ts'))).toBe('outside_roots');
  });

  it('refuses .. that leads out, and takes names that begin with dots', async () => {
    const root = tempTree({ 'app/..a/...b': 'dots', 'x.txt': '' });
    const app = join(root, 'app');
    expect(await read(sandboxOf([app]), `${app}/../x.txt`)).toBe('outside_roots');
    expect(await read(sandboxOf([app]), `${app}/sub/../../x.txt`)).toBe('outside_roots');
    expect(await read(sandboxOf([app]), join(app, '..a/...b'))).toBe('dots');
  });

  it('follows links that stay inside and refuses those that leave', async () => {
    const { root, app } = tree();
    symlinkSync('sub/b.ts', join(app, 'in'));
    symlinkSync('sub', join(app, 'folder'));
    symlinkSync('../secret.txt', join(app, 'out'));
    symlinkSync(root, join(app, 'up'));
    symlinkSync('out', join(app, 'out2'));
    const sandbox = sandboxOf([app]);
    expect(await read(sandbox, join(app, 'in'))).toBe('below');
    expect(await read(sandbox, join(app, 'folder/b.ts'))).toBe('below');
    expect(await read(sandbox, join(app, 'out'))).toBe('outside_roots');
    expect(await read(sandbox, join(app, 'out2'))).toBe('outside_roots');
    expect(await read(sandbox, join(app, 'up/secret.txt'))).toBe('outside_roots');
    expect(await read(sandbox, join(app, 'up/app/a.ts'))).toBe('inside');
  });

  it('takes a root that is a link for what it leads to', async () => {
    const { root, app } = tree();
    symlinkSync('app', join(root, 'alias'));
    const sandbox = sandboxOf([join(root, 'alias')]);
    expect(sandbox.roots).toEqual([app]);
    expect(await read(sandbox, join(root, 'alias/a.ts'))).toBe('inside');
    expect(await read(sandbox, join(app, 'a.ts'))).toBe('inside');
  });

  it('does not tell whether a file outside exists', async () => {
    const { root, app } = tree();
    symlinkSync('..', join(app, 'up'));
    const sandbox = sandboxOf([app]);
    expect(await read(sandbox, join(root, 'nothing.txt'))).toBe('outside_roots');
    expect(await read(sandbox, join(app, 'up/nothing.txt'))).toBe('outside_roots');
    expect(await read(sandbox, join(app, 'nothing/deeper.txt'))).toBe('not_found');
  });

  it('survives circles of links', async () => {
    const { app } = tree();
    symlinkSync('two', join(app, 'one'));
    symlinkSync('one', join(app, 'two'));
    expect(await read(sandboxOf([app]), join(app, 'one'))).toBe('unreadable');
  });

  it('never waits at a pipe, a socket or a device', async () => {
    const { app } = tree();
    execFileSync('mkfifo', [join(app, 'pipe')]);
    const server = createServer().listen(join(app, 'socket'));
    onTestFinished(() => void server.close());
    await new Promise(resolve => server.once('listening', resolve));
    const sandbox = sandboxOf([app, '/dev']);
    expect(await timed(read(sandbox, join(app, 'pipe')))).toBe('not_regular');
    expect(await timed(read(sandbox, join(app, 'socket')))).toBe('not_regular');
    expect(await timed(read(sandbox, '/dev/zero'))).toBe('not_regular');
    expect(await timed(read(sandbox, app))).toBe('not_regular');
  });

  it.each([
    '/proc/self/mem',
    '/proc/self/environ',
    '/proc/1/cmdline',
    '/proc/self/task',
    '/sys/kernel/notes',
    '/dev/zero',
    '/dev/stdin',
    '/dev/fd/0',
    '/proc/self/fd/0',
  ])('keeps %s closed to a root that merely contains it', async path => {
    expect(await timed(read(sandboxOf(['/']), path))).toBe('outside_roots');
  });

  it('judges a way through /proc by where it leads', async () => {
    const { root, app } = tree();
    expect(await read(sandboxOf([app]), `/proc/self/root${app}/a.ts`)).toBe('inside');
    expect(await read(sandboxOf([app]), `/proc/self/root${root}/secret.txt`)).toBe('outside_roots');
  });

  it('opens /proc to a root that lies there', async () => {
    expect(await read(sandboxOf([realpathSync('/proc/self')]), '/proc/self/comm')).not.toBe('outside_roots');
  });

  it('takes a hard link for the ordinary file it is', async () => {
    const { root, app } = tree();
    linkSync(join(root, 'secret.txt'), join(app, 'hard.txt'));
    expect(await read(sandboxOf([app]), join(app, 'hard.txt'))).toBe('outside');
  });

  it('keeps secret files closed under either of their names, unless allowed', async () => {
    const root = tempTree({ '.env': 'KEY=1', '.env.example': 'KEY=', 'plain.txt': 'text' });
    symlinkSync('.env', join(root, 'notes.txt'));
    symlinkSync('plain.txt', join(root, 'id_rsa'));
    const sandbox = sandboxOf([root]);
    for (const name of ['.env', 'notes.txt', 'id_rsa']) expect(await read(sandbox, join(root, name))).toBe('secret');
    expect(await read(sandbox, join(root, '.env.example'))).toBe('KEY=');
    expect(await read(sandboxOf([root], true), join(root, 'notes.txt'))).toBe('KEY=1');
  });

  it.each([['a\nb.ts'], ['a\u202etxt.ts'], ['--output=x'], ['a:10'], [' ']])('opens a file named %j', async name => {
    const root = tempTree({ [name]: 'odd' });
    expect(await read(sandboxOf([root]), join(root, name))).toBe('odd');
  });

  it('does not mind a folder that is named like a secret file', async () => {
    const root = tempTree({ 'tls.key/readme.md': 'text' });
    const sandbox = sandboxOf([root]);
    expect(await read(sandbox, join(root, 'tls.key/readme.md'))).toBe('text');
    expect(await sandbox.list(join(root, 'tls.key'), 5)).toMatchObject({ complete: true });
  });

  it('refuses relative, overlong and NUL paths', async () => {
    const { app } = tree();
    for (const path of ['a.ts', '', `${app}/a\0b`, `/${'x/'.repeat(50_000)}`]) {
      expect(await read(sandboxOf([app]), path)).toBe('bad_path');
    }
    expect(await read(sandboxOf([app]), join(app, 'x'.repeat(300)))).toBe('bad_path');
    expect(await read(sandboxOf([app]), join(app, 'a.ts/b'))).toBe('not_found');
  });

  it('reads nothing without roots, and leaves out a root that is not there', async () => {
    const { app } = tree();
    expect(await read(sandboxOf([]), join(app, 'a.ts'))).toBe('outside_roots');
    expect(await read(sandboxOf(['/nowhere', app]), join(app, 'a.ts'))).toBe('inside');
  });

  it('lists directories inside its roots, in order and bounded', async () => {
    const { root, app } = tree();
    symlinkSync('..', join(app, 'up'));
    const sandbox = sandboxOf([app]);
    expect(await sandbox.list(app, 10)).toEqual({
      path: app,
      entries: [
        { name: 'a.ts', kind: 'file' },
        { name: 'sub', kind: 'directory' },
        { name: 'up', kind: 'link' },
      ],
      complete: true,
    });
    expect(await sandbox.list(app, 2)).toMatchObject({ complete: false, entries: { length: 2 } });
    expect(await sandbox.list(root, 10)).toMatchObject({ code: 'outside_roots' });
    expect(await sandbox.list(join(app, 'up'), 10)).toMatchObject({ code: 'outside_roots' });
    expect(await sandbox.list(join(app, 'a.ts'), 10)).toMatchObject({ code: 'not_regular' });
  });

  it('answers with a directory inside its roots or throws a security error', async () => {
    const { root, app } = tree();
    symlinkSync('sub', join(app, 'folder'));
    symlinkSync('..', join(app, 'up'));
    const sandbox = sandboxOf([app]);
    expect(await sandbox.assertWithin(app)).toBe(app);
    expect(await sandbox.assertWithin(join(app, 'folder'))).toBe(join(app, 'sub'));
    for (const path of [root, join(app, 'up'), join(app, 'a.ts'), join(app, 'new'), 'sub', '']) {
      const error = await sandbox.assertWithin(path).catch((thrown: unknown) => thrown);
      expect(isAppError(error) && error.kind).toBe('security');
      expect(isAppError(error) && error.details.next).toContain(app);
    }
  });

  it('leaves no descriptor open', async () => {
    const { root, app } = tree();
    symlinkSync('../secret.txt', join(app, 'out'));
    const sandbox = sandboxOf([app]);
    const work = async () => {
      for (const path of [join(app, 'a.ts'), join(app, 'out'), root, app, join(app, 'no')]) await read(sandbox, path);
      await sandbox.list(app, 1);
      await sandbox.list(root, 1);
    };
    await work();
    const before = readdirSync('/proc/self/fd').length;
    for (let round = 0; round < 20; round++) await work();
    expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before + 2);
  });
});

describe('sandbox', () => {
  it('refuses a relative root', () => {
    expect(() => createSandbox({ roots: ['app'], allowSecrets: false })).toThrow(/absolute/);
  });

  it('notices a root that was removed', async () => {
    const root = tempTree({ 'app/a.ts': '' });
    const sandbox = createSandbox({ roots: [join(root, 'app')], allowSecrets: false });
    rmSync(join(root, 'app'), { recursive: true });
    mkdirSync(join(root, 'app'));
    expect(await read(sandbox, join(root, 'app/a.ts'))).toBe('not_found');
  });
});
