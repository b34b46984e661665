import { isAscii } from 'node:buffer';
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import module, { createRequire, Module } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext, Script } from 'node:vm';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { configError, errorCode } from './core/errors.ts';

/** Milliseconds after the start at which a process keeps what V8 has compiled: all of a first call, and what comes later. */
const keptAfterMs = [3_000, 60_000];

/** After so many times what is not kept yet is rare, and looking for it costs more than it spares. */
const enoughTimes = 4;

/** A process that ends later than this has been a server, and looks once more; it writes what is larger by this part. */
const served = { ms: 3_000, growth: 0.02 };

/** One of V8's flags as it is here, and as it usually is. */
type Flag = readonly [here: string, usual: string];

/** `usual`: not what V8 tells of the flag, but what makes it take compiled code again that was made before the flag was set. */
const turbofanAfter = (usual: number): Flag => [
  'invocation-count-for-turbofan=400',
  `invocation-count-for-turbofan=${usual}`,
];

const keepsShapes: Flag = ['no-memory-reducer-favors-memory', 'memory-reducer-favors-memory'];

/**
 * The flags that differ from one version of Node to the next; in others they are left alone.
 *
 * When a server rests for eight seconds, V8 collects garbage in a way that gives memory back, and forgets the shapes of objects of which
 * none is alive, and with them the code that it optimized for them. Some versions can keep them, others can wait for longer.
 */
const ofVersion: Record<number, readonly Flag[]> = {
  22: [turbofanAfter(3_000)],
  24: [turbofanAfter(10_000), keepsShapes],
  25: [turbofanAfter(16_000), keepsShapes],
  26: [turbofanAfter(16_000), ['memory-reducer-delay-ms=600000', 'memory-reducer-delay-ms=8000']],
};

/**
 * How V8 works for a server, once that has done some work (docs/decisions/2026-11-29-tiers-and-generations.md). V8 takes no compiled code that
 * was made under other flags.
 */
const tuning = {
  /** Of each half of the young generation, which V8 lets grow to twice this, and makes small again when the server rests. */
  youngBytes: 8 * 1_048_576,
  /** The first collections are those of the start. */
  afterMs: 250,
  /** Looks so often whether the server has rested since the last time, and gives its memory back then all the same. */
  restMs: 600_000,
  /** By how much the old generation grows before it is collected. */
  flags: [['heap-growing-percent=50', 'heap-growing-percent=0']],
  /** After so many collections more it is no server that is seldom asked: some hundred chats make as many. */
  busyAfter: 20,
  /** How often a function runs before V8 optimizes it, and what it forgets at rest. A server that is seldom asked would pay more than it spares. */
  busyFlags: [
    ['invocation-count-for-maglev=50', 'invocation-count-for-maglev=400'],
    ['minimum-invocations-after-ic-update=50', 'minimum-invocations-after-ic-update=500'],
    ...(ofVersion[Number.parseInt(process.versions.node, 10)] ?? []),
  ],
} as const;

/** Compiled code in a file, `size` bytes from `at` on; `source` and `sum` are checksums of its text and of itself. */
interface Compiled {
  source: string;
  sum: string;
  at: number;
  size: number;
}

/** The compiled code that earlier processes kept, by the names of the files that it was made of. */
interface Kept {
  times: number;
  pieces: ReadonlyMap<string, Compiled>;
  /** Undefined: it is damaged. */
  codeOf(piece: Compiled): Buffer | undefined;
  close(): void;
}

/** As Node wraps a module. */
const wrapping = {
  before: Buffer.from('(function (exports, require, module, __filename, __dirname) {'),
  after: Buffer.from('\n})'),
};

type Codes = Map<string, { source: string; code: Buffer }>;

type Require = (id: string) => unknown;

type Evaluate = (exports: unknown, require: Require, module: Module, file: string, folder: string) => void;

/**
 * Loads a file of the built program and what it requires, each with the code that V8 made of it in earlier processes, and answers
 * its exports. Node's own cache has only what is compiled while a module is loaded, but a function is compiled when it is first called:
 * that took a quarter of the time of a first call (docs/decisions/2026-11-28-code-cache.md).
 *
 * @param main absolute path; what it requires is beside it, of Node, or installed.
 */
export function loadCompiled(main: string) {
  const folder = dirname(main);
  const ofNode = createRequire(main);
  const file = fileOf(main);
  const kept = openKept(file);
  const loaded = new Map<string, { source: string; script: Script }>();
  let isComplete = true;

  function load(path: string) {
    const known = ofNode.cache[path];
    if (known) return known.exports;
    const bytes = Buffer.concat([wrapping.before, readPiece(path), wrapping.after]);
    const source = sumOf(bytes);
    const name = basename(path);
    const piece = kept.pieces.get(name);
    const cachedData = piece?.source === source ? kept.codeOf(piece) : undefined;
    const options = { filename: path, ...(cachedData && { cachedData }) };
    // Pieces are written in ASCII, of which V8 keeps one byte a character.
    const text = bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8');
    const script = underUsualFlags(() => new Script(text, options));
    isComplete &&= script.cachedDataRejected === false;
    loaded.set(name, { source, script });
    const evaluate: Evaluate = script.runInThisContext();
    const made = new Module(path);
    made.filename = path;
    // Where Node looks, too: an extension that imports this package gets the same definitions.
    ofNode.cache[path] = made;
    try {
      evaluate(made.exports, id => (id.startsWith('./') ? load(join(folder, id)) : ofNode(id)), made, path, folder);
    } catch (error) {
      delete ofNode.cache[path];
      throw error;
    }
    made.loaded = true;
    return made.exports;
  }

  /** Writes what was compiled, where that is more by this part than what is kept. */
  function keep(growth = 0) {
    // Another process may have kept more meanwhile.
    const { times, pieces, codeOf, close } = openKept(file);
    const codes: Codes = new Map();
    let more = 0;
    for (const [name, { source, script }] of loaded) {
      const code = underUsualFlags(() => script.createCachedData());
      const old = pieces.get(name);
      const before = old?.source === source ? old.size : 0;
      // V8 forgets functions that were not called for long.
      if (code.length <= before) continue;
      more += code.length - before;
      codes.set(name, { source, code });
    }
    const size = [...pieces.values()].reduce((sum, piece) => sum + piece.size, 0);
    if (file !== undefined && more > size * growth) {
      // The program may be gone from there.
      const present = new Set(existsSync(folder) ? readdirSync(folder) : []);
      for (const [name, piece] of pieces) {
        const code = present.has(name) && !codes.has(name) ? codeOf(piece) : undefined;
        if (code) codes.set(name, { source: piece.source, code });
      }
      writeKept(file, times + 1, codes);
    }
    close();
  }

  for (const ms of keptAfterMs) setTimeout(() => (!isComplete || kept.times < enoughTimes) && keep(), ms).unref();
  process.on('exit', () => {
    if (!isComplete || process.uptime() * 1_000 > served.ms) keep(isComplete ? served.growth : 0);
  });
  return load(main);
}

/** A piece that is not there was of a version that was replaced while this process runs. */
function readPiece(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    const next = `Restart the server: reconnect it in the host. If it is a daemon, end its process ${process.pid} first.`;
    throw configError('Polylogue was updated or removed while it runs.', { class: 'replaced', next, cause: error });
  }
}

/**
 * By what the young generation grows next, to its size at once (0: it has not had that yet), and whether the server is busy (1). Threads
 * share the flags of V8, and so they share this: what one sets back for a moment, it sets again as the others have it.
 */
const tuned = new Uint32Array(sharedMemory('polylogue/tuned', 2 * Uint32Array.BYTES_PER_ELEMENT));

function sharedMemory(name: string, bytes: number): SharedArrayBuffer {
  const known = getEnvironmentData(name);
  if (known instanceof SharedArrayBuffer) return known;
  const memory = new SharedArrayBuffer(bytes);
  setEnvironmentData(name, memory);
  return memory;
}

/** As a server has them, or as V8 has them; those of a busy one are not touched before it was busy. */
function setFlags(isServer: boolean): void {
  const [growth = 0, isBusy = 0] = tuned;
  for (const [here, usual] of isBusy ? [...tuning.flags, ...tuning.busyFlags] : tuning.flags)
    setFlagsFromString(`--${isServer ? here : usual}`);
  setFlagsFromString(`--semi-space-growth-factor=${isServer ? growth : 2}`);
}

/** Holds the young generation at its size once it has grown to that, and sets the other flags then, or when the server has been busy. */
export function tuneMemory(restMs = tuning.restMs): void {
  let [collections, grown, given] = [0, 0, 0];
  const look = () => {
    collections++;
    const young = getHeapSpaceStatistics().find(space => space.space_name === 'new_space');
    if (!young) return;
    // Together they are one half, but for the heads of its pages.
    const growth = Math.max(1, Math.round(tuning.youngBytes / (young.space_used_size + young.space_available_size)));
    const [before = 0] = tuned;
    if (before === 0 && growth > 1) return;
    const isBusy = ++grown === tuning.busyAfter;
    if (growth === before && !isBusy) return;
    tuned[0] = growth;
    if (isBusy) tuned[1] = 1;
    setFlags(true);
  };
  const giveBack = () => {
    const isGrown = tuned[0] !== 0 && getHeapStatistics().total_heap_size > 1.2 * given;
    if (collections === 0 && isGrown) {
      setFlagsFromString('--expose-gc');
      runInNewContext('gc')({ type: 'major', flavor: 'last-resort' });
      setFlagsFromString('--no-expose-gc');
      given = getHeapStatistics().total_heap_size;
    }
    collections = 0;
  };
  setTimeout(() => new PerformanceObserver(look).observe({ type: 'gc' }), tuning.afterMs).unref();
  setInterval(giveBack, restMs).unref();
}

function underUsualFlags<Result>(run: () => Result): Result {
  if (tuned[0] === 0) return run();
  setFlags(false);
  try {
    return run();
  } finally {
    setFlags(true);
  }
}

/** Tells damage and other versions: who could forge it can write the program, too. */
const sumOf = (data: string | Buffer): string => crc32(data).toString(16).padStart(8, '0');

/** In the folder of Node's own cache, which is of this version of V8, processor and user; undefined where that is switched off. */
function fileOf(main: string): string | undefined {
  const { directory } = module.enableCompileCache();
  return directory === undefined ? undefined : join(directory, `polylogue-${sumOf(main)}`);
}

/** What stands before the head of the file: its checksum and its length in bytes. */
const prefix = { sum: 8, length: 8 };

/** Answers with nothing where the file is missing or damaged, or where another user could have written it: it is run. */
function openKept(file: string | undefined): Kept {
  const none: Kept = { times: 0, pieces: new Map(), codeOf: () => undefined, close: () => undefined };
  if (file === undefined) return none;
  try {
    const handle = openSync(file, 'r');
    const close = () => closeSync(handle);
    Object.assign(none, { close });
    const { uid, mode } = fstatSync(handle);
    if (process.getuid && (![0, process.getuid()].includes(uid) || (mode & 0o022) !== 0)) return none;
    const read = (at: number, size: number) => {
      const bytes = Buffer.allocUnsafeSlow(size);
      return bytes.subarray(0, readSync(handle, bytes, 0, size, at));
    };
    const start = prefix.sum + prefix.length;
    const lead = read(0, start).toString('latin1');
    const head = read(start, Number(lead.slice(prefix.sum)));
    if (sumOf(head) !== lead.slice(0, prefix.sum)) return none;
    const { times, pieces }: { times: number; pieces: [string, Compiled][] } = JSON.parse(head.toString());
    const codeOf = ({ sum, at, size }: Compiled) => {
      const code = read(start + head.length + at, size);
      return sumOf(code) === sum ? code : undefined;
    };
    return { times, pieces: new Map(pieces), codeOf, close };
  } catch {
    return none;
  }
}

function writeKept(file: string, times: number, codes: Codes): void {
  let at = 0;
  const pieces = [...codes].map(([name, { source, code }]) => {
    at += code.length;
    return [name, { source, sum: sumOf(code), at: at - code.length, size: code.length }];
  });
  const head = Buffer.from(JSON.stringify({ times, pieces }));
  const lead = Buffer.from(`${sumOf(head)}${String(head.length).padStart(prefix.length)}`);
  const draft = `${file}.${process.pid}`;
  try {
    const all = [lead, head, ...[...codes.values()].map(({ code }) => code)];
    writeFileSync(draft, Buffer.concat(all), { mode: 0o600, flag: 'wx' });
    renameSync(draft, file);
  } catch {
    // It would have spared the next process some time.
  }
}
