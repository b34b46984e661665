import { describe, expect, it } from 'vitest';
import { createWriteQueue } from '../../src/observability/event-bus.ts';
import { manualClock } from '../support/clock.ts';

describe('a lane', () => {
  it('leaves out what would make it too large, and says how much once it has caught up', async () => {
    const written: string[] = [];
    const problems: string[] = [];
    let release = () => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    const lane = createWriteQueue<string>({
      name: 'slow',
      maxWaiting: 10,
      sizeOf: text => text.length,
      async write(batch) {
        await held;
        written.push(...batch);
      },
      onError: (name, error) => void problems.push(`${name}: ${error}`),
    });
    lane.push('12345');
    await new Promise(resolve => setImmediate(resolve));
    for (const text of ['123456', '1234', '12', '']) lane.push(text);
    expect(written).toEqual([]);
    release();
    await lane.idle();
    expect(written).toEqual(['12345', '123456', '1234', '']);
    expect(problems).toEqual(['slow: Error: 1 records were left out: writing was too slow']);
  });

  it('writes what comes within its time at once, and sooner where somebody waits for it', async () => {
    const written: string[][] = [];
    const clock = manualClock();
    const lane = createWriteQueue<string>({
      name: 'file',
      maxWaiting: 10,
      gather: { clock, ms: 100 },
      write: batch => void written.push([...batch]),
      onError: (_name, error) => {
        throw error;
      },
    });
    lane.push('a');
    await clock.advance(99);
    lane.push('b');
    expect(written).toEqual([]);
    await clock.advance(1);
    expect(written).toEqual([['a', 'b']]);
    lane.push('c');
    await clock.advance(1);
    await lane.idle();
    lane.push('d');
    await lane.idle();
    expect(written).toEqual([['a', 'b'], ['c'], ['d']]);
  });
});
