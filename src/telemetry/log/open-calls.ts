import type { AppEvent } from '../../core/events.ts';
import type { Observation } from '../sink.ts';

/** Calls that are remembered: those under way, and those that never said that they ended. The oldest go first. */
const mostCalls = 5_000;

/** Who called what, and what a sink keeps of it until its end. */
export interface OpenCall<Notes> {
  reqId: string;
  tool: string;
  owner: string;
  client?: string;
  notes: Notes;
}

export interface OpenCalls<Notes> {
  /** The call that an event belongs to; undefined for events of no call. After `call.end` it is forgotten. */
  of(observation: Observation): OpenCall<Notes> | undefined;
  /** Those that began and did not end. */
  left(): OpenCall<Notes>[];
}

/** Follows the calls of this process by their events. */
export function createOpenCalls<Notes>(blank: () => Notes): OpenCalls<Notes> {
  const calls = new Map<string, OpenCall<Notes>>();
  const begin = ({ reqId, tool, owner, client }: Extract<AppEvent, { type: 'call.start' }>): void => {
    calls.set(reqId, { reqId, tool, owner, client, notes: blank() });
    for (const oldest of calls.keys()) {
      if (calls.size <= mostCalls) break;
      calls.delete(oldest);
    }
  };
  return {
    of({ event }) {
      if (event.type === 'call.start') begin(event);
      const call = calls.get(event.reqId ?? '');
      if (event.type === 'call.end') calls.delete(event.reqId);
      return call;
    },
    left: () => [...calls.values()],
  };
}
