import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DiskEvent } from './disk.ts';

const calls = [
  ...['openat', 'close', 'write', 'pwrite64', 'ftruncate', 'fsync', 'fdatasync'],
  ...['unlink', 'unlinkat', 'rename', 'renameat', 'renameat2'],
];

const writer = fileURLToPath(new URL('../writer.ts', import.meta.url));

export interface Recorded {
  seed: number;
  /** Bursts of writes. */
  steps: number;
  /** `hasty`: the store does not wait for the disk, for tests of the replay. */
  kind?: 'mixed' | 'hasty';
}

/** What a store of all kinds of writes did to its files, as strace saw it from outside, and what it said meanwhile. */
export function recordStore(directory: string, { seed, steps, kind = 'mixed' }: Recorded): DiskEvent[] {
  const [file, said, trace] = ['threads.sqlite', 'said', 'trace'].map(name => join(directory, name));
  if (!file || !said || !trace) return [];
  const watched = [directory, said, ...['', '-wal', '-journal', '.lock'].map(suffix => file + suffix)];
  const strace = ['-f', '-qq', '-xx', '-s', '1000000', '-e', 'signal=none', '-e', `trace=${calls}`, '-o', trace];
  const paths = watched.flatMap(path => ['-P', path]);
  const command = [process.execPath, writer, kind, file, `${seed}`, '0', '3', `${steps}`, said];
  const { status, error, stderr } = spawnSync('strace', [...strace, ...paths, ...command], { encoding: 'utf8' });
  if (status !== 0) {
    const why = error?.message ?? stderr.trim();
    throw new Error(`strace could not record the store (${why}): install it, and allow this user to trace processes.`);
  }
  return readTrace(readFileSync(trace, 'latin1'), { directory, said: basename(said) });
}

interface Watched {
  directory: string;
  /** The file of the directory into which the process writes what it says. */
  said: string;
}

/** What open descriptors lead to. */
type Target = { kind: 'file'; file: number } | { kind: 'said' } | { kind: 'directory' };

/**
 * Reads the output of `strace -f -xx -o`. A write counts from where it began and anything else from where it ended, where
 * another thread's calls came in between.
 */
export function readTrace(text: string, watched: Watched): DiskEvent[] {
  const reader = new TraceReader(watched);
  /** Thread → the beginning of its call. */
  const begun = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const unfinished = / ?<unfinished \.\.\.>$/.exec(rest);
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    if (unfinished) {
      const start = rest.slice(0, unfinished.index);
      // Its result is not known yet: a full disk or an error is not what is recorded here.
      if (isWrite(start)) reader.take(`${start.replace(/\)?$/, '')}) = 0`);
      else begun.set(thread, start);
    } else if (resumed) {
      const start = begun.get(thread);
      begun.delete(thread);
      if (start !== undefined) reader.take(start + resumed[1]);
    } else reader.take(rest);
  }
  return reader.events;
}

const isWrite = (call: string) => call.startsWith('write(') || call.startsWith('pwrite64(');

class TraceReader {
  readonly events: DiskEvent[] = [];
  readonly #directory: string;
  readonly #said: string;
  readonly #targets = new Map<number, Target>();
  readonly #names = new Map<string, number>();
  #files = 0;

  constructor({ directory, said }: Watched) {
    this.#directory = directory;
    this.#said = said;
  }

  /** One finished call. */
  take(call: string): void {
    const [, name, list = '', result] = /^(\w+)\((.*)\) += (-?\d+)/.exec(call) ?? [];
    if (name === undefined || Number(result) < 0) return;
    const args = list.split(', ');
    const target = this.#targets.get(Number(args[0]));
    const texts = args.flatMap(arg => bytesOf(arg) ?? []);
    const paths = texts.map(bytes => this.#inside(bytes.toString()));
    switch (name) {
      case 'openat':
        this.#open(texts[0]?.toString() ?? '', list, Number(result));
        break;
      case 'close':
        this.#targets.delete(Number(args[0]));
        break;
      case 'write':
      case 'pwrite64':
        this.#write(target, texts[0] ?? Buffer.alloc(0), Number(args[3]));
        break;
      case 'ftruncate':
        if (target?.kind === 'file') this.events.push({ kind: 'truncate', file: target.file, size: Number(args[1]) });
        break;
      case 'fsync':
      case 'fdatasync':
        if (target?.kind === 'file') this.events.push({ kind: 'sync', file: target.file });
        if (target?.kind === 'directory') this.events.push({ kind: 'syncNames' });
        break;
      default:
        this.#rename(name, paths);
    }
  }

  #open(path: string, flags: string, descriptor: number): void {
    const name = this.#inside(path);
    if (path === this.#directory) this.#targets.set(descriptor, { kind: 'directory' });
    else if (name === this.#said) this.#targets.set(descriptor, { kind: 'said' });
    else if (name !== undefined) {
      let file = this.#names.get(name);
      if (file === undefined) {
        if (!flags.includes('O_CREAT')) return;
        file = ++this.#files;
        this.#names.set(name, file);
        this.events.push({ kind: 'create', name, file });
      } else if (flags.includes('O_TRUNC')) this.events.push({ kind: 'truncate', file, size: 0 });
      this.#targets.set(descriptor, { kind: 'file', file });
    }
  }

  #write(target: Target | undefined, bytes: Buffer, offset: number): void {
    if (target?.kind === 'file') {
      // Nothing of the store writes where a descriptor stands.
      if (!Number.isInteger(offset)) throw new Error(`a write of ${bytes.length} bytes without a place`);
      this.events.push({ kind: 'write', file: target.file, offset, bytes });
    } else if (target?.kind === 'said') {
      for (const line of bytes.toString().trimEnd().split('\n')) this.events.push({ kind: 'said', line });
    }
  }

  #rename(call: string, [name, to]: (string | undefined)[]): void {
    const file = name === undefined ? undefined : this.#names.get(name);
    if (name === undefined || file === undefined) return;
    this.#names.delete(name);
    if (call.startsWith('unlink')) this.events.push({ kind: 'unlink', name });
    else if (to !== undefined) {
      this.#names.set(to, file);
      this.events.push({ kind: 'rename', name, to });
    }
  }

  /** The name of a file of the directory. */
  #inside(path: string): string | undefined {
    return dirname(path) === this.#directory ? basename(path) : undefined;
  }
}

/** A text of `strace -xx`; undefined for another argument. */
function bytesOf(argument: string): Buffer | undefined {
  if (!argument.startsWith('"')) return undefined;
  if (!argument.endsWith('"')) throw new Error('strace cut what was written');
  return Buffer.from(argument.slice(1, -1).replaceAll('\\x', ''), 'hex');
}
