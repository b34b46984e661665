import { describe, expect, it } from 'vitest';
import { createEmitter } from '../../../src/app/library/conversation.ts';

const refresh = { type: 'refresh' as const, round: 1, files: [], conversation: 'c' };

describe('a listener of the program', () => {
  it('that listens twice hears twice, and each time ends by itself', () => {
    const { on, emit } = createEmitter(error => expect.unreachable(String(error)));
    let heard = 0;
    const listen = () => void heard++;
    const ends = [on('refresh', listen), on('refresh', listen)];
    emit('refresh', refresh);
    expect(heard).toBe(2);
    ends[0]!();
    ends[0]!();
    emit('refresh', refresh);
    expect(heard).toBe(3);
  });

  it('that throws, at once or later, harms neither the run nor the process', async () => {
    const failures: unknown[] = [];
    const heard: string[] = [];
    const { on, emit } = createEmitter(error => failures.push(error));
    on('refresh', () => {
      throw new Error('at once');
    });
    // An async function is a listener for TypeScript, and nobody waits for it.
    on('refresh', async () => {
      throw new Error('later');
    });
    on('refresh', ({ type }) => heard.push(type));
    emit('refresh', refresh);
    expect(heard).toEqual(['refresh']);
    await expect.poll(() => failures).toEqual([new Error('at once'), new Error('later')]);
  });
});
