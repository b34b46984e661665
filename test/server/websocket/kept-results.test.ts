import { describe, expect, it } from 'vitest';
import { createKeptResults } from '../../../src/server/websocket/session.ts';
import { manualClock } from '../../support/clock.ts';

const result = (text: string) => ({
  same: 'call',
  frame: { op: 'call_tool_res' as const, request_id: '1', outputs: [{ type: 'text' as const, text }] },
});
const rules = { resultMs: 600_000, maxCharacters: 100 };

describe('kept results', () => {
  it('are dropped when their time is over, without anybody asking', async () => {
    const clock = manualClock();
    const store = { left: 1_000 };
    const kept = createKeptResults(rules, clock, store);
    kept.keep('1', result('x'.repeat(60)));
    await clock.advance(300_000);
    kept.keep('2', result('y'.repeat(30)));
    await clock.advance(300_000);
    expect(kept.find('1')).toBeUndefined();
    expect(kept.find('2')).toMatchObject(result('y'.repeat(30)));
    await clock.advance(300_000);
    expect(kept.count()).toBe(0);
    expect(clock.pending()).toBe(0);
    expect(store.left).toBe(1_000);
  });

  it('make room for newer ones of the same session, the oldest first', () => {
    const kept = createKeptResults(rules, manualClock(), { left: 1_000 });
    for (const id of ['1', '2', '3']) kept.keep(id, result('x'.repeat(40)));
    expect(['1', '2', '3'].map(id => kept.find(id) !== undefined)).toEqual([false, true, true]);
    kept.keep('4', result('x'.repeat(101)));
    expect(['2', '3', '4'].map(id => kept.find(id) !== undefined)).toEqual([true, true, false]);
  });

  it('take no more room than all sessions have together, and give it back', () => {
    const store = { left: 100 };
    const clock = manualClock();
    const [hers, his] = [createKeptResults(rules, clock, store), createKeptResults(rules, clock, store)];
    hers.keep('1', result('x'.repeat(80)));
    his.keep('1', result('x'.repeat(80)));
    expect(his.find('1')).toBeUndefined();
    hers.clear();
    his.keep('1', result('x'.repeat(80)));
    expect(his.find('1')).toBeDefined();
    his.keep('1', result('x'.repeat(90)));
    expect(his.find('1')).toBeDefined();
    his.clear();
    expect(clock.pending()).toBe(0);
  });
});
