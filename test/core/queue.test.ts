import { setImmediate as aTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createQueue } from '../../src/core/concurrency.ts';

describe('a queue', () => {
  it('lets nobody in while another one has its turn, also where somebody between them gives up', async () => {
    const queue = createQueue();
    const order: string[] = [];
    const enter = (name: string, signal?: AbortSignal) =>
      queue.enter('key', signal).then(leave => {
        order.push(name);
        return leave;
      });
    const leaveA = await enter('a');
    const cancel = new AbortController();
    const b = enter('b', cancel.signal);
    cancel.abort();
    await expect(b).rejects.toMatchObject({ kind: 'cancelled' });
    const c = enter('c');
    const d = enter('d');
    for (let turn = 0; turn < 5; turn++) await aTurn();
    expect(order).toEqual(['a']);
    leaveA();
    (await c)();
    (await d)();
    expect(order).toEqual(['a', 'c', 'd']);
    // Nothing is left that a new one would wait for.
    (await enter('e'))();
    await queue.enter('key', AbortSignal.timeout(1_000), () => expect.fail('waited for nobody'));
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('no'))],
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
  ])('ends the turn of work that %s', async (_how, work) => {
    const queue = createQueue();
    await expect(queue.run('key', work)).rejects.toThrow('no');
    expect(await queue.run('key', async () => 'next', AbortSignal.timeout(1_000))).toBe('next');
  });
});
