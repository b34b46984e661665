import { afterEach, describe, expect, it } from 'vitest';
import { createPool, type WorkPool } from '../../../src/workspace/workers/worker-pool.ts';
import { manualClock } from '../../support/clock.ts';

const small = 'export function first() {}\nclass Second {\n  third() {}\n}\n';
const large = Array.from(
  { length: 2_000 },
  (_, n) => `export function name${n}(a: number) {\n  return a + ${n};\n}\n`,
).join('');
const source = (text: string) => ({ path: '/p/a.ts', language: 'typescript' as const, text });

let pool: WorkPool;
const clock = manualClock();
afterEach(() => pool.close());

describe('the pool', () => {
  it('names what a namespace adds to a class of its name, which stands elsewhere, by both names', async () => {
    const merged =
      'class Shop {\n  open() {}\n}\nfunction run() {}\nnamespace Shop {\n  export function extra() {}\n}\n';
    pool = createPool({ size: 1, clock });
    const found = await pool.symbols(source(merged));
    expect(found.map(({ name, from, depth }) => `${name} ${from} ${depth}`)).toEqual([
      'Shop 1 0',
      'open 2 1',
      'run 4 0',
      'Shop.extra 6 0',
    ]);
  });

  it('reads small sources without a thread, and large ones in threads while this one goes on', async () => {
    pool = createPool({ size: 2, clock });
    expect(await pool.symbols(source(small))).toEqual([
      { name: 'first', kind: 'function', from: 1, to: 1, depth: 0 },
      { name: 'Second', kind: 'class', from: 2, to: 4, depth: 0 },
      { name: 'third', kind: 'method', from: 3, to: 3, depth: 1 },
    ]);
    expect(pool.threads).toBe(0);
    let ticks = 0;
    const timer = setInterval(() => ticks++, 5);
    const found = await Promise.all([1, 2, 3, 4].map(() => pool.symbols(source(large))));
    clearInterval(timer);
    expect(found.map(list => list.length)).toEqual([2_000, 2_000, 2_000, 2_000]);
    expect(pool.threads).toBe(2);
    expect(ticks).toBeGreaterThan(10);
  });

  it('lets idle threads end', async () => {
    pool = createPool({ size: 1, clock });
    await pool.symbols(source(large));
    expect(pool.threads).toBe(1);
    await clock.advance(60_000);
    expect(pool.threads).toBe(0);
  });

  it('ends the work of an aborted call at once, and what waited for it goes on', async () => {
    pool = createPool({ size: 1, clock });
    const abort = new AbortController();
    const first = pool.symbols(source(large), abort.signal);
    const second = pool.symbols(source(`${large}\n${small}`));
    const queued = new AbortController();
    const third = pool.symbols(source(large), queued.signal);
    queued.abort();
    await expect(third).rejects.toMatchObject({ kind: 'cancelled' });
    abort.abort();
    await expect(first).rejects.toMatchObject({ kind: 'cancelled' });
    expect(await second).toHaveLength(2_003);
  });

  it('compares large texts in a thread', async () => {
    pool = createPool({ size: 1, clock });
    const diff = await pool.diff({ path: 'a.ts', before: large, after: large.replace('a + 77;', 'a - 77;') });
    expect(diff).toContain('-  return a + 77;\n+  return a - 77;');
    expect(pool.threads).toBe(1);
  });

  it('refuses what waits when it is closed', async () => {
    pool = createPool({ size: 1, clock });
    const first = pool.symbols(source(large));
    const second = pool.symbols(source(large));
    const outcomes = Promise.allSettled([first, second]);
    await pool.close();
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});
