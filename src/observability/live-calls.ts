import { onAbort } from '../core/concurrency.ts';
import type { Recent, RecentEvent, WatchedCall, WatchedCalls } from '../core/ports.ts';
import type { Sink } from './event-bus.ts';

/** What is kept; more than that is forgotten, the oldest calls that ended first. */
const defaultLimits = { calls: 500, characters: 8_000_000, eventsOfCall: 300 };

interface Followed extends WatchedCall {
  events: RecentEvent[];
  /** Characters of its events as JSON. */
  size: number;
}

/** Follows calls by their events and tells whoever watches. What belongs to no call is not kept. */
export function createLiveCallsSink(limits = defaultLimits): Sink & { calls: WatchedCalls; recent: Recent } {
  const followed = new Map<string, Followed>();
  const listeners = new Map<string, Set<(reqId: string) => void>>();
  let size = 0;

  function begin({ at, event }: RecentEvent): void {
    if (event.type !== 'call.start' || followed.has(event.reqId)) return;
    const { reqId, tool, owner, client } = event;
    const who = { reqId, tool, owner, ...(client !== undefined && { client }) };
    followed.set(reqId, { ...who, startedAt: at, events: [], omitted: 0, size: 0 });
  }

  function add(call: Followed, observation: RecentEvent): void {
    const { at, event } = observation;
    if (event.type === 'call.about') {
      const { type: _, reqId: _id, tool: _tool, ...about } = event;
      grow(call, about.text.length - (call.about?.text.length ?? 0));
      call.about = about;
      return;
    }
    if (event.type === 'call.end') call.endedAt = at;
    if (call.events.length >= limits.eventsOfCall) {
      call.omitted += 1;
      // The newest one tells what the call is at now, or how it ended.
      grow(call, -sizeOf(call.events.pop()));
    }
    call.events.push(observation);
    grow(call, sizeOf(observation));
  }

  function grow(call: Followed, by: number): void {
    call.size += by;
    size += by;
  }

  /** The oldest that ended first. Calls that never said that they ended must not fill the memory either. */
  function forget(): void {
    for (const alsoRunning of [false, true]) {
      for (const call of followed.values()) {
        if (followed.size <= limits.calls && size <= limits.characters) return;
        if ((alsoRunning || call.endedAt !== undefined) && followed.delete(call.reqId)) size -= call.size;
      }
    }
  }

  const ofOwner = (owner: string) => [...followed.values()].filter(call => call.owner === owner);

  return {
    name: 'live-calls',
    write(observations) {
      const news = new Map<string, string>();
      for (const observation of observations) {
        begin(observation);
        const call = followed.get(observation.event.reqId ?? '');
        if (!call) continue;
        add(call, observation);
        news.set(call.reqId, call.owner);
      }
      forget();
      for (const [reqId, owner] of news) for (const listener of listeners.get(owner) ?? []) listener(reqId);
    },
    recent({ owner, words, limit }) {
      const wanted = words.map(word => word.toLowerCase());
      const holdsAll = ({ event }: RecentEvent) => {
        const text = JSON.stringify(event).toLowerCase();
        return wanted.every(word => text.includes(word));
      };
      const found = ofOwner(owner).flatMap(({ events }) => events.filter(holdsAll));
      return limit < 1 ? [] : found.sort((a, b) => a.at - b.at).slice(-limit);
    },
    calls: {
      list: owner => ofOwner(owner).sort(runningFirst),
      find(owner, reqId) {
        const call = followed.get(reqId);
        return call?.owner === owner ? call : undefined;
      },
      subscribe(owner, listener, signal) {
        if (signal.aborted) return;
        const own = listeners.get(owner) ?? new Set();
        listeners.set(owner, own.add(listener));
        onAbort(signal, () => {
          own.delete(listener);
          if (own.size === 0 && listeners.get(owner) === own) listeners.delete(owner);
        });
      },
    },
  };
}

/** The characters of an event as JSON. */
const sizeOf = (observation: RecentEvent | undefined): number => JSON.stringify(observation?.event ?? {}).length;

function runningFirst(a: WatchedCall, b: WatchedCall): number {
  const running = Number(b.endedAt === undefined) - Number(a.endedAt === undefined);
  return running || b.startedAt - a.startedAt;
}

/** What goes on for ever must not fill the memory; the first ones tell what is wrong. */
const maxWarnings = 100;

/** What is `warned` of, the oldest first: warnings that belong to no call, as something is set up badly. */
export function createWarningSink() {
  const warned: { where: string; message: string }[] = [];
  return {
    name: 'warned',
    warned,
    write(observations: readonly RecentEvent[]): void {
      for (const { event } of observations) {
        if (event.type !== 'warning' || event.reqId !== undefined || warned.length >= maxWarnings) continue;
        warned.push({ where: event.where, message: event.message });
      }
    },
  };
}
