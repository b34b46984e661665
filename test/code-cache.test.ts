import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
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
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

const loader = resolve('dist/code-cache.cjs');
const sumOf = (data: string | Buffer) => crc32(data).toString(16).padStart(8, '0');

const newFolder = () => mkdtempSync(join(tmpdir(), 'polylogue-code-cache-'));

let folder: string;
beforeEach(() => {
  const made = newFolder();
  folder = made;
  return () => rmSync(made, { recursive: true, force: true });
});

const at = (name: string) => join(folder, name);
const put = (name: string, text: string) => writeFileSync(at(name), text);

/** What a process prints that loads the main piece and runs this with its exports as `piece`. */
function run(code = 'console.log(piece.answer())', env: Record<string, string> = {}): string {
  const program = `const piece = require(${JSON.stringify(loader)}).loadCompiled(${JSON.stringify(at('main.cjs'))}); ${code}`;
  const all = { PATH: process.env.PATH, NODE_COMPILE_CACHE: at('cache'), ...env };
  return execFileSync(process.execPath, ['-e', program], { env: all, encoding: 'utf8' }).trim();
}

/** What a process prints that runs this, until that is enough. Others may run meanwhile. */
async function printed(code: string, cache: string, isEnough = (_text: string) => false): Promise<string> {
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: cache };
  const child = spawn(process.execPath, ['-e', code], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', piece => {
    text += piece;
    if (isEnough(text)) child.kill();
  });
  const [status] = await once(child, 'close');
  if (!isEnough(text)) expect(status).toBe(0);
  return text;
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
  let place: string;
  beforeAll(() => {
    place = newFolder();
    writeFileSync(join(place, 'main.cjs'), '');
  });
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  const tuning = (rest = '') => `require(${JSON.stringify(loader)}).tuneMemory(${rest});`;
  const loading = () => `require(${JSON.stringify(loader)}).loadCompiled(${JSON.stringify(join(place, 'main.cjs'))});`;
  const answerOf = async (code: string) => JSON.parse(await printed(`${loading()} ${code}`, join(place, 'cache')));

  /** How large they are in 1,500 turns of work, of which some thirty megabytes are alive at a time: the young mostly, and the old at most. */
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
      if (young.push(sizeOf('new_space')) < 1_500) return setImmediate(turn);
      console.log(JSON.stringify([young.toSorted((a, b) => a - b)[750], most]));
    };
    turn();`;

  /** Fills the young generation many times, as a server that has answered some hundred calls, and goes on with `then`. */
  const busy = (then: string, times = 60) => `
    let left = ${times};
    const step = () => {
      for (let all = []; all.length < 300_000; ) all.push({ at: all.length });
      if (--left > 0) return setTimeout(step, 1);
      ${then}
    };
    step();`;

  it.concurrent('grow no further than to the size that they need', async () => {
    const tuned = `${tuning()} setTimeout(() => { ${work} }, 300);`;
    const [[young, old], [usualYoung, usualOld]] = await Promise.all([answerOf(tuned), answerOf(work)]);
    expect(young).toBe(16);
    expect(usualYoung).toBeGreaterThan(16);
    expect(usualOld).toBeGreaterThan(1.2 * old);
  });

  it.concurrent('have their size again after V8 made them small', async () => {
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
    const [before, after] = await answerOf(`${tuning()} setTimeout(() => { ${turns} }, 300);`);
    expect(after).toBeLessThan(2 * before);
  });

  it.concurrent('are given back by a server that rests for long', async () => {
    const tuned = `
      ${tuning('1_000')}
      const sizeOf = () => require('node:v8').getHeapStatistics().total_heap_size / 1_048_576;
      setTimeout(() => {
        let grown = [];
        while (grown.length < 1_500_000) grown.push({ at: grown.length });
        grown = [];
        const before = sizeOf();
        // V8 looks for garbage after eight seconds of rest, and would give it back then.
        const look = left => {
          if (left > 0 && sizeOf() >= 20) return setTimeout(look, 100, left - 1);
          console.log(JSON.stringify([before, sizeOf()]));
        };
        look(60);
      }, 300);`;
    const [before, after] = await answerOf(tuned);
    expect(before).toBeGreaterThan(60);
    expect(after).toBeLessThan(20);
  });

  it.concurrent('are not collected at rest in the way that forgets the shapes of objects, once the server has been busy', async () => {
    // V8 looks for garbage some eight seconds after a collection of the old generation, and tells here how.
    const rest = `
      require('node:v8').setFlagsFromString('--expose-gc');
      require('node:v8').setFlagsFromString('--trace-gc');
      const collect = require('node:vm').runInNewContext('gc');
      let alive = Array.from({ length: 1_000_000 }, (_, at) => ({ at }));
      collect();
      alive = undefined;
      console.log('rests');
      setTimeout(() => {}, 22_000);`;
    // A thread that loads compiled code works under V8's usual flags for a moment.
    const begin = `setTimeout(() => new (require('node:worker_threads').Worker)(${JSON.stringify(loading())}, { eval: true }), 1_000);`;
    const tuned = `${tuning()} setTimeout(() => { ${busy(`setTimeout(() => { ${rest} ${begin} }, 300);`)} }, 300);`;
    const seldom = `${tuning()} setTimeout(() => { ${busy(`setTimeout(() => { ${rest} }, 300);`, 5)} }, 300);`;
    const looks = (text = '') => text.split('rests')[1]?.match(/Mark-Compact/g)?.length ?? 0;
    // It looks once more where it found much.
    const hasLooked = (text: string) => looks(text) > 1;
    const [usual, unasked, here] = await Promise.all(
      [rest, seldom, tuned].map(code => printed(code, join(place, 'cache'), hasLooked)),
    );
    expect(usual).toContain('Mark-Compact (reduce)');
    expect(unasked).toContain('Mark-Compact (reduce)');
    expect(looks(here)).toBeGreaterThan(0);
    expect(here).not.toContain('(reduce)');
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
});
