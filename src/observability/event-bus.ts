import { setImmediate } from 'node:timers/promises';
import { remember, withTimeout } from '../core/concurrency.ts';
import type { AppEvent } from '../core/events.ts';
import type { Clock, RecentEvent, WatchedCall } from '../core/ports.ts';

/** False: there was nothing to write. */
// biome-ignore lint/suspicious/noConfusingVoidType: most writers answer nothing
export type Written = void | boolean;

export interface WriteQueueParts<Item> {
  /** For messages about it. */
  name: string;
  /** Gets everything that came in since the last time; called again only after it ended. False: none of it was to be written. */
  write(batch: readonly Item[]): Written | Promise<Written>;
  /** The most that may wait, by `sizeOf`; more is left out. */
  maxWaiting: number;
  /** Absent: each counts one. */
  sizeOf?(item: Item): number;
  /** Lets what comes within `ms` go into one write, unless somebody waits for it. Absent: written at once. */
  gather?: { clock: Pick<Clock, 'after'>; ms: number };
  /** Hears of a write that began to fail, once until one works again, and of what was left out. */
  onError(name: string, error: unknown): void;
}

/** The queue of one writer: whoever pushes neither waits for it nor hears of its troubles. */
export function createWriteQueue<Item>({ name, write, maxWaiting, sizeOf, gather, onError }: WriteQueueParts<Item>) {
  let waiting: Item[] = [];
  let size = 0;
  let dropped = 0;
  let failing = false;
  let running: Promise<void> | undefined;
  let awaited = 0;
  let hurry = () => {};

  const drain = async (): Promise<void> => {
    // Once the work that is observed waits for something: nobody's answer comes later because it is told of.
    await setImmediate();
    while (waiting.length > 0) {
      if (gather && awaited === 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        hurry = resolve;
        await promise.finally(gather.clock.after(gather.ms, resolve));
      }
      const batch = waiting;
      waiting = [];
      size = 0;
      try {
        // What had nothing to do has not shown that it works again.
        if ((await write(batch)) !== false) failing = false;
      } catch (error) {
        // Observing goes on without this batch: no call may fail because of it.
        if (!failing) onError(name, error);
        failing = true;
      }
    }
    running = undefined;
    if (dropped > 0) onError(name, new Error(`${dropped} records were left out: writing was too slow`));
    dropped = 0;
  };

  return {
    /** Never throws, never waits. */
    push(item: Item): void {
      const own = sizeOf?.(item) ?? 1;
      if (size + own > maxWaiting) dropped++;
      else {
        size += own;
        waiting.push(item);
      }
      running ??= drain();
    },
    /** Resolves when everything pushed so far was written, or given up. Never rejects. */
    async idle(): Promise<void> {
      awaited++;
      hurry();
      try {
        await running;
      } finally {
        awaited--;
      }
    },
  };
}

/** A time in epoch milliseconds as ISO 8601. */
export const isoTime = (at: number): string => new Date(at).toISOString();

/** Writes down what happened. The bus calls `write` with the events in order, and again only after the last one ended. */
export interface Sink {
  /** For messages about the sink itself. */
  name: string;
  /** May throw or reject: that loses these events for this sink, and nothing else. False: it had nothing to write. */
  write(observations: readonly RecentEvent[]): Written | Promise<Written>;
  /** Milliseconds for which events may wait for others, to be written with them; absent: none. */
  gatherMs?: number;
  close?(): Written | Promise<Written>;
}

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

/** Hands events to the sinks, each at its own pace. Nobody who emits waits for a sink or hears of its troubles. */
export function createBus(parts: BusParts) {
  const { clock, sinks, maxWaiting = 10_000 } = parts;
  const onSinkError = (sink: string, error: unknown): void => {
    try {
      parts.onSinkError(sink, error);
    } catch {
      // There is nobody left to tell, and observing must not break the work that is observed.
    }
  };
  const queues = sinks.map(sink => {
    const write = (batch: readonly RecentEvent[]) => sink.write(batch);
    const gather = sink.gatherMs === undefined ? undefined : { clock, ms: sink.gatherMs };
    return createWriteQueue({ name: sink.name, write, maxWaiting, gather, onError: onSinkError });
  });
  let open = true;

  /** Resolves when everything emitted so far was written, or given up; at the latest after `timeoutMs`. Never rejects. */
  const flush = async (timeoutMs = 2_000): Promise<void> => {
    await withTimeout(clock, timeoutMs, Promise.all(queues.map(queue => queue.idle())));
  };

  return {
    emit(event: AppEvent): void {
      if (!open) return;
      try {
        const observation = { at: clock.now(), event: parts.mask(event) };
        for (const queue of queues) queue.push(observation);
      } catch (error) {
        // An event that can't be masked is not shown to anyone.
        onSinkError('mask', error);
      }
    },
    flush,
    /** Takes no more events, flushes, closes the sinks. Never rejects. */
    async close(timeoutMs = 2_000): Promise<void> {
      if (!open) return;
      open = false;
      await flush(timeoutMs);
      // The others are still to be closed where one fails.
      const closed = async (sink: Sink) => sink.close?.();
      const closing = sinks.map(sink => closed(sink).catch(error => onSinkError(sink.name, error)));
      await withTimeout(clock, timeoutMs, Promise.all(closing));
    },
  };
}

/** Calls that are remembered: those under way, and those that never said that they ended. The oldest go first. */
const maxCalls = 5_000;

/** Who called what, and what a sink keeps of it until its end. */
export type OpenCall<Notes> = Pick<WatchedCall, 'reqId' | 'tool' | 'owner' | 'client'> & { notes: Notes };

/** Follows the calls of this process by their events. */
export function createOpenCalls<Notes>(blank: () => Notes) {
  const calls = new Map<string, OpenCall<Notes>>();
  return {
    /** The call that an event belongs to; undefined for events of no call. After `call.end` it is forgotten. */
    of({ event }: RecentEvent): OpenCall<Notes> | undefined {
      if (event.type === 'call.start') {
        const { reqId, tool, owner, client } = event;
        remember(calls, reqId, { reqId, tool, owner, client, notes: blank() }, maxCalls);
      }
      const call = calls.get(event.reqId ?? '');
      if (event.type === 'call.end') calls.delete(event.reqId);
      return call;
    },
    left: () => [...calls.values()],
  };
}
