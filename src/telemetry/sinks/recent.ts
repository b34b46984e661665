import type { Recent, RecentEvent } from '../../core/ports.ts';
import type { Sink } from '../sink.ts';

/** Events that are kept in memory; the oldest go first. */
const mostKept = 2_000;
/** Calls whose owner is remembered: those under way, and those that never said that they ended. */
const mostCalls = 5_000;

export interface RecentSink extends Sink {
  recent: Recent;
}

/** What happened in this process lately. An event belongs to the owner of its call; what belongs to no call is shown to nobody. */
export function createRecent(): RecentSink {
  const owners = new Map<string, string>();
  let kept: (RecentEvent & { owner: string; text: string })[] = [];

  return {
    name: 'recent',
    write(observations) {
      for (const { at, event } of observations) {
        const reqId = 'reqId' in event ? event.reqId : undefined;
        if (reqId === undefined) continue;
        if (event.type === 'call.start') owners.set(reqId, event.owner);
        const owner = owners.get(reqId);
        if (owner !== undefined) kept.push({ at, event, owner, text: JSON.stringify(event).toLowerCase() });
        if (event.type === 'call.end') owners.delete(reqId);
      }
      if (kept.length > mostKept * 1.25) kept = kept.slice(-mostKept);
      for (const reqId of owners.keys()) {
        if (owners.size <= mostCalls) break;
        owners.delete(reqId);
      }
    },
    recent({ owner, words, limit }) {
      const wanted = words.map(word => word.toLowerCase());
      const own = kept.filter(each => each.owner === owner && wanted.every(word => each.text.includes(word)));
      return limit < 1 ? [] : own.slice(-limit).map(({ at, event }) => ({ at, event }));
    },
  };
}
