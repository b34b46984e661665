import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { BenchFolder } from './measure/bench-folder.ts';
import { databaseSize } from './measure/database-size.ts';
import { fileWrites } from './measure/file-writes.ts';
import { load } from './measure/load.ts';
import { type Figures, inRounds, type Round, ratio, typical } from './measure/rounds.ts';
import { type Launch, openSession, type Session } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { idleMs } from './start.ts';
import { buildYardsticks, type Yardsticks } from './yardsticks/build-yardsticks.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const roundCount = Number(process.env.BENCH_ROUNDS ?? 9);
/** In each of so many rounds, before the figures are taken: V8 optimizes what a call runs when it has run some hundred times. */
const warmUp = { rounds: 8, chats: 500, together: 8 };
const callsPerRound = 80;
const callsTogether = 160;
const together = 32;
const countedChats = 100;
/** More, since the log goes into the file once for about 200 of them. */
const tracedChats = 400;
const startRounds = Number(process.env.BENCH_ROUNDS ?? 11);
/** The memory is looked at after so many chats, too. */
const moreChats = Number(process.env.BENCH_CHATS ?? 10_000);

let asked = 0;

/** Each question is another one, so that no call repeats an earlier one. */
function chat(session: Session): Promise<unknown> {
  return session.call('chat', { prompt: `What is the shortest answer to question ${++asked}?`, model: 'gpt-5' });
}

interface Line {
  what: string;
  /** Of the floor, where it does the same. */
  floor?: string;
  /** Of the same libraries with nothing of ours. */
  libraries?: string;
  ours: number;
  digits?: number;
  /** To the floor, inside of the rounds. */
  ratio?: number;
  /** The line to cross: of the ratio where there is one, else of our figure. */
  most?: number;
  least?: number;
  /** Depends on no machine: the bench fails beyond the line. */
  checked?: boolean;
}

/** A chat beside the same work by hand, with the line to cross at each figure. */
export async function floor(folder: BenchFolder): Promise<Table> {
  const yardsticks = await buildYardsticks();
  const vendor = await openVendorThread(0);
  try {
    const lines = [
      ...(await costs(folder, vendor.url, yardsticks)),
      ...(await writes(folder, vendor.url, yardsticks)),
      ...(await memory(folder, vendor.url, yardsticks)),
      ...(await starts(folder, vendor.url, yardsticks)),
    ];
    return {
      title: `floor: a tiny chat beside the same work by hand (${roundCount} rounds after ${warmUp.rounds * warmUp.chats} chats each; ratios are taken inside of them)`,
      columns: ['what', 'floor', 'libraries', 'ours', 'ours to floor', 'line', 'crossed'],
      rows: lines.map(rowOf),
      failed: lines
        .filter(each => each.checked && verdictOf(each) === 'no')
        .map(
          ({ what, ours, digits }) => `${what}: ${figure(ours, digits ?? 2)}, behind a line that was crossed before`,
        ),
      notes: [
        "Libraries: the SDK of the protocol, the vendor's package and node:sqlite, as the product uses them, and nothing of ours.",
        'By hand: lines of JSON-RPC, one streamed fetch to a vendor that answers at once, two FULL commits in node:sqlite.',
        'Pages and commits: by the index of the write-ahead log. Writes: what strace counts into files of POLYLOGUE_HOME, checkpoints included.',
        'All write calls: as the system accounts for the process, with pipes, sockets and wake-ups of threads.',
      ],
    };
  } finally {
    await vendor.close();
  }
}

function rowOf(given: Line): string[] {
  const { what, floor: yardstick = '', libraries = '', ours, digits = 2, ratio: beside, most, least, checked } = given;
  const line = most !== undefined ? `≤ ${most}` : least !== undefined ? `≥ ${least}` : '';
  const verdict = `${verdictOf(given)}${checked ? ', checked' : ''}`;
  return [what, yardstick, libraries, figure(ours, digits), beside === undefined ? '' : times(beside), line, verdict];
}

/** Empty where there is no line, or nothing to judge. */
function verdictOf({ ours, ratio: beside, most, least }: Line): 'yes' | 'no' | '' {
  const judged = beside ?? ours;
  if ((most === undefined && least === undefined) || Number.isNaN(judged)) return '';
  const crossed = judged <= (most ?? Number.POSITIVE_INFINITY) && judged >= (least ?? Number.NEGATIVE_INFINITY);
  return crossed ? 'yes' : 'no';
}

function yardstickOf(folder: BenchFolder, vendorUrl: string, program: string, durable: boolean): Launch {
  const database: Record<string, string> = durable ? { DATABASE: join(folder.fresh('floor'), 'turns.sqlite') } : {};
  return { program, env: { ...folder.env, ...database, VENDOR_URL: vendorUrl } };
}

const stores = ['SQLite FULL', 'store in memory'] as const;

/** Processor time, latency and throughput. */
async function costs(folder: BenchFolder, vendorUrl: string, yardsticks: Yardsticks): Promise<Line[]> {
  const contenders: Record<string, () => Promise<Figures>> = {};
  const warmUps: Record<string, () => Promise<Figures>> = {};
  const opened: Session[] = [];
  for (const store of stores) {
    const durable = store === 'SQLite FULL';
    const launches: Record<string, Launch> = {
      floor: yardstickOf(folder, vendorUrl, yardsticks.floor, durable),
      libraries: yardstickOf(folder, vendorUrl, yardsticks.libraries, durable),
      ours: product(folder, vendorUrl, durable ? {} : { POLYLOGUE_STORE: 'memory' }),
    };
    for (const [name, launch] of Object.entries(launches)) {
      const { session } = await openSession(launch);
      opened.push(session);
      warmUps[`${name}, ${store}`] = () => warmedUp(session);
      contenders[`${name}, ${store}`] = () => cost(session);
    }
  }
  try {
    const [first = {}] = await inRounds(warmUp.rounds, warmUps, 0);
    const rounds = await inRounds(roundCount, contenders);
    const [durable, inMemory] = stores;
    return [
      compared([first], durable, 'cpu', { what: `chat, ${durable}: processor ms, the first ${warmUp.chats}` }),
      compared(rounds, durable, 'cpu', { what: `chat, ${durable}: processor ms a call`, most: 2.5 }),
      compared(rounds, durable, 'p50', { what: `chat, ${durable}: p50 ms, one at a time`, most: 2 }),
      compared(rounds, durable, 'rate', { what: `chat, ${durable}: calls/s, ${together} at a time`, least: 0.7 }),
      compared(rounds, durable, 'cpuTogether', { what: `chat, ${durable}: processor ms, ${together} at a time` }),
      compared(rounds, inMemory, 'cpu', { what: `chat, ${inMemory}: processor ms a call`, most: 2.5 }),
      compared(rounds, inMemory, 'p50', { what: `chat, ${inMemory}: p50 ms, one at a time`, most: 2 }),
      compared(rounds, inMemory, 'rate', { what: `chat, ${inMemory}: calls/s, ${together} at a time`, least: 0.7 }),
    ];
  } finally {
    await Promise.all(opened.map(session => session.close()));
  }
}

async function warmedUp(session: Session): Promise<Figures> {
  const before = session.cpuMs();
  await load(warmUp.chats, warmUp.together, () => chat(session));
  return { cpu: (session.cpuMs() - before) / warmUp.chats };
}

async function cost(session: Session): Promise<Figures> {
  const before = session.cpuMs();
  const { p50 = Number.NaN } = await load(callsPerRound, 1, () => chat(session));
  const [cpu, begun] = [session.cpuMs(), performance.now()];
  await load(callsTogether, together, () => chat(session));
  return {
    p50,
    cpu: (cpu - before) / callsPerRound,
    rate: callsTogether / ((performance.now() - begun) / 1_000),
    cpuTogether: (session.cpuMs() - cpu) / callsTogether,
  };
}

function compared(
  rounds: readonly Round[],
  store: string,
  name: string,
  line: Pick<Line, 'what' | 'most' | 'least' | 'digits'>,
): Line {
  const [yardstick, ours] = [`floor, ${store}`, `ours, ${store}`];
  const { digits = 2 } = line;
  return {
    ...line,
    floor: figure(typical(rounds, yardstick, name), digits),
    libraries: figure(typical(rounds, `libraries, ${store}`, name), digits),
    ours: typical(rounds, ours, name),
    ratio: ratio(rounds, name, ours, yardstick),
  };
}

/** What one chat writes: commits and pages of the database, and all that goes into files. */
async function writes(folder: BenchFolder, vendorUrl: string, yardsticks: Yardsticks): Promise<Line[]> {
  const ours = product(folder, vendorUrl);
  const home = ours.env.POLYLOGUE_HOME ?? '';
  const yardstick = yardstickOf(folder, vendorUrl, yardsticks.floor, true);
  const database = yardstick.env.DATABASE ?? '';
  const own = await written(ours, { home, database: join(home, 'threads.sqlite'), trace: folder.fresh('trace') });
  const floors = await written(yardstick, { home: join(database, '..'), database, trace: folder.fresh('trace') });
  const line = (what: string, name: keyof typeof own, more: Pick<Line, 'most' | 'digits' | 'checked'>): Line => ({
    what,
    floor: figure(floors[name], more.digits ?? 1),
    ours: own[name],
    digits: 1,
    ...more,
  });
  return [
    line('commits a chat', 'commits', { most: 2.05, digits: 2, checked: true }),
    line('pages a chat', 'pages', { most: 12, checked: true }),
    line('KB written into files a chat', 'kilobytes', { most: 48, checked: true }),
    line('writes into files a chat', 'writes', { most: 24 }),
    line('all write calls a chat', 'allWrites', {}),
    line('all KB written a chat', 'allKilobytes', {}),
  ];
}

interface Places {
  home: string;
  database: string;
  trace: string;
}

async function written(launch: Launch, { home, database, trace }: Places) {
  const { session } = await openSession(launch);
  try {
    for (let chats = 0; chats < 20; chats++) await chat(session);
    let [commits, pages] = [0, 0];
    const before = session.written();
    for (let chats = 0; chats < countedChats; chats++) {
      const start = databaseSize(database);
      await chat(session);
      const end = databaseSize(database);
      commits += end.commits - start.commits;
      // The log starts over now and then.
      pages += end.frames >= start.frames ? end.frames - start.frames : end.frames;
    }
    const after = session.written();
    const counted = await fileWrites(session.pid, home, join(trace, 'writes'), async () => {
      for (let chats = 0; chats < tracedChats; chats++) await chat(session);
    });
    return {
      commits: commits / countedChats,
      pages: pages / countedChats,
      kilobytes: (counted?.bytes ?? Number.NaN) / tracedChats / 1_024,
      writes: (counted?.calls ?? Number.NaN) / tracedChats,
      allWrites: (after.calls - before.calls) / countedChats,
      allKilobytes: (after.bytes - before.bytes) / countedChats / 1_024,
    };
  } finally {
    await session.close();
  }
}

/** What a process holds after many chats, eight of them at a time. */
async function memory(folder: BenchFolder, vendorUrl: string, yardsticks: Yardsticks): Promise<Line[]> {
  const held = async (launch: Launch) => {
    const { session } = await openSession(launch);
    const after = async (calls: number) => {
      await load(calls, 8, () => chat(session));
      return session.residentMb();
    };
    try {
      const first = await after(1_000);
      return { first, later: moreChats > 1_000 ? await after(moreChats - 1_000) : Number.NaN };
    } finally {
      await session.close();
    }
  };
  const yardstick = await held(yardstickOf(folder, vendorUrl, yardsticks.floor, true));
  const libraries = await held(yardstickOf(folder, vendorUrl, yardsticks.libraries, true));
  const { first, later } = await held(product(folder, vendorUrl));
  const firsts = { floor: figure(yardstick.first, 0), libraries: figure(libraries.first, 0) };
  const line: Line = { what: 'MB after 1,000 chats', ...firsts, ours: first, digits: 0, most: 150 };
  if (moreChats <= 1_000) return [line];
  const what = `MB after ${moreChats.toLocaleString('en')} chats, to 1,000`;
  const laters = { floor: figure(yardstick.later, 0), libraries: figure(libraries.later, 0) };
  return [line, { what, ...laters, ours: later, digits: 0, ratio: later / first, most: 1.1 }];
}

/** From spawn to the list of tools, and the first call after it: at once, or when the client has been idle for a moment. */
async function starts(folder: BenchFolder, vendorUrl: string, yardsticks: Yardsticks): Promise<Line[]> {
  const once = async (
    launch: Launch,
    restMs: number,
    first: (session: Session) => Promise<unknown>,
  ): Promise<Figures> => {
    const { session, elapsedMs } = await openSession(launch);
    await wait(restMs);
    const begun = performance.now();
    await first(session);
    const firstMs = performance.now() - begun;
    await session.close();
    return { ms: elapsedMs, first: firstMs };
  };
  const ours = product(folder, vendorUrl);
  const rounds = await inRounds(startRounds, {
    floor: () => once({ program: yardsticks.bundledSdk, env: folder.env }, 0, session => session.call('echo', {})),
    ours: () => once(ours, idleMs, chat),
    'ours, at once': () => once(ours, 0, chat),
  });
  const sdk = figure(typical(rounds, 'floor', 'ms'), 0);
  const firstOf = (contender: string) => ({ ours: typical(rounds, contender, 'first'), digits: 0 });
  const what = 'start → tools/list ms, to a bundled SDK server';
  const started = { ours: typical(rounds, 'ours', 'ms'), digits: 0, ratio: ratio(rounds, 'ms', 'ours', 'floor') };
  return [
    { what, floor: sdk, ...started, most: 1.3, checked: true },
    { what: `first chat, ${idleMs} ms after it, ms`, ...firstOf('ours'), most: 60 },
    { what: 'first chat at once after it, ms', ...firstOf('ours, at once') },
  ];
}
