import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { figure, type Table } from '../../../bench/measure/table.ts';
import type { Random } from '../../../src/core/ports.ts';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import { realClock } from '../../../test/support/clock.ts';
import { forgetWriters, keepWriters } from '../../../test/support/kept-writers.ts';
import { seededRandom } from '../../../test/support/random.ts';
import { Ledger } from '../ledger.ts';
import { type PartOptions, progress } from '../part.ts';
import { Disk, type DiskEvent, type Loss, losses } from './disk.ts';
import { type Recorded, recordStore } from './record.ts';

/** Steps of the recorded writer: some 3,000 events, with checkpoints, removals, prunes and starts among them. */
const recordedSteps = 120;

export interface PowerResult {
  events: number;
  /** Times that the log was moved into the file while the store went on, or at its close. */
  checkpoints: number;
  acknowledged: number;
  prefixes: number;
  cases: number;
  lost: string[];
  wrong: string[];
  /** Files that could not be opened or had to be repaired. */
  damaged: string[];
}

export interface PowerOptions extends Recorded {
  /** Of all prefixes of the record, one in so many is replayed. */
  every: number;
}

/**
 * Records what a store writes, then lets the power fail after each event: the product opens what would be on the disk, and
 * must serve all that was acknowledged before.
 */
export async function losePower({ every, ...options }: PowerOptions, tell = (_: () => string) => {}) {
  // In memory where there is a place for it: the disk that fails is the recorded one.
  const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const directory = mkdtempSync(join(parent, 'polylogue-power-'));
  keepWriters(directory);
  try {
    const recorded = join(directory, 'recorded');
    mkdirSync(recorded);
    const events = recordStore(recorded, options);
    return await replay(events, { directory, seed: options.seed, every, tell });
  } finally {
    forgetWriters(directory);
    rmSync(directory, { recursive: true });
  }
}

interface Replay {
  directory: string;
  seed: number;
  every: number;
  tell(text: () => string): void;
}

async function replay(events: readonly DiskEvent[], { directory, seed, every, tell }: Replay): Promise<PowerResult> {
  const random = seededRandom(seed);
  const disk = new Disk();
  const ledger = new Ledger(seed);
  const sum = { events: events.length, checkpoints: checkpointsOf(events), acknowledged: 0 };
  const result: PowerResult = { ...sum, prefixes: 0, cases: 0, lost: [], wrong: [], damaged: [] };
  for (const [index, event] of events.entries()) {
    if (event.kind === 'said') ledger.note(event.line);
    else disk.apply(event);
    if ((index + seed) % every !== 0 && index < events.length - 1) continue;
    result.prefixes++;
    for (const kind of losses) {
      const loss: Loss = { kind, sector: random.fraction() < 0.5 ? 512 : 4096 };
      const where = `after event ${index} of ${events.length}, ${loss.kind}, sectors of ${loss.sector}`;
      const place = join(directory, `case-${result.cases++}`);
      mkdirSync(place);
      for (const [name, bytes] of disk.afterPowerLoss(loss, random)) writeFileSync(join(place, name), bytes);
      leaveSharedMemory(join(place, 'threads.sqlite-shm'), random);
      await open(join(place, 'threads.sqlite'), ledger, where, result);
      rmSync(place, { recursive: true });
    }
    tell(() => `${index} of ${events.length} events, ${result.lost.length} lost`);
  }
  return { ...result, acknowledged: ledger.writes };
}

/** The index of the log is never synced: whatever is left of it must not matter. */
function leaveSharedMemory(file: string, random: Random): void {
  if (random.fraction() < 0.3) writeFileSync(file, Buffer.alloc(32_768, random.uuid()));
}

/** Where the database was written and synced while there was a log. */
function checkpointsOf(events: readonly DiskEvent[]): number {
  const names = new Map<string, number>();
  let count = 0;
  for (const event of events) {
    if (event.kind === 'create') names.set(event.name, event.file);
    if (event.kind === 'unlink') names.delete(event.name);
    const isDatabase = event.kind === 'sync' && event.file === names.get('threads.sqlite');
    if (isDatabase && names.has('threads.sqlite-wal')) count++;
  }
  return count;
}

async function open(file: string, ledger: Ledger, where: string, result: PowerResult): Promise<void> {
  const onWarning = (message: string) => void result.damaged.push(`${where}: ${message}`);
  const store = createSqliteStore({ file, clock: realClock(), onWarning });
  const { lost, wrong } = await ledger.check(store);
  result.lost.push(...lost.map(what => `${where}: ${what}`));
  result.wrong.push(...wrong.map(what => `${where}: ${what}`));
  try {
    await store.list({ owner: 'local', limit: 1, now: 0 });
    const db = new DatabaseSync(file, { readOnly: true });
    const [verdict] = Object.values(db.prepare('PRAGMA quick_check(1)').get() ?? {});
    db.close();
    if (verdict !== 'ok') result.damaged.push(`${where}: quick_check: ${verdict}`);
  } catch (error) {
    result.damaged.push(`${where}: ${error instanceof Error ? error.message : error}`);
  }
  await store.close();
}

export async function power({ seed, rounds }: PartOptions): Promise<Table> {
  const began = performance.now();
  const options = { seed, steps: rounds ?? recordedSteps, every: 1 };
  const { events, checkpoints, acknowledged, prefixes, cases, lost, wrong, damaged } = await losePower(
    options,
    progress('power'),
  );
  return {
    title: `power: a store of ${options.steps} steps, seed ${seed}, ${figure((performance.now() - began) / 1_000, 0)} s`,
    columns: ['what', 'figure'],
    rows: [
      ['recorded events', String(events)],
      ['checkpoints among them', String(checkpoints)],
      ['acknowledged writes', String(acknowledged)],
      ['prefixes × variants', `${prefixes} × ${losses.length} = ${cases}`],
      ['acknowledged and lost', String(lost.length)],
      ['wrong turns served', String(wrong.length)],
      ['files damaged, warnings', String(damaged.length)],
    ],
    failed: [
      ...lost.map(what => `lost: ${what}`),
      ...wrong.map(what => `wrong: ${what}`),
      ...damaged.map(what => `damaged: ${what}`),
    ],
  };
}
