import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createQuotas } from '../../../src/server/access/limits.ts';
import { type LiveStreamParts, liveStream } from '../../../src/server/dashboard/dashboard.ts';
import { manualClock } from '../../support/clock.ts';

function rig(more: Partial<LiveStreamParts> = {}) {
  const clock = manualClock();
  let news = () => {};
  let left: AbortSignal | undefined;
  const state = { html: 'first', isOver: false, isAllowed: true, drawn: 0, ends: 0 };
  const response = liveStream({
    clock,
    subscribe(onNews, signal) {
      news = onNews;
      left = signal;
    },
    async render() {
      state.drawn++;
      return { html: state.html, isOver: state.isOver };
    },
    isAllowed: () => state.isAllowed,
    onEnd: () => void state.ends++,
    ...more,
  });
  const reader = response.body!.getReader();
  const read = async () => {
    const { done, value } = await reader.read();
    return done ? undefined : Buffer.from(value).toString();
  };
  return { clock, state, reader, read, response, news: () => news(), left: () => left?.aborted };
}

describe('a stream of news', () => {
  it('begins with what is there, and tells of a burst of news once', async () => {
    const { state, read, clock, news } = rig();
    expect(await read()).toBe('data: "first"\n\n');
    state.html = 'second\n<&>';
    for (let burst = 0; burst < 50; burst++) news();
    await clock.advance(199);
    expect(state.drawn).toBe(1);
    await clock.advance(1);
    expect(await read()).toBe('data: "second\\n<&>"\n\n');
    await clock.advance(1_000);
    expect(state.drawn).toBe(2);
  });

  it('shows that it lives when there is no news', async () => {
    const { read, clock } = rig();
    await read();
    await clock.advance(10_000);
    expect(await read()).toBe(': \n\n');
  });

  it('misses no news that comes while it draws', async () => {
    const drawing = Promise.withResolvers<void>();
    let drawn = 0;
    const { read, clock, news } = rig({
      async render() {
        drawn++;
        if (drawn === 1) await drawing.promise;
        return { html: `picture ${drawn}`, isOver: false };
      },
    });
    news();
    drawing.resolve();
    expect(await read()).toContain('picture 1');
    await clock.advance(200);
    expect(await read()).toContain('picture 2');
  });

  it('ends with what is over, when its reader goes, and when he may see it no longer', async () => {
    const over = rig();
    over.state.isOver = true;
    expect(await over.read()).toBe('data: "first"\n\n');
    over.news();
    await over.clock.advance(200);
    expect(await over.read()).toBe(': \n\n');
    expect(await over.read()).toBe('event: over\ndata: 1\n\n');
    expect(await over.read()).toBeUndefined();
    const cancelled = rig();
    await cancelled.reader.cancel();
    const barred = rig();
    await barred.read();
    barred.state.isAllowed = false;
    barred.news();
    await barred.clock.advance(200);
    expect((await barred.read()) ?? '').toBe('');
    for (const { state, clock, left: isLeft, news } of [over, cancelled, barred]) {
      expect(state.ends).toBe(1);
      expect(isLeft()).toBe(true);
      const { drawn } = state;
      news();
      await clock.advance(60_000);
      expect(state.drawn).toBe(drawn);
      expect(clock.pending()).toBe(0);
    }
  });

  it('fails as a whole when what it shows can’t be had', async () => {
    const { read, state, left } = rig({ render: () => Promise.reject(new Error('the store is gone')) });
    await expect(read()).rejects.toThrow('the store is gone');
    await turn();
    expect([state.ends, left()]).toEqual([1, true]);
  });
});

describe('pages that follow', () => {
  it('are so many at the same time and no more, of one owner and in all', () => {
    const follow = createQuotas({ perCaller: () => 2, inAll: 3 });
    const [first, second] = [follow('a'), follow('a')];
    expect(follow('a')).toBeUndefined();
    expect(follow('b')).toBeTypeOf('function');
    expect(follow('c')).toBeUndefined();
    first?.();
    first?.();
    expect(follow('c')).toBeTypeOf('function');
    expect(follow('c')).toBeUndefined();
    second?.();
    expect(follow('a')).toBeTypeOf('function');
  });
});
