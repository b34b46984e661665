import { expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { observedCall } from '../../src/engine/engine.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';

it('tells observers of a fault of our own as of an error', async () => {
  const events: AppEvent[] = [];
  const meter = { begin: () => undefined, end: () => undefined };
  const services = {
    clock: manualClock(),
    random: seededRandom(3),
    emit: (event: AppEvent) => void events.push(event),
  };
  const call = { tool: 'send', owner: 'local', text: 'Why?', workspace: '/' };
  const broken = () => Promise.reject(new TypeError('a slip'));
  await expect(observedCall({ ...services, meter }, call, broken)).rejects.toThrow('a slip');
  expect(events.slice(-2)).toMatchObject([
    { type: 'warning', message: expect.stringContaining('a slip') },
    { type: 'call.end', status: 'error', code: 'INTERNAL_SERVER_ERROR' },
  ]);
});
