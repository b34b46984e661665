import type { EventStore, JSONRPCMessage, RequestId } from '@modelcontextprotocol/server';
import type { ResultStore } from '../websocket/kept-results.ts';

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
  /** Drops all of them: the session is over, and keeps nothing any more. */
  close(): void;
}

/** More events than these are forgotten, the oldest first; the newest one stays whatever its size, where all sessions have room for it. */
const limits = { events: 512, characters: 1_048_576 };

/** Characters of the events of all sessions: many clients, or one with many sessions, must not fill the memory. */
export const maxLogged = 134_217_728;

/** What was sent in one session, for a client that lost a stream and comes back for the rest; `room` is shared by all sessions. */
export function createEventLog(room: ResultStore): EventLog {
  const events: LoggedEvent[] = [];
  let count = 0;
  let size = 0;
  let isOver = false;
  const after = (id: string) => {
    const at = events.findIndex(event => event.id === id);
    const stream = events[at]?.stream;
    return { stream, later: at < 0 ? [] : events.slice(at + 1).filter(event => event.stream === stream) };
  };
  function drop(): boolean {
    const oldest = events.shift();
    size -= oldest?.size ?? 0;
    room.give(oldest?.size ?? 0);
    return oldest !== undefined;
  }

  /** Makes room among one's own; whoever finds none can't come back for this event, but gets it all the same. */
  function takes(more: number): boolean {
    while (!room.take(more)) if (!drop()) return false;
    return true;
  }

  return {
    size: () => size,
    close() {
      isOver = true;
      while (drop());
    },
    async storeEvent(stream, message) {
      count += 1;
      const event = { id: String(count), stream, message, size: JSON.stringify(message).length };
      if (isOver || !takes(event.size)) return event.id;
      events.push(event);
      size += event.size;
      while (events.length > 1 && (events.length > limits.events || size > limits.characters)) drop();
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
      const before = size;
      size = kept.reduce((sum, event) => sum + event.size, 0);
      room.give(before - size);
    },
    answersAfter: id => after(id).later.flatMap(({ message }) => answered(message)),
  };
}

function answered(message: JSONRPCMessage): RequestId[] {
  return 'method' in message || message.id === undefined ? [] : [message.id];
}
