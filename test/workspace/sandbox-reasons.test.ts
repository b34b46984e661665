import { linkSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { tempTree } from './temp-tree.ts';

const sandboxOf = (...roots: string[]) => createSandbox({ roots, allowSecrets: false });
const reasonOf = (outcome: object) => ('reason' in outcome ? outcome.reason : 'none');

it('says where files may be read', async () => {
  const [one, two] = [tempTree({ 'a.ts': '' }), tempTree({ 'b.ts': '' })];
  expect(reasonOf(await sandboxOf(one, two).locate('/etc/passwd'))).toMatch(
    new RegExp(`^Files are readable only inside ${one}, ${two}. The operator`),
  );
  expect(reasonOf(await sandboxOf().locate('/etc/passwd'))).toMatch(/^No directory is readable. The operator/);
});

it('says what is no regular file, and reads none of it', async () => {
  const root = tempTree({ 'sub/a.ts': '' });
  const server = createServer();
  await new Promise<void>(resolve => server.listen(join(root, 'socket'), resolve));
  onTestFinished(() => void server.close());
  expect(reasonOf(await sandboxOf(root).locate(join(root, 'socket')))).toBe(
    'It is a socket; only regular files are read.',
  );
  expect(reasonOf(await sandboxOf('/dev').locate('/dev/null'))).toBe('It is a device; only regular files are read.');
  const found = await sandboxOf(root).readIn(root, ['sub'], 10);
  expect(found instanceof Map && reasonOf(found.get('sub') ?? {})).toBe(
    'It is a directory; only regular files are read.',
  );
});

it('reads as much as is asked for, whatever size the system tells, and closes what it opened', async () => {
  const root = tempTree({ 'a.ts': '12345', 'b.ts': '123456', 'empty.ts': '' });
  const opened = () => readdirSync('/proc/self/fd').length;
  const before = opened();
  for (let time = 0; time < 20; time++) {
    const found = await sandboxOf(root).readIn(root, ['a.ts', 'b.ts', 'empty.ts'], 5);
    const shown =
      found instanceof Map ? [...found.values()].map(one => ('code' in one ? one.code : `${one.bytes}`)) : [];
    expect(shown).toEqual(['12345', 'too_large', '']);
  }
  expect(opened()).toBeLessThan(before + 5);
  // The kernel tells a size of 0.
  const sandbox = sandboxOf('/proc/self');
  const told = await sandbox.readIn(`/proc/${process.pid}`, ['status'], 1e6);
  const status = told instanceof Map ? told.get('status') : undefined;
  expect(status && 'bytes' in status && `${status.bytes}`).toMatch(/^Name:[\s\S]*nonvoluntary_ctxt_switches/);
  const short = await sandbox.readIn(`/proc/${process.pid}`, ['status'], 100);
  expect(short instanceof Map && short.get('status')).toMatchObject({ code: 'too_large' });
});

it('tells what is replaced all the time from what cannot be opened', async () => {
  const root = tempTree({ 'a.ts': '', 'links/x': '' });
  const links = join(root, 'links');
  const sandbox = createSandbox({ roots: [root], allowSecrets: false, descriptors: links });
  const reason = async () => reasonOf(await sandbox.open(join(root, 'a.ts')));
  const moving = expect.stringContaining('keeps changing');
  expect(await reason()).toEqual(moving);
  for (let fd = 0; fd < 500; fd++) writeFileSync(join(links, `${fd}`), '');
  expect(await reason()).toMatch(/EINVAL/);
  rmSync(links, { recursive: true });
  symlinkSync('links', links);
  expect(await reason()).toEqual(moving);
  rmSync(links);
  writeFileSync(links, '');
  expect(await reason()).toEqual(moving);
});

it('names all roots to a caller whose directory is in none', async () => {
  const [one, two] = [tempTree({ 'a.ts': '' }), tempTree({ 'b.ts': '' })];
  await expect(sandboxOf(one, two).assertWithin('/etc')).rejects.toMatchObject({
    details: { next: `Name a directory inside ${one}, ${two}.` },
  });
});

it('takes a path of 8,192 characters, and none that is longer', async () => {
  const codeOf = async (length: number) => {
    const found = await sandboxOf('/').locate(`/${'a/'.repeat(length)}`.slice(0, length));
    return 'code' in found && found.code;
  };
  expect(await codeOf(8_193)).toBe('bad_path');
  expect(await codeOf(8_192)).not.toBe('bad_path');
});

it('opens a file that is named as if it were deleted, and one with two names', async () => {
  const root = tempTree({ 'a (deleted)': 'it is here', 'b.ts': '' });
  linkSync(join(root, 'b.ts'), join(root, 'c (deleted)'));
  for (const name of ['a (deleted)', 'c (deleted)']) {
    const found = await sandboxOf(root).open(join(root, name));
    expect('path' in found && found.path).toBe(join(root, name));
    if ('handle' in found) await found.handle.close();
  }
});

it('knows its own folders by each of their names, also what is not there yet', () => {
  const root = tempTree({ 'data/a.ts': '', 'other/b.ts': '' });
  symlinkSync(join(root, 'data'), join(root, 'link'));
  symlinkSync(join(root, 'data'), join(root, 'alias'));
  mkdirSync(join(root, 'second'));
  writeFileSync(join(root, 'second', 'c.ts'), '');
  symlinkSync(join(root, 'other'), join(root, 'second', 'out'));
  const { isOwn } = createSandbox({
    roots: [root],
    allowSecrets: false,
    own: [join(root, 'link'), join(root, 'second')],
  });
  const own = ['data/a.ts', 'link/a.ts', 'data/new/deep.ts', 'second/c.ts', 'second', 'alias/a.ts', 'second/out/b.ts'];
  expect(own.filter(path => !isOwn(join(root, path)))).toEqual([]);
  expect(['other/b.ts', 'database', '.'].filter(path => isOwn(join(root, path)))).toEqual([]);
  expect(sandboxOf(root).isOwn(root)).toBe(false);
});
