import { describe, expect, it } from 'vitest';
import { createRateLimits } from '../../src/calls/call-limits.ts';
import { manualClock } from '../support/clock.ts';
import { createLocalState } from '../support/local-state.ts';

describe('rate limits', () => {
  const limits = new Map([['chat', 2]]);
  const request = (changes: object = {}) => ({
    name: 'chat',
    principal: { owner: 'local', root: '/', client: 'one' },
    rateLimited: true,
    ...changes,
  });

  it('let as many calls a minute through as they say, and tell when the next one may come', async () => {
    const clock = manualClock();
    const admit = createRateLimits(limits, createLocalState(clock), clock);
    await admit(request());
    await clock.advance(20_000);
    await admit(request());
    await expect(admit(request())).rejects.toMatchObject({
      kind: 'limit',
      details: { class: 'rate', retryable: true, retryAfterSeconds: 40, data: { limit_per_minute: 2 } },
    });
    await clock.advance(39_999);
    await expect(admit(request())).rejects.toMatchObject({ details: { retryAfterSeconds: 1 } });
    await clock.advance(1);
    await admit(request());
    await expect(admit(request())).rejects.toMatchObject({ details: { retryAfterSeconds: 20 } });
  });

  it('count each client, owner and tool by itself, and only clients', async () => {
    const clock = manualClock();
    const admit = createRateLimits(limits, createLocalState(clock), clock);
    const others = [
      request({ name: 'debug' }),
      request({ rateLimited: undefined }),
      request({ principal: { owner: 'local', root: '/', client: 'two' } }),
      request({ principal: { owner: 'ann', root: '/', client: 'one' } }),
    ];
    for (const each of [request(), request(), ...others]) await admit(each);
    for (let n = 0; n < 5; n++) await admit(request({ name: 'debug' }));
    await expect(admit(request())).rejects.toMatchObject({ details: { class: 'rate' } });
  });

  it('count together what processes do on one state, none too many when they come at once', async () => {
    const clock = manualClock();
    const state = createLocalState(clock);
    const doors = [1, 2, 3].map(() => createRateLimits(limits, state, clock));
    const ended = await Promise.allSettled(doors.flatMap(admit => [admit(request()), admit(request())]));
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  });
});
