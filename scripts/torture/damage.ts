import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { figure, type Table } from '../../bench/measure/table.ts';
import { isAppError } from '../../src/core/errors.ts';
import { exchangeId, type ThreadId, threadId } from '../../src/core/ids.ts';
import type { Random } from '../../src/core/ports.ts';
import type { Thread, Turn } from '../../src/core/thread.ts';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import type { Store } from '../../src/storage/store.ts';
import { changeOf, headOf, start, threadWith, turnOf } from '../../test/contracts/store-fixtures.ts';
import { manualClock, realClock } from '../../test/support/clock.ts';
import { seededRandom } from '../../test/support/random.ts';
import { type PartOptions, progress } from './part.ts';

/** What damage of one kind did to stores, summed over its cases. */
export interface DamageOutcome {
  cases: number;
  /** Turns whose bytes are still in the files, by a look at these bytes alone. */
  extractable: number;
  /** Those of them that the product serves, each exactly as it was stored. */
  served: number;
  /** Turns that are not served, of which a warning, an error or a note within the thread tells. */
  named: number;
  /** Turns that are not served and that no warning, error or note within the thread tells of. */
  silent: number;
  /** Turns that are served but never were stored so. */
  wrong: number;
  /** Cases in which our file was called another program's, or one of a newer version. */
  foreign: number;
  /** Cases in which the store failed otherwise than by refusing a damaged thread, or took no more turns. */
  crashed: number;
  /** Cases that did not end. */
  hung: number;
}

const columns = ['cases', 'extractable', 'served', 'named', 'silent', 'wrong', 'foreign', 'crashed', 'hung'] as const;

export type DamageTable = Record<string, DamageOutcome>;

export interface DamageOptions {
  seed: number;
  cases: number;
  /** Only these kinds; absent: all, in turn. */
  kinds?: readonly string[];
  /** Told of each case that is not as it should be: kind, number and why. */
  onFault?: (fault: string) => void;
  onCase?: (number: number) => void;
}

interface Files {
  main: Buffer;
  wal: Buffer;
  random: Random;
}

const page = 4096;
const sector = 512;
const frame = page + 24;
const walStart = 32;
/** No case takes longer, however slow the machine. */
const hangMs = 120_000;

const upTo = (random: Random, count: number) => Math.floor(random.fraction() * count);

function flip({ random }: Files, bytes: Buffer, count: number, from = 0, to = bytes.length): undefined {
  for (let left = count; left > 0; left--) {
    const at = from + upTo(random, to - from);
    bytes[at] = bytes[at]! ^ (1 << upTo(random, 8));
  }
}

const pageAt = ({ main, random }: Files) => upTo(random, Math.floor(main.length / page)) * page;

/** A page as another program's database has it. */
function foreignPage(): Buffer {
  const path = join(tmpdir(), `polylogue-other-${process.pid}.sqlite`);
  const db = new DatabaseSync(path);
  db.exec("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('a'), ('b')");
  db.close();
  const bytes = readFileSync(path).subarray(0, page);
  rmSync(path);
  return bytes;
}

interface Damage {
  /** With the log beside the file, as after a crash; absent: the file alone, as after an orderly end. */
  live?: true;
  /** What is cut off, with the rest of its transaction, cannot be told from what was never written. */
  cutsLog?: true;
  /** Changes the bytes where they are, or answers others; `sound`: the bytes of the log before the tear. */
  apply(
    files: Files,
  ): { main?: Buffer; wal?: Buffer /** Bytes of the log before the tear. */; sound?: number } | undefined;
}

const kinds: Record<string, Damage> = {
  'flip 1': { apply: files => flip(files, files.main, 1) },
  'flip 8': { apply: files => flip(files, files.main, 8) },
  'flip 64': { apply: files => flip(files, files.main, 64) },
  'flip 1 to 64': { apply: files => flip(files, files.main, 1 + upTo(files.random, 64)) },
  'zeroed page': {
    apply(files) {
      const at = pageAt(files);
      files.main.fill(0, at, at + page);
    },
  },
  'zeroed sectors': {
    apply(files) {
      for (let left = 1 + upTo(files.random, 8); left > 0; left--) {
        const at = upTo(files.random, files.main.length / sector) * sector;
        files.main.fill(0, at, at + sector);
      }
    },
  },
  'foreign bytes': {
    apply(files) {
      const at = upTo(files.random, files.main.length);
      for (let byte = at; byte < Math.min(files.main.length, at + 6_000); byte++)
        files.main[byte] = upTo(files.random, 256);
    },
  },
  'torn tail': {
    apply({ main, random }) {
      const kept = main.subarray(0, upTo(random, main.length / sector) * sector);
      return { main: Buffer.concat([kept, Buffer.alloc(upTo(random, page), 0xa5)]) };
    },
  },
  'swapped pages': {
    apply(files) {
      const [one, other] = [pageAt(files), pageAt(files)];
      const kept = Buffer.from(files.main.subarray(one, one + page));
      files.main.copyWithin(one, other, other + page);
      kept.copy(files.main, other);
    },
  },
  'foreign page': {
    apply: files => void foreignPage().copy(files.main, upTo(files.random, 3) === 0 ? 0 : pageAt(files)),
  },
  'truncated file': { apply: ({ main, random }) => ({ main: main.subarray(0, upTo(random, main.length)) }) },
  'header flips': { apply: files => flip(files, files.main, 1 + upTo(files.random, 3), 0, 100) },
  'schema flips': { apply: files => flip(files, files.main, 1 + upTo(files.random, 4), 100, page) },
  'live: zeroed log sectors': {
    live: true,
    cutsLog: true,
    apply(files) {
      const at = upTo(files.random, files.wal.length / sector) * sector;
      files.wal.fill(0, at, at + sector);
    },
  },
  'live: flip 8': { live: true, apply: files => flip(files, files.main, 8) },
  'live: log flip 1': { live: true, apply: files => flip(files, files.wal, 1) },
  'live: log flip 8': { live: true, apply: files => flip(files, files.wal, 8) },
  'live: log header': { live: true, apply: files => flip(files, files.wal, 1 + upTo(files.random, 3), 0, walStart) },
  'live: empty file': { live: true, apply: () => ({ main: Buffer.alloc(0) }) },
  'live: truncated file': {
    live: true,
    apply: ({ main, random }) => ({ main: main.subarray(0, upTo(random, main.length)) }),
  },
  'live: truncated log': {
    live: true,
    cutsLog: true,
    apply: ({ wal, random }) => ({ wal: wal.subarray(0, upTo(random, wal.length)) }),
  },
  'live: torn log': {
    live: true,
    cutsLog: true,
    apply({ wal, random }) {
      const at = upTo(random, wal.length);
      return { wal: Buffer.concat([wal.subarray(0, at), Buffer.alloc(upTo(random, frame), 0xa5)]), sound: at };
    },
  },
  'live: missing shm': { live: true, apply: () => undefined },
};

export const damageKinds: readonly string[] = Object.keys(kinds);

/** Stores as they are on the disk, and what is in them. */
interface World {
  closed: Buffer;
  main: Buffer;
  wal: Buffer;
  threads: Map<ThreadId, { turns: Turn[]; bodies: Buffer[] }>;
  gone: ThreadId[];
}

/** What a store writes of a turn: the text and its checksum. */
function bodyOf(thread: ThreadId, turn: Turn): Buffer {
  const body = JSON.stringify({ kind: 'turn', thread, turn });
  return Buffer.from(`${body}${createHash('sha256').update(body).digest('hex')}`);
}

/** The body with what stands before it in its row: the header, by which alone it is told from a stored text that looks like it. */
function rowOf(body: Buffer, files: readonly Buffer[]): Buffer {
  const [bytes, at] = files
    .map((each): [Buffer, number] => [each, each.indexOf(body.subarray(0, 200))])
    .find(([, found]) => found !== -1)!;
  // The type of the text, in three bytes at most, and that of the checksum.
  return Buffer.concat([bytes.subarray(bytes.lastIndexOf(Buffer.from([0x81, 0x0d]), at) - 3, at), body]);
}

/** Threads of many sizes, written in two sittings: the first one is in the file, the second one in the log. */
async function buildWorld(directory: string, random: Random): Promise<World> {
  const file = join(directory, 'world.sqlite');
  const threads: World['threads'] = new Map();
  const gone: ThreadId[] = [];
  const open = () =>
    createSqliteStore({
      file,
      clock: realClock(),
      onWarning: message => {
        throw new Error(message);
      },
    });
  const write = async (store: Store, name: string) => {
    const { id, updatedAt, expiresAt } = await threadWith(store, [], { id: threadId(random.uuid()) });
    const turns: Turn[] = [];
    for (let count = 1 + upTo(random, 5); count > 0; count--) {
      const exchange = exchangeId(random.uuid());
      const texts = ['asks', 'answers'].map(what => {
        const long = upTo(random, 12) === 0 ? 12_000 : 900;
        return `${name} ${what} ${turns.length} ${random.uuid()} `.repeat(1 + upTo(random, long / 50));
      });
      const added = texts.map((content, index) => turnOf(turns.length + 1 + index, { content, exchange }));
      const baseSeq = turns.length;
      await store.commit(id, {
        baseSeq,
        turns: added,
        exchange: { id: exchange, status: 'done' },
        updatedAt,
        expiresAt,
      });
      turns.push(...added);
    }
    threads.set(id, { turns, bodies: turns.map(turn => bodyOf(id, turn)) });
    return id;
  };
  const sitting = async (store: Store, name: string) => {
    for (let count = 0; count < 12; count++) await write(store, `${name}${count}`);
    const id = await write(store, `${name} gone`);
    await store.remove(id, start);
    threads.delete(id);
    gone.push(id);
    await store.list({ owner: 'local', limit: 9, now: start });
    await store.search({ owner: 'local', text: 'asks', limit: 3, now: start });
  };
  const first = open();
  await sitting(first, 'first');
  await first.close();
  const second = open();
  await sitting(second, 'second');
  const [main, wal] = [readFileSync(file), readFileSync(`${file}-wal`)];
  await second.close();
  const closed = readFileSync(file);
  for (const suffix of ['', '-wal', '-shm', '.lock']) rmSync(file + suffix, { force: true });
  for (const thread of threads.values()) thread.bodies = thread.bodies.map(body => rowOf(body, [main, wal]));
  return { closed, main, wal, threads, gone };
}

/** The damaged files, and where the states of a page begin in them. */
interface Sources {
  files: readonly Buffer[];
  pages(number: number): [bytes: Buffer, at: number][];
}

function sourcesOf(main: Buffer, wal: Buffer): Sources {
  const frames: number[] = [];
  for (let at = walStart; at + frame <= wal.length; at += frame) frames.push(at);
  // What follows the last complete transaction was never acknowledged, or is cut off.
  const complete = frames.findLastIndex(at => wal.readUInt32BE(at + 4) !== 0) + 1;
  const log = wal.subarray(0, walStart + complete * frame);
  return {
    files: [main, log],
    pages: number => [
      ...frames
        .slice(0, complete)
        .flatMap((at): [Buffer, number][] => (log.readUInt32BE(at) === number ? [[log, at + 24]] : [])),
      [main, (number - 1) * page],
    ],
  };
}

/** Whether all bytes of a text are there: in one piece, or with the numbers of the pages on which it continues. */
function isIntact(text: Buffer, { files, pages }: Sources): boolean {
  // Nobody knows whose it is when no beginning and no state of any thread is left.
  if (!files.some(bytes => ['origin', 'head'].some(kind => bytes.includes(`{"kind":"${kind}"`)))) return false;
  const key = text.subarray(0, 200);
  for (const bytes of files) {
    for (let at = bytes.indexOf(key); at !== -1; at = bytes.indexOf(key, at + 1)) {
      if (isContinued(text, 0, bytes, at, pages)) return true;
    }
  }
  return false;
}

function isContinued(text: Buffer, from: number, bytes: Buffer, at: number, pages: Sources['pages']): boolean {
  const most = from === 0 ? text.length : Math.min(page - 4, text.length - from);
  let count = 0;
  while (count < most && bytes[at + count] === text[from + count]) count++;
  if (from + count === text.length) return true;
  if (from > 0 && count < most) return false;
  const link = from > 0 ? at - 4 : at + count;
  if (link + 4 > bytes.length) return false;
  return pages(bytes.readUInt32BE(link)).some(([next, begin]) =>
    isContinued(text, from + count, next, begin + 4, pages),
  );
}

const nothing = (): DamageOutcome => ({
  cases: 0,
  extractable: 0,
  served: 0,
  named: 0,
  silent: 0,
  wrong: 0,
  foreign: 0,
  crashed: 0,
  hung: 0,
});

/**
 * Damages stores of the product in every way, each case by its own number, and opens them by the product. The same seed
 * damages the same places.
 */
export async function runDamage({
  seed,
  cases,
  kinds: only = damageKinds,
  onFault,
  onCase,
}: DamageOptions): Promise<DamageTable> {
  const directory = await mkdtemp(join(tmpdir(), 'polylogue-damage-'));
  const table: DamageTable = {};
  try {
    let world: World | undefined;
    for (let number = 0; number < cases; number++) {
      onCase?.(number);
      const random = seededRandom(seed * 100_003 + number);
      if (number % 100 === 0) world = await buildWorld(directory, random);
      const kind = only[number % only.length]!;
      const outcome = table[kind] ?? nothing();
      table[kind] = outcome;
      await runCase(world!, kind, random, join(directory, `case-${number}`), outcome, why =>
        onFault?.(`${kind} #${number}: ${why}`),
      );
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  return table;
}

async function runCase(
  world: World,
  kind: string,
  random: Random,
  stem: string,
  outcome: DamageOutcome,
  fault: (why: string) => void,
): Promise<void> {
  const { live, cutsLog, apply } = kinds[kind]!;
  const given: Files = {
    main: Buffer.from(live ? world.main : world.closed),
    wal: Buffer.from(live ? world.wal : ''),
    random,
  };
  const { main = given.main, wal = given.wal, sound = wal.length } = apply(given) ?? {};
  const file = `${stem}.sqlite`;
  writeFileSync(file, main);
  if (live) writeFileSync(`${file}-wal`, wal);
  outcome.cases++;
  const work = judge(world, file, sourcesOf(main, wal.subarray(0, sound)), outcome, fault, cutsLog === true);
  const timer = new AbortController();
  const late = realClock()
    .sleep(hangMs, timer.signal)
    .then(
      () => 'late' as const,
      () => undefined,
    );
  const ended = await Promise.race([work.catch((error: unknown) => ({ error })), late]);
  timer.abort();
  if (ended === 'late') {
    outcome.hung++;
    fault('did not end');
  } else if (ended) {
    const { error } = ended;
    const isForeign = isAppError(error) && error.kind === 'config';
    if (isForeign) outcome.foreign++;
    else outcome.crashed++;
    fault(isForeign ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  for (const name of readdirSync(join(stem, '..'))) {
    if (name.startsWith(`${stem.slice(stem.lastIndexOf('/') + 1)}.`)) rmSync(join(stem, '..', name), { force: true });
  }
}

async function judge(
  { threads, gone }: World,
  file: string,
  sources: Sources,
  outcome: DamageOutcome,
  fault: (why: string) => void,
  cutsLog: boolean,
): Promise<void> {
  const warnings: string[] = [];
  const clock = { ...realClock(), now: manualClock(start).now };
  const store = createSqliteStore({ file, clock, onWarning: message => warnings.push(message) });
  try {
    const found = new Map<ThreadId, Thread | 'refused' | undefined>();
    for (const id of threads.keys()) found.set(id, await threadOf(store, id));
    for (const [id, { turns, bodies }] of threads) {
      const thread = found.get(id);
      const isThread = typeof thread === 'object';
      const there = new Map((isThread ? thread.turns : []).map(turn => [turn.seq, turn]));
      const notes = isThread && thread.turns.some(({ toolName }) => toolName === 'damaged');
      for (const [index, turn] of turns.entries()) {
        const served = there.get(turn.seq);
        there.delete(turn.seq);
        const isServed = served !== undefined && isSame(served, turn);
        const intact = isServed || isIntact(bodies[index]!, sources);
        if (intact) outcome.extractable++;
        if (isServed) outcome.served++;
        else if (served && served.toolName !== 'damaged') {
          outcome.wrong++;
          fault(`turn ${turn.seq} of ${id} is another one`);
        } else if (notes || thread === 'refused' || warnings.length > 0) outcome.named++;
        else if (!cutsLog) {
          outcome.silent++;
          fault(`turn ${turn.seq} of ${id} is lost without a word`);
        }
        if (!isServed && intact) fault(`turn ${turn.seq} of ${id} was intact: ${warnings.join(' ')}`);
      }
      for (const { seq, toolName } of there.values()) {
        if (toolName === 'damaged') continue;
        outcome.wrong++;
        fault(`turn ${seq} of ${id} never was`);
      }
    }
    // A deletion that the log told of may be cut off with it.
    for (const id of cutsLog ? [] : gone) {
      if (typeof (await threadOf(store, id)) !== 'object') continue;
      outcome.wrong++;
      fault(`${id} was deleted and is served`);
    }
    await goesOn(
      store,
      [...found.values()].filter(thread => typeof thread === 'object'),
    );
  } finally {
    await store.close();
  }
}

async function threadOf(store: Store, id: ThreadId): Promise<Thread | 'refused' | undefined> {
  try {
    const found = await store.read(id, start);
    return found.state === 'live' ? found.value : undefined;
  } catch (error) {
    if (isAppError(error) && error.details.class === 'corrupt') return 'refused';
    throw error;
  }
}

/** How an exchange ended may be guessed; all else is as it was. */
function isSame({ status: _, ...served }: Thread['turns'][number], turn: Turn): boolean {
  return JSON.stringify(served) === JSON.stringify(turn);
}

/** Every thread that is there takes another turn, and so does a new one; lists and searches answer. */
async function goesOn(store: Store, threads: readonly Thread[]): Promise<void> {
  for (const { id, seq } of threads.slice(0, 5)) {
    const turns = [turnOf(seq + 1, { content: 'It goes on.' })];
    await store.commit(id, changeOf(seq, { turns }));
    const again = await threadOf(store, id);
    if (typeof again !== 'object' || again.turns.at(-1)?.content !== 'It goes on.')
      throw new Error(`${id} takes no turn`);
  }
  const head = headOf();
  await store.create(head);
  const listed = await store.list({ owner: 'local', limit: 99, now: start });
  if (!listed.some(({ id }) => id === head.id)) throw new Error('a new thread is not listed');
  for (const { id } of threads) if (!listed.some(each => each.id === id)) throw new Error(`${id} is not listed`);
  await store.search({ owner: 'local', text: 'asks', limit: 3, now: start });
}

/** Damages files of a store at random, and counts what of the intact turns is served. */
export async function damage({ seed, rounds = 600 }: PartOptions): Promise<Table> {
  const began = performance.now();
  const told = progress('damage');
  const failed: string[] = [];
  const onFault = (fault: string) => void failed.push(fault);
  const table = await runDamage({
    seed,
    cases: rounds,
    onFault,
    onCase: number => told(() => `${number} of ${rounds}`),
  });
  const sum = nothing();
  for (const row of Object.values(table)) for (const column of columns) sum[column] += row[column];
  const seconds = figure((performance.now() - began) / 1_000, 0);
  return {
    title: `damage: ${sum.cases} damaged files of a store, seed ${seed}, ${seconds} s`,
    columns: ['damage', ...columns],
    rows: Object.entries({ ...table, all: sum }).map(([kind, row]) => [
      kind,
      ...columns.map(each => String(row[each])),
    ]),
    notes: [
      'extractable: turns whose bytes are still in the files; served: those of them that the store serves, all of them as they were;',
      'named: lost turns that a note in the thread, an error or a warning tells of; silent: those that nothing tells of.',
    ],
    failed,
  };
}
