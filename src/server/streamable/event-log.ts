import type { EventStore, JSONRPCMessage, RequestId } from '@modelcontextprotocol/server';

interface LoggedEvent {
  id: string;
  stream: string;
  message: JSONRPCMessage;
  size: number;
}

export interface EventLog extends EventStore {
  getStreamIdForEventId(eventId: string): Promise<string | undefined>;
  /** The ids of the requests that were answered among the events behind this one, in its stream. */
  answersAfter(eventId: string): RequestId[];
  /** Drops the streams in which these requests were answered. */
  forget(answered: readonly RequestId[]): void;
  /** Characters that are kept. */
  size(): number;
}

/** More events than these are forgotten, the oldest first; the newest one stays whatever its size. */
const most = { events: 512, characters: 1_048_576 };

/** What was sent in one session, for a client that lost a stream and comes back for the rest. */
export function createEventLog(): EventLog {
  const events: LoggedEvent[] = [];
  let count = 0;
  let size = 0;
  const after = (id: string) => {
    const at = events.findIndex(event => event.id === id);
    const stream = events[at]?.stream;
    return { stream, later: at < 0 ? [] : events.slice(at + 1).filter(event => event.stream === stream) };
  };
  return {
    size: () => size,
    async storeEvent(stream, message) {
      count += 1;
      const event = { id: String(count), stream, message, size: JSON.stringify(message).length };
      events.push(event);
      size += event.size;
      while (events.length > 1 && (events.length > most.events || size > most.characters))
        size -= events.shift()?.size ?? 0;
      return event.id;
    },
    getStreamIdForEventId: async id => after(id).stream,
    async replayEventsAfter(id, { send }) {
      const { stream, later } = after(id);
      if (stream === undefined) throw new RangeError('this event is kept no longer');
      for (const { id: each, message } of later) await send(each, message);
      return stream;
    },
    forget(ids) {
      const over = new Set(
        events.filter(({ message }) => answered(message).some(id => ids.includes(id))).map(({ stream }) => stream),
      );
      const kept = events.filter(({ stream }) => !over.has(stream));
      events.splice(0, events.length, ...kept);
      size = kept.reduce((sum, event) => sum + event.size, 0);
    },
    answersAfter: id => after(id).later.flatMap(({ message }) => answered(message)),
  };
}

function answered(message: JSONRPCMessage): RequestId[] {
  return 'method' in message || message.id === undefined ? [] : [message.id];
}
