import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import type { RecentEvent } from '../../src/core/ports.ts';
import { createBus, isoTime, type Sink } from '../../src/observability/event-bus.ts';
import { manualClock } from '../support/clock.ts';

const warning = (message: string): AppEvent => ({ type: 'warning', where: 'test', message });
const messages = (observations: readonly RecentEvent[]) =>
  observations.map(({ event }) => (event.type === 'warning' ? event.message : event.type));

function recorder(name = 'recorder'): Sink & { seen: string[] } {
  const seen: string[] = [];
  return { name, seen, write: observations => void seen.push(...messages(observations)) };
}

function busOf(sinks: Sink[], options: { maxWaiting?: number; mask?: (event: AppEvent) => AppEvent } = {}) {
  const clock = manualClock();
  const problems: string[] = [];
  const onSinkError = (sink: string, error: unknown) => void problems.push(`${sink}: ${error}`);
  return { clock, problems, bus: createBus({ clock, mask: event => event, sinks, onSinkError, ...options }) };
}

describe('the bus', () => {
  it('hands every event to every sink, in order and with its time', async () => {
    const observations: RecentEvent[] = [];
    const sinks = [
      recorder('a'),
      { name: 'b', write: (batch: readonly RecentEvent[]) => void observations.push(...batch) },
    ];
    const { bus, clock } = busOf(sinks);
    for (let index = 0; index < 500; index++) {
      bus.emit(warning(`${index}`));
      if (index % 100 === 0) await clock.advance(5);
    }
    await bus.flush();
    const expected = Array.from({ length: 500 }, (_, index) => `${index}`);
    expect(messages(observations)).toEqual(expected);
    expect(sinks[0]).toHaveProperty('seen', expected);
    expect(observations[499]!.at - observations[0]!.at).toBe(25);
  });

  it('shows sinks the masked event only, as it was when it was emitted', async () => {
    const sink = recorder();
    const { bus } = busOf([sink], {
      mask: event => (event.type === 'warning' ? { ...event, message: `<${event.message}>` } : event),
    });
    const event = { type: 'warning' as const, where: 'test', message: 'before' };
    bus.emit(event);
    event.message = 'after';
    await bus.flush();
    expect(sink.seen).toEqual(['<before>']);
  });

  it('runs no sink within emit', async () => {
    const sink = recorder();
    const { bus } = busOf([sink]);
    bus.emit(warning('x'));
    expect(sink.seen).toEqual([]);
    await bus.flush();
    expect(sink.seen).toEqual(['x']);
  });

  it('goes on when a sink throws, rejects or hangs, and tells once until it works again', async () => {
    let broken = true;
    const healthy = recorder();
    const throwing: Sink = {
      name: 'throwing',
      write: () => {
        if (broken) throw new Error('no');
      },
    };
    const rejecting: Sink = {
      name: 'rejecting',
      write: async () => {
        throw new Error('full');
      },
    };
    const hanging: Sink = { name: 'hanging', write: () => new Promise<void>(() => {}) };
    const { bus, clock, problems } = busOf([throwing, rejecting, hanging, healthy]);
    const flushed = async () => {
      const done = bus.flush(100);
      await clock.advance(100);
      await done;
    };
    for (const message of ['a', 'b']) {
      bus.emit(warning(message));
      await flushed();
    }
    expect(problems).toEqual(['throwing: Error: no', 'rejecting: Error: full']);
    broken = false;
    bus.emit(warning('c'));
    await flushed();
    broken = true;
    bus.emit(warning('d'));
    await flushed();
    expect(problems).toEqual(['throwing: Error: no', 'rejecting: Error: full', 'throwing: Error: no']);
    expect(healthy.seen).toEqual(['a', 'b', 'c', 'd']);
  });

  it('never throws, not even when masking or the report of an error does', () => {
    const bus = createBus({
      clock: manualClock(),
      mask: () => {
        throw new Error('mask');
      },
      sinks: [recorder()],
      onSinkError: () => {
        throw new Error('report');
      },
    });
    expect(() => bus.emit(warning('x'))).not.toThrow();
  });

  it('drops an event that could not be masked', async () => {
    const sink = recorder();
    const { bus, problems } = busOf([sink], {
      mask: () => {
        throw new Error('mask');
      },
    });
    bus.emit(warning('secret'));
    await bus.flush();
    expect(sink.seen).toEqual([]);
    expect(problems).toEqual(['mask: Error: mask']);
  });

  it('bounds what waits for a slow sink and says how much was left out', async () => {
    let release = () => {};
    const seen: string[] = [];
    const slow: Sink = {
      name: 'slow',
      write: async batch => {
        seen.push(...messages(batch));
        await new Promise<void>(resolve => {
          release = resolve;
        });
      },
    };
    const { bus, problems } = busOf([slow], { maxWaiting: 10 });
    bus.emit(warning('first'));
    await new Promise(resolve => setImmediate(resolve));
    for (let index = 0; index < 25; index++) bus.emit(warning(`${index}`));
    release();
    await new Promise(resolve => setImmediate(resolve));
    release();
    await bus.flush();
    expect(seen).toHaveLength(11);
    expect(problems).toEqual(['slow: Error: 15 records were left out: writing was too slow']);
  });

  it('closes its sinks after the last event, and takes no more', async () => {
    const order: string[] = [];
    const sink: Sink = {
      name: 'sink',
      write: async batch => void order.push(...messages(batch)),
      close: async () => void order.push('closed'),
    };
    const { bus } = busOf([sink]);
    bus.emit(warning('last'));
    await bus.close();
    bus.emit(warning('late'));
    await bus.close();
    expect(order).toEqual(['last', 'closed']);
  });

  it('closes the other sinks when one fails to close', async () => {
    const closed: string[] = [];
    const sinks: Sink[] = [
      {
        name: 'bad',
        write: () => {},
        close: () => {
          throw new Error('stuck');
        },
      },
      { name: 'good', write: () => {}, close: () => void closed.push('good') },
    ];
    const { bus, problems } = busOf(sinks);
    await bus.close();
    expect(closed).toEqual(['good']);
    expect(problems).toEqual(['bad: Error: stuck']);
  });
});

describe('the time of what happened', () => {
  it('is written as ISO 8601, in whichever order the seconds come', () => {
    const begin = Date.UTC(2030, 0, 2, 3, 4, 5);
    const times = [begin, begin + 7, begin + 999, begin + 1_000, begin + 86_400_000, begin, begin - 1, 0, -1];
    expect(times.map(isoTime)).toEqual(times.map(at => new Date(at).toISOString()));
    expect(() => isoTime(Number.NaN)).toThrow(RangeError);
  });
});
