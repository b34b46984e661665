import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { quantile } from '../../bench/measure/statistics.ts';
import { figure, type Table } from '../../bench/measure/table.ts';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import { start } from '../../test/contracts/store-fixtures.ts';
import { realClock } from '../../test/support/clock.ts';
import { seededRandom } from '../../test/support/random.ts';
import { Ledger, threadOf } from './ledger.ts';
import { writeOldFile } from './old-file.ts';
import { type PartOptions, progress } from './part.ts';

/** What the process is doing when it is killed, in the rounds of one file. */
const moments = [
  'migration',
  'turns',
  'checkpoints',
  'turns',
  'housekeeping',
  'start',
  'turns',
  'checkpoints',
  'turns',
  'housekeeping',
] as const;

type Moment = (typeof moments)[number];

/** So many files are tortured at once: most of a round is a process that starts, or a disk that is waited for. */
const lanes = 3;
const widths = [1, 16, 64, 200];
/** A writer of one thread waits for the disk with each write; so long after its first one it is killed. */
const patienceMs = 3_000;
/** Acknowledged writes of all rounds, for each kill: kills go on until there are as many. */
const writesPerKill = 1_000;

interface Sum {
  kills: Record<Moment, number>;
  writes: number;
  lost: string[];
  wrong: string[];
  /** What quick_check said other than ok, warnings of the product, and writers that ended before they were killed. */
  damaged: string[];
  readyMs: number[];
}

/** Kills at least so many processes with SIGKILL while they write to a SQLite store, and reads after each kill what was acknowledged before. */
export async function kills({ seed, rounds = 1_000 }: PartOptions): Promise<Table> {
  const began = performance.now();
  const directory = mkdtempSync(join(tmpdir(), 'polylogue-kills-'));
  const counts = { migration: 0, turns: 0, checkpoints: 0, housekeeping: 0, start: 0 };
  const sum: Sum = { kills: counts, writes: 0, lost: [], wrong: [], damaged: [], readyMs: [] };
  const told = progress('kills');
  // A few rounds may have less than their share.
  const wanted = rounds < 100 ? 0 : rounds * writesPerKill;
  let begun = 0;
  const isOver = () => begun >= rounds && sum.writes >= wanted;
  const lane = async (number: number) => {
    for (let file = 0; !isOver(); file++) {
      const place = join(directory, `${number}-${file}`);
      mkdirSync(place);
      const victim = openVictim(join(place, 'threads.sqlite'), seed + 1_000 * number + file);
      for (const moment of moments) {
        if (isOver()) break;
        begun++;
        // What earlier rounds wrote less than their share, the later ones catch up.
        await victim.round(moment, sum, writesPerKill + Math.max(0, begun * writesPerKill - sum.writes) / lanes);
        told(() => `${begun} of ${rounds}, ${sum.writes} writes, ${sum.lost.length} lost`);
      }
      await victim.checkAll(sum);
      rmSync(place, { recursive: true });
    }
  };
  await Promise.all(Array.from({ length: Math.min(lanes, rounds) }, (_, number) => lane(number)));
  rmSync(directory, { recursive: true });
  return tableOf(sum, { seed, seconds: (performance.now() - began) / 1_000 });
}

function openVictim(file: string, seed: number) {
  const ledger = writeOldFile(file, seed);
  const random = seededRandom(seed);
  let next = 1_000;

  /** Starts a writer and kills it at a random moment. */
  async function attack(moment: Moment, writes: number): Promise<{ lines: string[]; errors: string; early: boolean }> {
    const width = widths[Math.floor(random.fraction() * widths.length)] ?? 1;
    const kind = moment === 'migration' || moment === 'start' ? 'turns' : moment;
    const child = startWriter(kind, file, seed, next, width);
    // Threads that are made to be removed have numbers behind those that stay.
    next += 100_000;
    const noted = new Ledger(seed);
    const enough = random.fraction() * 2 * writes;
    const first = Promise.withResolvers<void>();
    const reached = child.until(line => {
      noted.note(line);
      if (noted.writes > 0) first.resolve();
      if (moment === 'migration') return line === 'opening';
      return moment !== 'start' && noted.writes >= enough;
    });
    if (moment === 'migration') await Promise.race([reached, child.ended]);
    else if (moment !== 'start') {
      await Promise.race([first.promise, child.ended]);
      const late = new AbortController();
      const patience = wait(random.fraction() * patienceMs, undefined, { signal: late.signal }).catch(() => undefined);
      await Promise.race([reached, child.ended, patience]);
      late.abort();
    }
    await wait(random.fraction() * (moment === 'start' ? 300 : 40));
    const early = child.process.exitCode !== null;
    child.process.kill('SIGKILL');
    return { ...(await child.ended), early };
  }

  async function check(sum: Sum, numbers?: Iterable<number>): Promise<void> {
    const onWarning = (message: string) => void sum.damaged.push(message);
    const began = performance.now();
    const store = createSqliteStore({ file, clock: realClock(), onWarning });
    await store.head(threadOf(seed, 0), start);
    if (numbers) sum.readyMs.push(performance.now() - began);
    const { lost, wrong } = await ledger.check(store, numbers);
    sum.lost.push(...lost);
    sum.wrong.push(...wrong);
    const db = new DatabaseSync(file, { readOnly: true });
    const [verdict] = Object.values(db.prepare('PRAGMA quick_check(1)').get() ?? {});
    if (verdict !== 'ok') sum.damaged.push(`quick_check: ${verdict}`);
    db.close();
    await store.close();
  }

  return {
    async round(moment: Moment, sum: Sum, writes: number): Promise<void> {
      const before = new Set(moment === 'migration' ? [] : ledger.numbers());
      const { lines, errors, early } = await attack(moment, writes);
      if (errors !== '' || early) sum.damaged.push(`the writer of ${moment} ended early or warned: ${errors}`);
      const earlier = ledger.writes;
      for (const line of lines) ledger.note(line);
      sum.writes += ledger.writes - earlier;
      sum.kills[moment]++;
      await check(
        sum,
        ledger.numbers().filter(number => !before.has(number)),
      );
    },
    /** Reads what all rounds wrote: nothing may be lost later either. */
    checkAll: (sum: Sum) => check(sum),
  };
}

/** The program is read as source once, not in each of a thousand processes. */
const env = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') };

const program = fileURLToPath(new URL('./writer.ts', import.meta.url));

function startWriter(kind: string, file: string, seed: number, first: number, width: number) {
  const args = [program, kind, file, ...[seed, first, width].map(String)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const lines: string[] = [];
  let rest = '';
  let errors = '';
  let onLine = (_line: string) => {};
  child.stdout.on('data', chunk => {
    const parts = `${rest}${chunk}`.split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) {
      lines.push(line);
      onLine(line);
    }
  });
  child.stderr.on('data', chunk => {
    errors += chunk;
  });
  return {
    process: child,
    /** Resolves with the first line that satisfies; every line is shown once. */
    until: (isIt: (line: string) => boolean) =>
      new Promise<void>(resolve => {
        onLine = line => {
          if (isIt(line)) resolve();
        };
      }),
    ended: once(child, 'close').then(() => ({ lines, errors })),
  };
}

function tableOf(sum: Sum, run: { seed: number; seconds: number }): Table {
  const { kills, writes, lost, wrong, damaged, readyMs } = sum;
  const total = Object.values(kills).reduce((all, count) => all + count, 0);
  return {
    title: `kills: ${total} processes killed while they write to SQLite, seed ${run.seed}, ${figure(run.seconds, 0)} s`,
    columns: ['what', 'figure'],
    rows: [
      ...Object.entries(kills).map(([moment, count]) => [`kills during ${moment}`, String(count)]),
      ['acknowledged writes', String(writes)],
      ['acknowledged and lost', String(lost.length)],
      ['wrong turns served', String(wrong.length)],
      ['files damaged, warnings', String(damaged.length)],
      ['ready after the kill, ms, p50', figure(quantile(readyMs, 0.5), 0)],
      ['ready after the kill, ms, p95', figure(quantile(readyMs, 0.95), 0)],
    ],
    failed: [
      ...lost.map(what => `lost: ${what}`),
      ...wrong.map(what => `wrong: ${what}`),
      ...damaged.map(what => `damaged: ${what}`),
    ],
  };
}
