import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const loader = resolve('dist/code-cache.cjs');
const sumOf = (data: string | Buffer) => crc32(data).toString(16).padStart(8, '0');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylogue-code-cache-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (name: string) => join(folder, name);
const put = (name: string, text: string) => writeFileSync(at(name), text);

/** What a process prints that loads the main piece and runs this with its exports as `piece`. */
function run(code = 'console.log(piece.answer())', env: Record<string, string> = {}): string {
  const program = `const piece = require(${JSON.stringify(loader)}).loadCompiled(${JSON.stringify(at('main.cjs'))}); ${code}`;
  const all = { PATH: process.env.PATH, NODE_COMPILE_CACHE: at('cache'), ...env };
  return execFileSync(process.execPath, ['-e', program], { env: all, encoding: 'utf8' }).trim();
}

/** As above, without waiting for it. */
async function printed(code: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', code]);
  return stdout;
}

/** The file of compiled code; undefined before there is one. */
function keptFile(): string | undefined {
  if (!existsSync(at('cache'))) return undefined;
  const files = readdirSync(at('cache'), { recursive: true, encoding: 'utf8' }).filter(name =>
    /polylogue-\w+$/.test(name),
  );
  expect(files.length).toBeLessThan(2);
  return files[0] === undefined ? undefined : join(at('cache'), files[0]);
}

/** Compiles one text and has it taken for another of the same length: only then does the answer tell which of the two is run. */
function plant(): string {
  put('main.cjs', "exports.answer = () => 'kept';");
  expect(run()).toBe('kept');
  put('main.cjs', "exports.answer = () => 'read';");
  const file = keptFile() ?? '';
  const bytes = readFileSync(file);
  const end = 16 + Number(bytes.toString('latin1', 8, 16));
  const wrapped = `(function (exports, require, module, __filename, __dirname) {${readFileSync(at('main.cjs'))}\n})`;
  const head = bytes.toString('utf8', 16, end).replace(/"source":"\w+"/, `"source":"${sumOf(wrapped)}"`);
  writeFileSync(
    file,
    Buffer.concat([Buffer.from(sumOf(head)), bytes.subarray(8, 16), Buffer.from(head), bytes.subarray(end)]),
  );
  return file;
}

describe('compiled code', () => {
  it('is kept for the next process, functions that were called included, where nobody else can write', () => {
    const file = plant();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(run()).toBe('kept');
  });

  it.each([
    ['others may write it', (file: string) => chmodSync(file, 0o666)],
    ['its code is damaged', (file: string) => flip(file, -200)],
    ['its list is damaged', (file: string) => flip(file, 60)],
    ['it is cut', (file: string) => writeFileSync(file, readFileSync(file).subarray(0, -100))],
    ['it is empty', (file: string) => writeFileSync(file, '')],
  ])('is made anew where %s', (_, spoil) => {
    spoil(plant());
    expect(run()).toBe('read');
  });

  it('is not that of another text of the same length', () => {
    put('main.cjs', "exports.answer = () => 'one';");
    expect(run()).toBe('one');
    put('main.cjs', "exports.answer = () => 'two';");
    expect(run()).toBe('two');
    expect(run()).toBe('two');
  });

  it('is not written where the cache is switched off, and the program runs all the same', () => {
    put('main.cjs', "exports.answer = () => 'one';");
    expect(run(undefined, { NODE_DISABLE_COMPILE_CACHE: '1' })).toBe('one');
    expect(keptFile()).toBeUndefined();
  });

  it('of pieces that are gone leaves the file', () => {
    put('main.cjs', "exports.answer = () => require('./old.cjs').answer();");
    put('old.cjs', "exports.answer = () => 'old';");
    expect(run()).toBe('old');
    rmSync(at('old.cjs'));
    put('main.cjs', "exports.answer = () => 'new';");
    expect(run()).toBe('new');
    expect(readFileSync(keptFile() ?? '', 'latin1')).not.toContain('old.cjs');
  });

  it('is added to by a process that loads more', () => {
    put('main.cjs', "exports.answer = () => 'one'; exports.more = () => require('./more.cjs').answer();");
    put('more.cjs', "exports.answer = () => 'two';");
    expect(run()).toBe('one');
    const before = statSync(keptFile() ?? '').size;
    expect(run('console.log(piece.more())')).toBe('two');
    expect(statSync(keptFile() ?? '').size).toBeGreaterThan(before);
  });
});

describe('pieces', () => {
  it('may require each other in a circle', () => {
    put('main.cjs', "exports.name = 'main'; exports.answer = () => require('./other.cjs').answer();");
    put('other.cjs', "const main = require('./main.cjs'); exports.answer = () => 'seen by ' + main.name;");
    expect(run()).toBe('seen by main');
  });

  it('are the same that Node finds', () => {
    put('main.cjs', "exports.answer = () => 'one';");
    expect(run(`console.log(require(${JSON.stringify(at('main.cjs'))}) === piece)`)).toBe('true');
  });

  it('that an update took away are said to be that, and a process whose folder is gone ends well', () => {
    mkdirSync(at('program'));
    put('program/main.cjs', "exports.answer = () => require('./later.cjs');");
    const gone = `require('node:fs').rmSync(${JSON.stringify(at('program'))}, { recursive: true });`;
    const told =
      'try { piece.answer(); } catch ({ message, kind, details }) { console.log(message, kind, details.next); }';
    const loaded = `const piece = require(${JSON.stringify(loader)}).loadCompiled(${JSON.stringify(at('program/main.cjs'))});`;
    const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: at('cache') };
    const printed = execFileSync(process.execPath, ['-e', loaded + gone + told], { env, encoding: 'utf8' });
    expect(printed).toMatch(/updated or removed while it runs\. config Restart the server: .* process \d+ first/);
  });

  it('that fail while they are loaded fail each time', () => {
    put(
      'main.cjs',
      "exports.answer = () => { try { require('./bad.cjs'); } catch (error) { return error.message; } };",
    );
    put('bad.cjs', "throw new Error('broken');");
    expect(run('console.log(piece.answer(), piece.answer())')).toBe('broken broken');
  });
});

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  const place = at < 0 ? bytes.length + at : at;
  bytes[place] = (bytes[place] ?? 0) ^ 0xff;
  writeFileSync(file, bytes);
}

describe('the generations of the heap', () => {
  /** How large they are in 2,500 turns of work, of which some thirty megabytes are alive at a time: the young mostly, and the old at most. */
  const work = `
    const { getHeapSpaceStatistics } = require('node:v8');
    const sizeOf = name => getHeapSpaceStatistics().find(each => each.space_name === name).space_size / 1_048_576;
    const alive = [];
    const young = [];
    let most = 0;
    const turn = () => {
      alive.push(Array.from({ length: 4_000 }, (_, at) => ({ at })));
      if (alive.length > 300) alive.shift();
      most = Math.max(most, sizeOf('old_space'));
      if (young.push(sizeOf('new_space')) < 2_500) return setImmediate(turn);
      console.log(JSON.stringify([young.toSorted((a, b) => a - b)[1_250], most]));
    };
    turn();`;

  /** Fills the young generation many times, as a server that has answered some hundred calls, and goes on with `then`. */
  const busy = (then: string) => `
    let left = 60;
    const step = () => {
      for (let all = []; all.length < 300_000; ) all.push({ at: all.length });
      if (--left > 0) return setTimeout(step, 1);
      ${then}
    };
    step();`;

  it('grow no further than to the size that they need', () => {
    put('main.cjs', '');
    const tuned = `require(${JSON.stringify(loader)}).tuneMemory(); setTimeout(() => { ${work} }, 300);`;
    const [young, old] = JSON.parse(run(tuned));
    const [usualYoung, usualOld] = JSON.parse(run(work));
    expect(young).toBe(16);
    expect(usualYoung).toBeGreaterThan(16);
    expect(usualOld).toBeGreaterThan(1.2 * old);
  });

  it('have their size again after V8 made them small', () => {
    // How often the heap is collected in 500 turns, of each of which a little lives for a while, before a rest and after it.
    const turns = `
      require('node:v8').setFlagsFromString('--expose-gc');
      const collect = require('node:vm').runInNewContext('gc');
      const counts = [0];
      new PerformanceObserver(list => { counts[counts.length - 1] += list.getEntries().length; }).observe({ type: 'gc' });
      const alive = [];
      let turn = 0;
      const run = () => {
        alive.push(Array.from({ length: 20_000 }, (_, at) => ({ at })).slice(0, turn < 500 ? 4_000 : 200));
        if (alive.length > 50) alive.shift();
        // As V8 does when nothing happens for long.
        if (turn === 1_000) collect({ type: 'major', flavor: 'last-resort' });
        if (++turn % 500 === 0) counts.push(0);
        if (turn < 1_500) setTimeout(run, 0);
        else console.log(JSON.stringify(counts.slice(1, 3)));
      };
      run();`;
    put('main.cjs', '');
    const tuned = `require(${JSON.stringify(loader)}).tuneMemory(); setTimeout(() => { ${turns} }, 300);`;
    const [before, after] = JSON.parse(run(tuned));
    expect(after).toBeLessThan(2 * before);
  });

  it('leave V8 taking the compiled code that was made before they grew', () => {
    plant();
    const grown = `
      const cache = require(${JSON.stringify(loader)});
      cache.tuneMemory();
      setTimeout(() => { ${busy(`console.log(cache.loadCompiled(${JSON.stringify(at('main.cjs'))}).answer());`)} }, 300);`;
    const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: at('cache') };
    expect(execFileSync(process.execPath, ['-e', grown], { env, encoding: 'utf8' }).trim()).toBe('kept');
  });

  it('are given back by a server that rests for long', () => {
    put('main.cjs', '');
    const tuned = `
      require(${JSON.stringify(loader)}).tuneMemory(1_000);
      const sizeOf = () => require('node:v8').getHeapStatistics().total_heap_size / 1_048_576;
      setTimeout(() => {
        let grown = [];
        while (grown.length < 1_500_000) grown.push({ at: grown.length });
        grown = [];
        const before = sizeOf();
        setTimeout(() => console.log(JSON.stringify([before, sizeOf()])), 4_000);
      }, 300);`;
    const [before, after] = JSON.parse(run(tuned));
    expect(before).toBeGreaterThan(60);
    expect(after).toBeLessThan(20);
  });

  it('are not collected at rest in the way that forgets the shapes of objects, once the server has been busy', async () => {
    // V8 looks for garbage some eight seconds after a collection of the old generation, and tells here how.
    const rest = `
      require('node:v8').setFlagsFromString('--expose-gc');
      require('node:v8').setFlagsFromString('--trace-gc');
      const collect = require('node:vm').runInNewContext('gc');
      let alive = Array.from({ length: 1_000_000 }, (_, at) => ({ at }));
      collect();
      alive = undefined;
      setTimeout(() => {}, 22_000);`;
    put('main.cjs', '');
    // A thread that loads compiled code works under V8's usual flags for a moment.
    const thread = `require(${JSON.stringify(loader)}).loadCompiled(${JSON.stringify(at('main.cjs'))});`;
    const begin = `setTimeout(() => new (require('node:worker_threads').Worker)(${JSON.stringify(thread)}, { eval: true }), 1_000);`;
    const tuned = `require(${JSON.stringify(loader)}).tuneMemory(); setTimeout(() => { ${busy(`setTimeout(() => { ${rest} ${begin} }, 300);`)} }, 300);`;
    const once = `const all = []; while (all.length < 1_500_000) all.push({ at: all.length }); setTimeout(() => { ${rest} }, 300);`;
    const seldom = `require(${JSON.stringify(loader)}).tuneMemory(); setTimeout(() => { ${once} }, 300);`;
    const [usual, unasked, here] = await Promise.all([printed(rest), printed(seldom), printed(tuned)]);
    expect(usual).toContain('Mark-Compact (reduce)');
    expect(unasked).toContain('Mark-Compact (reduce)');
    expect(here.match(/Mark-Compact/g)?.length).toBeGreaterThan(1);
    expect(here).not.toContain('(reduce)');
  });
});
