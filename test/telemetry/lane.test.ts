import { describe, expect, it } from 'vitest';
import { createLane } from '../../src/telemetry/lane.ts';

describe('a lane', () => {
  it('leaves out what would make it too large, and says how much once it has caught up', async () => {
    const written: string[] = [];
    const problems: string[] = [];
    let release = () => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    const lane = createLane<string>({
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
    await Promise.resolve();
    for (const text of ['123456', '1234', '12', '']) lane.push(text);
    expect(written).toEqual([]);
    release();
    await lane.idle();
    expect(written).toEqual(['12345', '123456', '1234', '']);
    expect(problems).toEqual(['slow: Error: 1 records were left out: writing was too slow']);
  });
});
