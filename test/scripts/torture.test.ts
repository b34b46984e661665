import { describe, expect, it } from 'vitest';
import { readArguments } from '../../scripts/torture/arguments.ts';
import { kills } from '../../scripts/torture/kills.ts';
import { Ledger, textOf, threadOf } from '../../scripts/torture/ledger.ts';
import { Disk, type DiskEvent, type Loss } from '../../scripts/torture/power/disk.ts';
import { losePower } from '../../scripts/torture/power/power.ts';
import { readTrace } from '../../scripts/torture/power/record.ts';
import { changeOf, headOf, start, turnOf } from '../contracts/store-fixtures.ts';
import { seededRandom } from '../support/random.ts';
import { sqlitePlace } from '../support/sqlite-temp.ts';

describe('the command line of the torture', () => {
  it('runs all but the soak unless parts are named, each once', () => {
    expect(readArguments([])).toEqual({
      parts: ['kills', 'calls', 'power', 'damage', 'floods'],
      options: { seed: 1, minutes: 80 },
    });
    expect(readArguments(['power', 'kills', 'power', '--rounds', '7', '--seed', '3'])).toEqual({
      parts: ['power', 'kills'],
      options: { seed: 3, minutes: 80, rounds: 7 },
    });
  });

  it('says what is wrong and what is allowed', () => {
    expect(() => readArguments(['kill'])).toThrow(
      'Unknown part "kill". Parts: kills, calls, power, damage, floods, soak.',
    );
    expect(() => readArguments(['--rounds', '0'])).toThrow('Invalid --rounds "0". Give a whole number from 1.');
    expect(() => readArguments(['--seed', '1e3'])).toThrow('Invalid --seed "1e3"');
    expect(() => readArguments(['--often'])).toThrow("Unknown option '--often'");
  });

  it('shows what each part does', () => {
    expect(readArguments(['--help', 'power'])).toEqual({ help: expect.stringContaining('a power loss after every') });
  });
});

describe('the ledger of what was acknowledged', () => {
  it('finds what is lost, what is wrong and what came back', async () => {
    const place = await sqlitePlace();
    try {
      const store = place.open();
      const ids = [0, 1, 2, 3].map(number => threadOf(5, number));
      for (const id of ids) await store.create(headOf({ id }));
      const write = (id: (typeof ids)[number], content: string) =>
        store.commit(id, changeOf(0, { turns: [turnOf(1, { content })] }));
      await write(ids[0]!, textOf(ids[0]!, 1));
      await write(ids[1]!, textOf(ids[0]!, 1));
      await store.remove(ids[3]!, start);
      const ledger = new Ledger(5);
      for (const line of ['made 0 5', 'turn 0 3 1', 'ending 2 1', 'ended 2 1', 'ending 3 1', 'opening'])
        ledger.note(line);
      expect(ledger.writes).toBe(9);
      expect(await ledger.check(store)).toEqual({
        lost: [`${ids[2]}: its removal`, `${ids[2]}: 0 of 1 turns`, `${threadOf(5, 4)}: unknown`],
        wrong: [`${ids[1]}: turn 1`],
      });
    } finally {
      await place.dispose();
    }
  });
});

describe('processes that are killed while they write', () => {
  it('lose nothing that was acknowledged, nor damage their files', async () => {
    const { rows, failed } = await kills({ seed: 9, rounds: 6, minutes: 1 });
    expect(failed).toEqual([]);
    const figures = new Map(rows.map(([what, figure]) => [what, Number(figure)]));
    expect(figures.get('kills during migration')).toBe(3);
    expect(figures.get('kills during turns')).toBe(3);
    expect(figures.get('acknowledged writes')).toBeGreaterThan(0);
  });
});

describe('a disk whose power fails', () => {
  const write = (offset: number, text: string): DiskEvent => {
    return { kind: 'write', file: 1, offset, bytes: Buffer.from(text) };
  };
  const named: DiskEvent[] = [{ kind: 'create', name: 'a', file: 1 }, { kind: 'syncNames' }];

  function leftAfter(events: DiskEvent[], kind: Loss['kind'], seed = 1): Map<string, string> {
    const disk = new Disk();
    for (const event of events) disk.apply(event);
    const left = disk.afterPowerLoss({ kind, sector: 512 }, seededRandom(seed));
    return new Map([...left].map(([name, bytes]) => [name, bytes.toString('latin1')]));
  }

  const outcomes = (events: DiskEvent[], kind: Loss['kind']) =>
    new Set(Array.from({ length: 300 }, (_, seed) => [...leftAfter(events, kind, seed).values()].join('|')));

  it('keeps what was synced, and its name only where names were', () => {
    const events: DiskEvent[] = [...named, write(0, 'old'), { kind: 'sync', file: 1 }, write(0, 'new')];
    expect(leftAfter(events, 'dropped')).toEqual(new Map([['a', 'old']]));
    expect(leftAfter(events.slice(2), 'dropped')).toEqual(new Map());
    expect(leftAfter([...events, { kind: 'unlink', name: 'a' }], 'dropped')).toEqual(new Map([['a', 'old']]));
    expect(leftAfter([...events, { kind: 'unlink', name: 'a' }, { kind: 'syncNames' }], 'torn')).toEqual(new Map());
  });

  it('leaves each sector as it was at any time since the sync, and others behind or ahead of it', () => {
    const [first, second] = [(text: string) => write(511, text), (text: string) => write(512, text)];
    const events = [...named, first('a'), second('b'), { kind: 'sync', file: 1 }, first('c'), second('d'), second('e')];
    const seen = [...outcomes(events as DiskEvent[], 'reordered')].map(text => text.slice(511));
    expect(seen.toSorted()).toEqual(['ab', 'ad', 'ae', 'cb', 'cd', 'ce']);
  });

  it('cuts a write within a sector', () => {
    const events = [...named, write(0, '1234'), { kind: 'sync', file: 1 }, write(0, 'abcd')] as DiskEvent[];
    const seen = [...outcomes(events, 'torn')].toSorted();
    expect(seen).toEqual(['1234', 'a234', 'ab34', 'abc4', 'abcd']);
  });

  it('loses the truncation of a file, or keeps it', () => {
    const events = [...named, write(0, '1234'), { kind: 'sync', file: 1 }, { kind: 'truncate', file: 1, size: 1 }];
    expect([...outcomes(events as DiskEvent[], 'reordered')].toSorted()).toEqual(['1', '1234']);
  });
});

describe('a trace of system calls', () => {
  const hex = (text: string) =>
    `"${[...Buffer.from(text)].map(byte => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`;
  const read = (...lines: string[]) => readTrace(lines.join('\n'), { directory: '/d', said: 'said' });

  it('is read as what happened to files, directory and what was said', () => {
    const events = read(
      `7  openat(AT_FDCWD, ${hex('/d/db')}, O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3`,
      `7  openat(AT_FDCWD, ${hex('/d/said')}, O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4`,
      `7  pwrite64(3, ${hex('new, "x"')}, 8, 4096) = 8`,
      '7  ftruncate(3, 10) = 0',
      '7  fdatasync(3)                      = 0',
      `7  openat(AT_FDCWD, ${hex('/d')}, O_RDONLY|O_CLOEXEC) = 5`,
      '7  fsync(5) = 0',
      '7  close(3) = 0',
      '7  fsync(3) = -1 EBADF (Bad file descriptor)',
      `7  write(4, ${hex('made 0 1\n')}, 9) = 9`,
      `7  rename(${hex('/d/db')}, ${hex('/d/other')}) = 0`,
      `7  unlink(${hex('/d/other')}) = 0`,
      `7  openat(AT_FDCWD, ${hex('/d/db')}, O_RDWR|O_CREAT, 0600) = 3`,
    );
    expect(events).toEqual([
      { kind: 'create', name: 'db', file: 1 },
      { kind: 'write', file: 1, offset: 4096, bytes: Buffer.from('new, "x"') },
      { kind: 'truncate', file: 1, size: 10 },
      { kind: 'sync', file: 1 },
      { kind: 'syncNames' },
      { kind: 'said', line: 'made 0 1' },
      { kind: 'rename', name: 'db', to: 'other' },
      { kind: 'unlink', name: 'other' },
      { kind: 'create', name: 'db', file: 2 },
    ]);
  });

  it('counts a write from its beginning and a sync from its end, where two threads write at once', () => {
    const events = read(
      `7  openat(AT_FDCWD, ${hex('/d/db')}, O_RDWR|O_CREAT, 0600) = 3`,
      '7  fdatasync(3 <unfinished ...>',
      `8  pwrite64(3, ${hex('a')}, 1, 0 <unfinished ...>`,
      '7  <... fdatasync resumed>) = 0',
      '8  <... pwrite64 resumed>) = 1',
    );
    expect(events.map(({ kind }) => kind)).toEqual(['create', 'write', 'sync']);
  });
});

describe('a store whose power fails', () => {
  it('has all that it acknowledged, after any of its writes', async () => {
    const { acknowledged, checkpoints, cases, lost, wrong, damaged } = await losePower({
      seed: 2,
      steps: 10,
      every: 7,
    });
    expect({ lost, wrong, damaged }).toEqual({ lost: [], wrong: [], damaged: [] });
    expect(acknowledged).toBeGreaterThan(30);
    expect(checkpoints).toBeGreaterThan(0);
    expect(cases).toBeGreaterThan(100);
  });

  it('would be seen to lose what it acknowledged before it was on the disk', async () => {
    const { lost, wrong } = await losePower({ seed: 2, steps: 4, every: 9, kind: 'hasty' });
    expect(lost).not.toEqual([]);
    expect(wrong).toEqual([]);
  });
});
