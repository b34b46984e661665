import { describe, expect, it } from 'vitest';
import { createEventLog } from '../../../src/server/mcp-http/sessions.ts';

const said = (text: string) => ({ jsonrpc: '2.0' as const, method: 'notifications/message', params: { text } });
const answer = (id: number, text = '') => ({ jsonrpc: '2.0' as const, id, result: { text } });

async function eventsAfter(log: ReturnType<typeof createEventLog>, id: string): Promise<unknown[]> {
  const told: unknown[] = [];
  await log.replayEventsAfter(id, { send: async (_id, message) => void told.push(message) });
  return told;
}

describe('what was sent in a session', () => {
  it('is told again from any point, stream by stream', async () => {
    const log = createEventLog({ left: 10_000_000 });
    const first = await log.storeEvent('a', said('one'));
    await log.storeEvent('b', answer(2));
    await log.storeEvent('a', answer(1));
    expect(await eventsAfter(log, first)).toEqual([answer(1)]);
    expect(log.streamOf(first)).toBe('a');
    expect(log.answersAfter(first)).toEqual([1]);
    expect(log.streamOf('99')).toBeUndefined();
    await expect(eventsAfter(log, '99')).rejects.toThrow(RangeError);
  });

  it('is forgotten by streams whose answers arrived', async () => {
    const log = createEventLog({ left: 10_000_000 });
    const first = await log.storeEvent('a', said('one'));
    await log.storeEvent('a', answer(1));
    const other = await log.storeEvent('b', said('two'));
    log.forget([1, 7]);
    expect(log.streamOf(first)).toBeUndefined();
    expect(await eventsAfter(log, other)).toEqual([]);
    log.forget([]);
    expect(log.size()).toBe(JSON.stringify(said('two')).length);
  });

  it('never grows beyond its size, but for one event that is larger', async () => {
    const log = createEventLog({ left: 10_000_000 });
    for (let at = 0; at < 2_000; at += 1) await log.storeEvent('a', said('x'.repeat(2_000)));
    expect(log.size()).toBeLessThanOrEqual(1_048_576);
    const last = await log.storeEvent('a', answer(1, 'x'.repeat(3_000_000)));
    expect(log.size()).toBeGreaterThan(3_000_000);
    expect(log.streamOf(last)).toBe('a');
    await log.storeEvent('a', said('y'));
    expect(log.size()).toBeLessThan(1_000);
  });

  it('is kept as far as all sessions together have room, which a session that ends gives back', async () => {
    const room = { left: 10_000 };
    const logs = Array.from({ length: 50 }, () => createEventLog(room));
    for (const log of logs) for (let at = 0; at < 3; at += 1) await log.storeEvent('a', said('x'.repeat(900)));
    const kept = () => logs.reduce((sum, log) => sum + log.size(), 0);
    expect(kept()).toBeLessThanOrEqual(10_000);
    expect(kept()).toBeGreaterThan(8_000);
    const huge = await logs[0]!.storeEvent('a', answer(1, 'x'.repeat(20_000)));
    expect(logs[0]!.streamOf(huge)).toBeUndefined();
    for (const log of logs) log.close();
    expect(kept()).toBe(0);
    // A stream that ends behind its session leaves nothing.
    await logs[0]!.storeEvent('a', said('late'));
    const next = createEventLog(room);
    const first = await next.storeEvent('a', said('x'.repeat(9_000)));
    next.forget([1]);
    await next.storeEvent('a', answer(1));
    expect(await eventsAfter(next, first)).toEqual([answer(1)]);
    next.forget([1]);
    expect(next.size()).toBe(0);
    expect(room.left).toBe(10_000);
  });
});
