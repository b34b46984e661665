import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ThreadId, threadId } from '../../../src/core/ids.ts';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import { changeOf, start, threadWith, turnOf } from '../../contracts/store-fixtures.ts';
import { realClock } from '../../support/clock.ts';
import { type SqliteProcess, startBelow } from '../../support/sqlite-process.ts';
import { liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';

/** What the process was told is durable, against what its file holds; the file takes turns again. */
async function nothingIsLost(file: string, { lines }: SqliteProcess): Promise<{ kept: number; refusals: string[] }> {
  const [name = '', ...said] = lines();
  const kept = said.filter(line => !line.startsWith('refused')).map(Number);
  const refusals = said.filter(line => line.startsWith('refused'));
  const warnings: string[] = [];
  const store = createSqliteStore({ file, clock: realClock(), onWarning: warning => warnings.push(warning) });
  const id = threadId(name);
  const { turns } = await liveThread(store, id);
  expect(kept).toEqual(kept.map((_, index) => index + 1));
  // Whether a turn of which the disk said that it failed is there after all, nobody was promised; but it is whole.
  expect(turns.length - kept.length).toBeGreaterThanOrEqual(0);
  expect(turns.length - kept.length).toBeLessThanOrEqual(1);
  for (const { seq, content } of turns) expect(content.startsWith(`turn ${seq} yyy`)).toBe(true);
  expect(await store.commit(id, changeOf(turns.length, { turns: [turnOf(turns.length + 1)] }))).toBe(turns.length + 1);
  await store.close();
  expect(warnings).toEqual([]);
  const db = new DatabaseSync(file);
  expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  db.close();
  return { kept: kept.length, refusals };
}

describe('a SQLite file on a disk that really fails', () => {
  let place: SqlitePlace;
  beforeEach(async () => {
    place = await sqlitePlace();
  });
  afterEach(() => place.dispose());

  it('loses nothing at the limit of what the system lets it write', async () => {
    // In units of 1,024 bytes; a write beyond it fails instead of ending the process.
    const limited = ['bash', '-c', 'trap "" XFSZ; ulimit -f 1500; exec "$@"', 'bash'];
    const child = startBelow(limited, 'fill', place.file, '3');
    expect(await child.ended).toMatchObject({ code: 0 });
    const { kept, refusals } = await nothingIsLost(place.file, child);
    expect(kept).toBeGreaterThan(5);
    expect(refusals).toEqual(['refused storage_full', 'refused storage_full', 'refused storage_full']);
  });

  it('loses nothing to the faults that this machine lets a test make', async () => {
    const done: string[] = [];
    for (const fault of faults) {
      const outcome = await fault.run(join(place.directory, fault.name.replaceAll(' ', '-'), 'threads.sqlite'));
      done.push(`${fault.name}: ${outcome ?? 'not possible here'}`);
    }
    process.stdout.write(`real faults of the disk\n${done.map(line => `  ${line}\n`).join('')}`);
    expect(done).toHaveLength(faults.length);
  });
});

interface RealFault {
  name: string;
  /** What happened; undefined where the machine forbids it. */
  run(file: string): Promise<string | undefined>;
}

const possible = (command: string, ...args: string[]) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** A disk of four megabytes that is full until something on it is deleted. */
const fullDisk: RealFault = {
  name: 'full disk',
  async run(file) {
    const folder = dirname(file);
    mkdirSync(folder);
    if (!possible('mount', '-t', 'tmpfs', '-o', 'size=4m', 'none', folder)) return undefined;
    try {
      writeFileSync(join(folder, 'ballast'), Buffer.alloc(2_000_000));
      const child = startBelow([], 'fill', file, '2');
      await child.said(line => line.startsWith('refused'));
      rmSync(join(folder, 'ballast'));
      expect(await child.ended).toMatchObject({ code: 0 });
      const said = child.lines();
      expect(said.lastIndexOf('refused storage_full')).toBeGreaterThan(said.indexOf('refused storage_full') + 5);
      // The check writes too, and needs some room.
      const { kept } = await moved(file, child);
      return `${kept} turns kept; it went on by itself when there was room`;
    } finally {
      spawnSync('umount', ['-l', folder]);
    }
  },
};

/** Out of the full disk, for the check. */
async function moved(file: string, child: SqliteProcess): ReturnType<typeof nothingIsLost> {
  const to = join(dirname(dirname(file)), 'moved.sqlite');
  for (const suffix of ['', '-wal']) {
    if (existsSync(file + suffix)) spawnSync('cp', [file + suffix, to + suffix]);
  }
  return nothingIsLost(to, child);
}

function injected(name: string, inject: string, refused: string): RealFault {
  return {
    name,
    async run(file) {
      if (!possible('strace', '-f', '-o', '/dev/null', 'true')) return undefined;
      mkdirSync(dirname(file));
      const child = startBelow(['strace', '-f', '-o', '/dev/null', '-e', inject], 'fill', file, '3');
      expect(await child.ended).toMatchObject({ code: 0 });
      const { kept, refusals } = await nothingIsLost(file, child);
      expect(new Set(refusals)).toEqual(new Set([`refused ${refused}`]));
      return `${kept} turns kept, ${refusals.length} refused`;
    },
  };
}

/** A file with one thread, and what it is made of. */
async function stored(file: string, isIndexed = true): Promise<{ id: ThreadId; bytes: Buffer }> {
  const store = createSqliteStore({ file, clock: realClock(), onWarning: fail });
  const { id } = await threadWith(store, ['a', 'b', 'c', 'd']);
  if (isIndexed) await store.list({ owner: 'local', limit: 1, now: start });
  await store.close();
  return { id, bytes: readFileSync(file) };
}

function fail(message: string): never {
  throw new Error(message);
}

/** Reads that fail while the file is opened: `when` says which of those that are as large as a page. */
function failedRead(name: string, when: string, isRefused: boolean): RealFault {
  return {
    name,
    async run(file) {
      if (!possible('strace', '-f', '-o', '/dev/null', 'true')) return undefined;
      const { id, bytes } = await stored(file);
      const inject = `inject=pread64:error=EIO:when=${when}`;
      const trace = ['strace', '-f', '-P', file, '-o', `${file}.trace`, '-e', 'trace=pread64', '-e', inject];
      const child = startBelow(trace, 'read', file, id);
      const { code, errors } = await child.ended;
      expect({ code, errors }).toEqual({ code: 0, errors: '' });
      expect(readFileSync(`${file}.trace`, 'utf8')).toContain('EIO');
      const [first = ''] = child.lines();
      if (isRefused) expect(first).toMatch(/^refused unavailable: The disk failed while reading .* check the disk/);
      else expect(child.lines()).toEqual(['4 true']);
      // A healthy file stays as it is.
      expect(readdirSync(dirname(file)).filter(each => each.includes('corrupt'))).toEqual([]);
      if (isRefused) expect(readFileSync(file)).toEqual(bytes);
      return first;
    },
  };
}

/** A disk without a byte left, on which there is a store. */
const fullAtStart: RealFault = {
  name: 'full disk at the start',
  async run(file) {
    const folder = dirname(file);
    mkdirSync(folder);
    if (!possible('mount', '-t', 'tmpfs', '-o', 'size=2m', 'none', folder)) return undefined;
    try {
      // On a full disk the index of threads stays behind; the list has them all the same.
      const { id } = await stored(file, false);
      spawnSync('dd', ['if=/dev/zero', `of=${join(folder, 'ballast')}`, 'bs=4096']);
      const full = startBelow([], 'read', file, id);
      const { code, errors } = await full.ended;
      expect({ code, lines: full.lines(), errors }).toEqual({
        code: 0,
        lines: ['4 true', expect.stringMatching(/^refused storage_full: No disk space left .* Free space/)],
        errors: expect.stringMatching(/^warning: No disk space left for .* Threads can be read/),
      });
      rmSync(join(folder, 'ballast'));
      const again = startBelow([], 'read', file, id);
      expect(await again.ended).toEqual({ code: 0, errors: '' });
      expect(again.lines()).toEqual(['4 true']);
      return full.lines().join('; ');
    } finally {
      spawnSync('umount', ['-l', folder]);
    }
  },
};

const faults: RealFault[] = [
  fullAtStart,
  failedRead('read that fails once', '6', false),
  failedRead('reads that fail', '6+', true),
  injected('write that fails', 'inject=pwrite64:error=EIO:when=300+', 'unavailable'),
  fullDisk,
  injected('fsync that fails', 'inject=fdatasync,fsync:error=EIO:when=30+', 'unavailable'),
  injected('write without room', 'inject=pwrite64:error=ENOSPC:when=300+', 'storage_full'),
];
