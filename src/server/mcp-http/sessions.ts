import type { EventStore, JSONRPCMessage, McpServer, RequestId, Server } from '@modelcontextprotocol/server';
import { SUPPORTED_PROTOCOL_VERSIONS, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { recordIn } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import { createIdleSessions, type SessionRules } from '../access/idle-sessions.ts';
import type { KeptRoom } from '../access/limits.ts';
import { type Connection, createAnswers } from '../mcp/connection.ts';
import { isId, refusedMessage } from '../mcp/lines.ts';
import type { Era, McpOptions } from '../mcp/mcp.ts';

/** More events than these are forgotten, the oldest first; the newest one stays whatever its size, where all sessions have room for it. */
const limits = { events: 512, characters: 1_048_576 };

/** Characters of the events of all sessions: many clients, or one with many sessions, must not fill the memory. */
export const maxLogged = 134_217_728;

/** What was sent in one session, for a client that lost a stream and comes back for the rest; `room` is shared by all sessions. */
export function createEventLog(room: KeptRoom) {
  const events: { id: string; stream: string; message: JSONRPCMessage; size: number }[] = [];
  let count = 0;
  let size = 0;
  let isOver = false;
  const after = (id: string) => {
    const at = events.findIndex(event => event.id === id);
    const stream = events[at]?.stream;
    return { stream, later: at < 0 ? [] : events.slice(at + 1).filter(event => event.stream === stream) };
  };
  function drop(event = events[0]): boolean {
    if (!event) return false;
    events.splice(events.indexOf(event), 1);
    size -= event.size;
    room.left += event.size;
    return true;
  }

  /** Makes room among one's own; whoever finds none can't come back for this event, but gets it all the same. */
  function hasRoom(more: number): boolean {
    while (more > room.left) if (!drop()) return false;
    return true;
  }

  return {
    /** Characters that are kept. */
    size: () => size,
    /** Drops all of them: the session is over, and keeps nothing any more. */
    close() {
      isOver = true;
      while (drop());
    },
    async storeEvent(stream: string, message: JSONRPCMessage) {
      count += 1;
      const event = { id: String(count), stream, message, size: JSON.stringify(message).length };
      if (isOver || !hasRoom(event.size)) return event.id;
      events.push(event);
      size += event.size;
      room.left -= event.size;
      while (events.length > 1 && (events.length > limits.events || size > limits.characters)) drop();
      return event.id;
    },
    /** The stream that an event belongs to; undefined once it is kept no longer. */
    streamOf: (id: string) => after(id).stream,
    async replayEventsAfter(id: string, { send }: Parameters<EventStore['replayEventsAfter']>[1]) {
      const { stream, later } = after(id);
      if (stream === undefined) throw new RangeError(forgotten);
      for (const { id: each, message } of later) await send(each, message);
      return stream;
    },
    /** Drops the streams in which these requests were answered. */
    forget(ids: readonly RequestId[]) {
      const ended = events.filter(({ message }) => answered(message).some(id => ids.includes(id)));
      const over = new Set(ended.map(({ stream }) => stream));
      for (const event of events.filter(({ stream }) => over.has(stream))) drop(event);
    },
    /** The ids of the requests that were answered among the events behind this one, in its stream. */
    answersAfter: (id: string) => after(id).later.flatMap(({ message }) => answered(message)),
  };
}

const forgotten = 'This event is kept no longer. Send the request again.';

const answered = (message: JSONRPCMessage): RequestId[] =>
  'method' in message || message.id === undefined ? [] : [message.id];

/** Knows which answers reached a client: those whose streams were written to their ends. */
function createArrivals(clock: Pick<Clock, 'monotonic'>) {
  const gone = new AbortController();
  const { onAnswered, arrived } = createAnswers(gone.signal);
  const streams = new Map<RequestId, AbortController>();
  let resumed = 0;
  let resumedAt = Number.NEGATIVE_INFINITY;
  const connection: Connection = {
    gone: gone.signal,
    onAnswered,
    cutOf: id => streams.get(id)?.signal,
    resumedAt: () => (resumed > 0 ? clock.monotonic() : resumedAt),
  };
  return {
    connection,
    /** These requests are answered on one stream; the result tells that it is over, and whether it was written to its end. */
    opened(ids: readonly RequestId[]) {
      const stream = new AbortController();
      for (const id of ids) streams.set(id, stream);
      return (whole: boolean) => {
        for (const id of ids) if (streams.get(id) === stream) streams.delete(id);
        if (!whole) stream.abort();
      };
    },
    /** A stream that was cut is open again; the result tells that it is over. */
    resumed() {
      resumed++;
      return () => {
        resumed--;
        resumedAt = clock.monotonic();
      };
    },
    arrived,
    lose: () => gone.abort(),
  };
}

const requestIds = (body: unknown): RequestId[] =>
  [body].flat().flatMap(message => {
    const { id, method } = recordIn(message);
    return typeof method === 'string' && isId(id) ? [id] : [];
  });

export type ServerOf = (mcp: McpOptions, era: Era) => Server | McpServer;

export interface SessionOptions {
  id: string;
  mcp: Omit<McpOptions, 'connection'>;
  serverOf: ServerOf;
  clock: Pick<Clock, 'after' | 'monotonic'>;
  /** What all sessions may keep of what was sent. */
  room: KeptRoom;
  onClosed(): void;
  onError(error: Error): void;
}

/** What was written may still have been lost on its way: for this long a client can come back for it. */
const resumeMs = 60_000;

/** What the transport calls the stream of messages that belong to no request. */
const ownStream = '_GET_stream';

/** Whether the transport takes a GET: one that it refuses leaves the stream that is there. */
function isTaken({ headers }: Request): boolean {
  const version = headers.get('mcp-protocol-version');
  const isSpoken = version === null || SUPPORTED_PROTOCOL_VERSIONS.includes(version);
  return isSpoken && headers.get('accept')?.includes('text/event-stream') === true;
}

export async function openSession(options: SessionOptions) {
  const { id, mcp, serverOf, clock, room, onClosed, onError } = options;
  const log = createEventLog(room);
  const { connection, opened, resumed, arrived, lose } = createArrivals(clock);
  const server = serverOf({ ...mcp, connection }, 'legacy');
  const unanswered = new Set<RequestId>();
  // Told no streams of events, the transport ends the one that is taken up again: its connection may be dead for minutes unnoticed.
  const eventStore: EventStore = {
    storeEvent(stream, message) {
      for (const each of answered(message)) unanswered.delete(each);
      return log.storeEvent(stream, message);
    },
    replayEventsAfter: log.replayEventsAfter,
  };
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id, eventStore });
  transport.onerror = onError;
  await server.connect(transport);
  const { onclose } = transport;
  transport.onclose = () => {
    // Before the transport ends all requests: a client that is gone has not cancelled them.
    lose();
    onclose?.();
    log.close();
    onClosed();
  };
  return {
    async handle(request: Request, body: unknown) {
      const last = request.method === 'GET' ? request.headers.get('last-event-id') : null;
      const stream = last === null ? ownStream : log.streamOf(last);
      if (stream === undefined)
        return { response: Response.json(refusedMessage(null, -32_000, forgotten), { status: 400 }) };
      const asked = requestIds(body);
      // The one stream that answers nothing lasts for as long as the client likes, and so does what it is taken up by.
      const listens = request.method === 'GET' && stream === ownStream;
      if (listens && isTaken(request)) transport.closeStandaloneSSEStream();
      for (const each of asked) unanswered.add(each);
      const over = last === null || listens ? opened(asked) : resumed();
      const response = await transport.handleRequest(request, { parsedBody: body });
      return {
        response,
        listens,
        onWritten(written: boolean) {
          // One that was taken up again ends without its answers.
          const left = asked.filter(each => unanswered.delete(each));
          const whole = written && left.length === 0;
          over(whole);
          if (!whole) return;
          const answered = last === null ? asked : log.answersAfter(last);
          for (const each of answered) arrived(each);
          clock.after(resumeMs, () => log.forget(answered));
        },
      };
    },
    /** Ends it: calls that run go on without their client, as after any loss. */
    close: () => transport.close(),
  };
}

/** A session is found by its client once it is open. */
export const createSessions = (rules: SessionRules, clock: Pick<Clock, 'after'>) =>
  createIdleSessions<ReturnType<typeof openSession>>(rules, clock, async session => (await session).close());
