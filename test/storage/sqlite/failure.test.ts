import { execFile } from 'node:child_process';
import { readdirSync, symlinkSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { inputError } from '../../../src/core/errors.ts';
import { isDamage, isFailedRead, passesSoon, sqliteFailure } from '../../../src/storage/sqlite/failure.ts';
import { sqliteSchema } from '../../../src/storage/sqlite/schema.ts';
import { tempProject } from '../../support/temp-project.ts';

const by = (errcode: number) => Object.assign(new Error('said'), { errcode, code: 'ERR_SQLITE_ERROR' });
const system = (code: string, syscall?: string) => Object.assign(new Error('said'), { code, syscall });
const outcome = (error: unknown, file = '/nowhere/threads.sqlite') => {
  const { kind, details } = sqliteFailure(error, file);
  return `${kind} ${details.class}${details.retryable ? ', again' : ''}`;
};

/** What is made of a fault; `soon`: the same read is tried again, `damage`: the file is checked, `read`: the disk failed it. */
it.each<[string, Error, string, ('soon' | 'damage' | 'read')?]>([
  ['a lock', by(5), 'storage unavailable, again', 'soon'],
  ['a lock of a snapshot', by(517), 'storage unavailable, again', 'soon'],
  ['a table lock', by(6), 'storage unavailable, again', 'soon'],
  ['a lock protocol', by(15), 'storage unavailable, again', 'soon'],
  ['a log to be recovered', by(264), 'storage unavailable', 'soon'],
  ['a file that cannot be written', by(8), 'storage unavailable'],
  ['a file that cannot be opened', by(14), 'storage unavailable'],
  ['a damaged page', by(11), 'storage corrupt', 'damage'],
  ['no database', by(26), 'storage corrupt', 'damage'],
  ['a full disk', by(13), 'storage storage_full'],
  ['a quota', system('EDQUOT'), 'storage storage_full'],
  ['a failed read', by(266), 'storage unavailable', 'read'],
  ['a short read', by(522), 'storage unavailable', 'read'],
  ['a failed read of the system', system('EIO', 'read'), 'storage unavailable', 'read'],
  ['a failed sync', by(1034), 'storage unavailable'],
  ['another failure of the system', system('ENODEV'), 'storage unavailable'],
  ['too many open files', system('EMFILE'), 'storage unavailable, again'],
  ['another failure of SQLite', by(1), 'storage unavailable'],
  ['a mistake in the code', system('ERR_INVALID_STATE'), 'bug bug'],
  ['an error without a code', new Error('said'), 'bug bug'],
])('tells %s for what it is', (_, error, told, also) => {
  expect(outcome(error)).toBe(told);
  expect([passesSoon(error), isDamage(error), isFailedRead(error)]).toEqual(
    ['soon', 'damage', 'read'].map(each => each === also),
  );
});

it('keeps errors of its own as they are, and takes numbers out of range for damage', () => {
  const own = inputError('no');
  expect(sqliteFailure(own, 'x')).toBe(own);
  expect([own, system('ERR_OUT_OF_RANGE'), sqliteFailure(by(11), 'x')].map(isDamage)).toEqual([false, true, true]);
});

it('asks the disk itself whether a failed write was for want of room, and leaves nothing there', async () => {
  const project = await tempProject({ 'threads.sqlite': 'x' });
  const opened = readdirSync('/proc/self/fd').length;
  for (let round = 0; round < 20; round++)
    expect(outcome(by(778), project.path('threads.sqlite'))).toBe('storage unavailable');
  expect(readdirSync('/proc/self/fd').length).toBeLessThan(opened + 10);
  expect(readdirSync(project.root)).toEqual(['threads.sqlite']);
  await project.dispose();
});

it('finds by that a disk without room', async () => {
  const project = await tempProject({ 'threads.sqlite': 'x' });
  const file = project.path('threads.sqlite');
  symlinkSync('/dev/full', `${file}.probe-${process.pid}`);
  expect(outcome(by(778), file)).toBe('storage storage_full');
  expect(readdirSync(project.root)).toEqual(['threads.sqlite']);
  await project.dispose();
});

it.each([
  ['2.99.99', true],
  ['3.50.9', true],
  ['3.51.2', true],
  ['3.51.3', false],
  ['3.52.0', false],
  ['4.0.0', false],
])('refuses a SQLite that damages files: %s', (version, isRefused) => {
  const db = { prepare: () => ({ get: () => ({ version }) }) } as unknown as DatabaseSync;
  let told = '';
  try {
    sqliteSchema(db, 'threads.sqlite');
  } catch (error) {
    told = String(error);
  }
  expect(told.includes(`brings SQLite ${version}, which can damage files`)).toBe(isRefused);
});

it('says that too many files are open where SQLite only says that it cannot open its own', async () => {
  const module = new URL('../../../src/storage/sqlite/failure.ts', import.meta.url).pathname;
  const script = `
    const { sqliteFailure } = await import(${JSON.stringify(module)});
    const { openSync } = await import('node:fs');
    const fail = () => sqliteFailure(Object.assign(new Error('said'), { errcode: 14 }), '/tmp/threads.sqlite').details.next;
    const before = fail();
    try { for (;;) openSync('/dev/null', 'r'); } catch {}
    process.stdout.write(JSON.stringify([before, fail()]));
  `;
  const { stdout } = await promisify(execFile)('bash', [
    '-c',
    'ulimit -n 100; exec "$0" --input-type=module -e "$1"',
    process.execPath,
    script,
  ]);
  expect(JSON.parse(stdout)).toEqual([
    expect.stringContaining('Grant this user write access'),
    expect.stringMatching(/^Raise the limit of open files \(ulimit -n/),
  ]);
});
