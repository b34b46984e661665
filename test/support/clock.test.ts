import { describe, expect, it } from 'vitest';
import { isRequestId } from '../../src/core/ids.ts';
import { manualClock, realClock } from './clock.ts';
import { seededRandom } from './random.ts';

describe('manualClock', () => {
  it('fires timers and sleeps in the order of their times, those that they start included', async () => {
    const clock = manualClock(1_000);
    const seen: string[] = [];
    const note = (name: string) => seen.push(`${name}@${clock.now()}`);
    clock.after(300, () => note('late'));
    clock.after(100, () => note('early'));
    const loop = (async () => {
      for (const round of [1, 2]) {
        await clock.sleep(150);
        note(`sleep ${round}`);
      }
    })();
    await clock.advance(299);
    expect(seen).toEqual(['early@1100', 'sleep 1@1150']);
    await clock.advance(1);
    await loop;
    expect(seen.slice(2)).toEqual(['late@1300', 'sleep 2@1300']);
    expect(clock.monotonic()).toBe(300);
    expect(clock.pending()).toBe(0);
  });

  it('never fires a timer that was cancelled', async () => {
    const clock = manualClock();
    let fired = false;
    const cancel = clock.after(10, () => {
      fired = true;
    });
    cancel();
    await clock.advance(20);
    expect(fired).toBe(false);
  });

  it.each([
    ['manual', manualClock()],
    ['real', realClock()],
  ])('an abort ends a sleep of the %s clock with its reason', async (_name, clock) => {
    const stop = new AbortController();
    const asleep = expect(clock.sleep(60_000, stop.signal)).rejects.toThrow('enough');
    stop.abort(new Error('enough'));
    await asleep;
    await expect(clock.sleep(1, stop.signal)).rejects.toThrow('enough');
  });
});

describe('seededRandom', () => {
  it('gives the same valid ids and fractions for the same seed', () => {
    const draw = (seed: number) => {
      const random = seededRandom(seed);
      return Array.from({ length: 500 }, () => [random.uuid(), random.fraction()] as const);
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
    expect(draw(7).every(([id]) => isRequestId(id) && id.charAt(14) === '4')).toBe(true);
    expect(new Set(draw(7).map(([id]) => id)).size).toBe(500);
    expect(draw(7).every(([, fraction]) => fraction >= 0 && fraction < 1)).toBe(true);
    const mean = draw(7).reduce((sum, [, fraction]) => sum + fraction, 0) / 500;
    expect(mean).toBeGreaterThan(0.4);
    expect(mean).toBeLessThan(0.6);
  });
});
