import { describe, expect, it } from 'vitest';
import { judge, type Minute, slopeOf, warmUpMinutes } from '../../scripts/torture/soak/judge.ts';
import { seededRandom } from '../support/random.ts';

const random = seededRandom(4);
const noise = () => random.fraction() - 0.5;

function hour(change: (at: number) => Partial<Minute>): Minute[] {
  return Array.from({ length: 60 }, (_, at) => ({
    heapMb: 50 + noise() * 0.2,
    rssMb: 200 + noise(),
    descriptors: 40 + Math.round(noise()),
    chats: 1_000,
    p50: 40,
    p99: 100 + noise() * 20,
    yardstick: 10 + noise(),
    databaseMb: 10,
    ...change(at),
  }));
}

describe('the slope of a soak', () => {
  it('is that of the values per hour, whatever a few odd minutes show', () => {
    const values = Array.from({ length: 61 }, (_, at) => (at % 12 === 5 ? 900 : 100 + at / 30));
    expect(slopeOf(values).perHour).toBeCloseTo((2 / 101) * 100, 0);
  });

  it('has a confidence that holds what the noise hides', () => {
    const { low, high } = slopeOf(Array.from({ length: 60 }, () => 100 + noise() * 10));
    expect(low).toBeLessThan(0);
    expect(high).toBeGreaterThan(0);
  });

  it('is not there for fewer than three minutes', () => {
    expect(slopeOf([1, 2]).perHour).toBeNaN();
  });
});

describe('the judge of a soak', () => {
  it('finds nothing where nothing grows but in the warm-up', () => {
    const { rows, failed } = judge(hour(at => (at < warmUpMinutes ? { heapMb: 30 + at, rssMb: 100 + at * 10 } : {})));
    expect(failed).toEqual([]);
    expect(rows.map(row => row.at(-1))).toEqual(Array.from({ length: 6 }, () => 'held'));
  });

  it.each<[what: string, change: (at: number) => Partial<Minute>]>([
    ['live heap', at => ({ heapMb: 50 * (1 + (0.03 * at) / 60) })],
    ['resident memory', at => ({ rssMb: 200 * (1 + (0.03 * at) / 60) })],
    ['p99 of a chat', at => ({ p99: 100 + at })],
    ['descriptors, last quarter − first', at => ({ descriptors: 40 + Math.floor(at / 5) })],
    ['database, largest, MB', at => ({ databaseMb: 10 + at * 3 })],
  ])('finds what grows: %s', (what, change) => {
    const { failed } = judge(hour(change));
    expect(failed).not.toEqual([]);
    expect(failed.filter(line => !line.startsWith(what))).toEqual([]);
  });

  it('takes a machine that becomes slower or faster for no slower server', () => {
    expect(judge(hour(at => ({ p99: 100 + at * 5, yardstick: 10 + at / 2 }))).failed).toEqual([]);
    expect(judge(hour(at => ({ yardstick: 10 - at / 12 }))).failed).toEqual([]);
  });

  it('does not judge a short run', () => {
    const { rows, failed } = judge(hour(at => ({ heapMb: 50 + at })).slice(0, 5));
    expect(failed).toEqual([]);
    expect(rows[0]).toContain('too short');
  });
});
