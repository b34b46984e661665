import { describe, expect, it } from 'vitest';
import type { SharedState } from '../../src/core/ports.ts';
import { type ManualClock, manualClock } from '../support/clock.ts';

/** What every shared state must do. `open` answers a fresh one that reads the time from `clock`. */
export function sharedStateSuite(name: string, open: (clock: ManualClock) => Promise<SharedState>): void {
  describe(`shared state: ${name}`, () => {
    it('answers what was written, until its time ends', async () => {
      const clock = manualClock();
      const state = await open(clock);
      expect(await state.get('a/b')).toBeUndefined();
      expect(await state.change('a/b', 1_000, () => ({ n: 1 }))).toEqual({ n: 1 });
      expect(await state.get('a/b')).toEqual({ n: 1 });
      await clock.advance(1_000);
      expect(await state.get('a/b')).toBeUndefined();
      expect(await state.change('a/b', 1_000, before => ({ before: before ?? null }))).toEqual({ before: null });
    });

    it('lists by prefix, and forgets what became undefined', async () => {
      const state = await open(manualClock());
      await state.change('x/1', 1_000, () => ({ n: 1 }));
      await state.change('x/2', 1_000, () => ({ n: 2 }));
      await state.change('y/1', 1_000, () => ({ n: 3 }));
      expect(Object.fromEntries(await state.list('x/'))).toEqual({ 'x/1': { n: 1 }, 'x/2': { n: 2 } });
      expect(await state.change('x/1', 1_000, () => undefined)).toBeUndefined();
      expect([...(await state.list('x/')).keys()]).toEqual(['x/2']);
    });

    it('loses none of many changes made at once', async () => {
      const state = await open(manualClock());
      const add = () => state.change('sum', 1_000, before => ({ n: Number(before?.n ?? 0) + 1 }));
      await Promise.all(Array.from({ length: 50 }, add));
      expect(await state.get('sum')).toEqual({ n: 50 });
    });

    it('hands out copies', async () => {
      const state = await open(manualClock());
      const list: number[] = [1];
      await state.change('k', 1_000, () => ({ list }));
      list.push(2);
      const read = await state.get('k');
      expect(read).toEqual({ list: [1] });
      if (Array.isArray(read?.list)) read.list.push(3);
      expect(await state.get('k')).toEqual({ list: [1] });
    });
  });
}
