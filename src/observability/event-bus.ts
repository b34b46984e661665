import type { AppEvent } from '../core/events.ts';
import type { Clock, Emit } from '../core/ports.ts';
import { atMost, createLane } from '../telemetry/lane.ts';
import type { Observation, Sink } from '../telemetry/sink.ts';

export interface BusParts {
  clock: Clock;
  /** Replaces the secrets in all texts of an event. */
  mask(event: AppEvent): AppEvent;
  sinks: readonly Sink[];
  /** Hears of a sink that began to fail, once until it works again, and of events that were left out. */
  onSinkError(sink: string, error: unknown): void;
  /** Events that may wait for one slow sink; more are left out. */
  maxWaiting?: number;
}

export interface Bus {
  emit: Emit;
  /** Resolves when everything emitted so far was written, or given up; at the latest after `timeoutMs` (2,000). Never rejects. */
  flush(timeoutMs?: number): Promise<void>;
  /** Takes no more events, flushes, closes the sinks. Never rejects. */
  close(timeoutMs?: number): Promise<void>;
}

/** Hands events to the sinks, each at its own pace. Nobody who emits waits for a sink or hears of its troubles. */
export function createBus(parts: BusParts): Bus {
  const { clock, sinks, maxWaiting = 10_000 } = parts;
  const onSinkError = (sink: string, error: unknown): void => {
    try {
      parts.onSinkError(sink, error);
    } catch {
      // There is nobody left to tell, and observing must not break the work that is observed.
    }
  };
  const lanes = sinks.map(sink => {
    const write = (batch: readonly Observation[]) => sink.write(batch);
    const gather = sink.gatherMs === undefined ? undefined : { clock, ms: sink.gatherMs };
    return createLane({ name: sink.name, write, maxWaiting, gather, onError: onSinkError });
  });
  let open = true;

  const flush = async (timeoutMs = 2_000): Promise<void> => {
    await atMost(clock, timeoutMs, Promise.all(lanes.map(lane => lane.idle())));
  };

  return {
    emit(event) {
      if (!open) return;
      try {
        const observation = { at: clock.now(), event: parts.mask(event) };
        for (const lane of lanes) lane.push(observation);
      } catch (error) {
        // An event that can't be masked is not shown to anyone.
        onSinkError('mask', error);
      }
    },
    flush,
    async close(timeoutMs = 2_000) {
      if (!open) return;
      open = false;
      await flush(timeoutMs);
      await atMost(clock, timeoutMs, Promise.all(sinks.map(sink => closeSink(sink, onSinkError))));
    },
  };
}

async function closeSink(sink: Sink, onSinkError: (sink: string, error: unknown) => void): Promise<void> {
  try {
    await sink.close?.();
  } catch (error) {
    // The others are still to be closed.
    onSinkError(sink.name, error);
  }
}
