import { type RequestId, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { isRecord } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { Exchange } from '../http/routes.ts';
import { awaiting, type Connection } from '../mcp/connection.ts';
import { createMcpServer, type McpOptions } from '../mcp/mcp.ts';
import type { ResultStore } from '../websocket/kept-results.ts';
import { createEventLog } from './event-log.ts';
import type { ServerOf } from './requests.ts';

/** Knows which answers reached a client: those whose streams were written to their ends. */
function createArrivals() {
  const gone = new AbortController();
  const awaited = new Map<unknown, () => void>();
  const streams = new Map<RequestId, AbortController>();
  const connection: Connection = { ...awaiting(awaited, gone.signal), cutOf: id => streams.get(id)?.signal };
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
    /** The answers to these requests were written. */
    arrived(ids: readonly RequestId[]) {
      if (gone.signal.aborted) return;
      for (const id of ids) {
        awaited.get(id)?.();
        awaited.delete(id);
      }
    },
    /** The client is gone. */
    lose() {
      gone.abort();
      awaited.clear();
    },
  };
}

/** The ids of what a body asks for. */
function requestIds(body: unknown): RequestId[] {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  return messages.flatMap(message => {
    if (!isRecord(message) || typeof message.method !== 'string') return [];
    return typeof message.id === 'string' || typeof message.id === 'number' ? [message.id] : [];
  });
}

/** A 2025 client's session: it lasts over many requests, and over lost streams. */
export interface Session {
  id: string;
  /** Name of the token whose session it is. */
  caller: string;
  handle(request: Request, body: unknown): Promise<Exchange>;
  /** Ends it: calls that run go on without their client, as after any loss. */
  close(): Promise<void>;
}

export interface SessionOptions {
  id: string;
  caller: string;
  mcp: Omit<McpOptions, 'connection' | 'listening'>;
  serverOf: ServerOf | undefined;
  clock: Pick<Clock, 'after'>;
  /** What all sessions may keep of what was sent. */
  room: ResultStore;
  onClosed(): void;
  onError(error: Error): void;
}

/** What was written may still have been lost on its way: for this long a client can come back for it. */
const resumeMs = 60_000;

/** What the transport calls the stream of messages that belong to no request. */
const ownStream = '_GET_stream';

export async function openSession(options: SessionOptions): Promise<Session> {
  const { id, caller, mcp, serverOf = createMcpServer, clock, room, onClosed, onError } = options;
  const log = createEventLog(room);
  const { connection, opened, arrived, lose } = createArrivals();
  const server = serverOf({ ...mcp, connection }, 'legacy');
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id, eventStore: log });
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
    id,
    caller,
    async handle(request, body) {
      const last = request.method === 'GET' ? request.headers.get('last-event-id') : null;
      const asked = requestIds(body);
      // The one stream that answers nothing lasts for as long as the client likes, and so does what it is taken up by.
      const listens =
        request.method === 'GET' && (last === null || (await log.getStreamIdForEventId(last)) === ownStream);
      const over = opened(asked);
      const response = await transport.handleRequest(request, { parsedBody: body });
      return {
        response,
        listens,
        onWritten(whole) {
          over(whole);
          if (!whole) return;
          const answered = last === null ? asked : log.answersAfter(last);
          arrived(answered);
          clock.after(resumeMs, () => log.forget(answered));
        },
      };
    },
    close: () => transport.close(),
  };
}

export interface SessionRules {
  /** Milliseconds without an open request or stream, after which a session ends. */
  idleMs: number;
  /** The most sessions; the caller's own one that was idle longest makes room for a new one. */
  max: number;
  /** Of these, the ones that one token may have at the moment; absent: all of them. */
  perCaller?(): number;
}

interface Entry {
  session: Session;
  uses: number;
  stopTimer(): void;
}

export function createSessions({ idleMs, max, perCaller = () => max }: SessionRules, clock: Pick<Clock, 'after'>) {
  // The one that was idle longest stands first.
  const entries = new Map<string, Entry>();
  // Callers of sessions that are being opened, each as often as he does.
  const opening: string[] = [];

  function forget(id: string): void {
    entries.get(id)?.stopTimer();
    entries.delete(id);
  }

  function rest(entry: Entry): void {
    const { id } = entry.session;
    if (!entries.delete(id)) return;
    entries.set(id, entry);
    entry.stopTimer = clock.after(idleMs, () => void entry.session.close());
  }

  async function makeRoom(caller: string): Promise<'full' | 'share' | undefined> {
    const all = [...entries.values()].map(({ session }) => session.caller).concat(opening);
    const isShare = all.filter(name => name === caller).length > perCaller();
    if (all.length <= max && !isShare) return undefined;
    const idle = [...entries.values()].find(({ session, uses }) => session.caller === caller && uses === 0);
    if (!idle) return isShare ? 'share' : 'full';
    await idle.session.close();
    return undefined;
  }

  return {
    count: () => entries.size,
    /** What is counted as sessions are has as many places. */
    limits: { perCaller, inAll: max },
    /** `full`: there is no room, for all belong to others or are in use. `share`: the caller has all that he may have, in use. */
    async add(caller: string, open: (onClosed: () => void) => Promise<Session>) {
      // Counted before anything is waited for, so that many at once don't become too many.
      opening.push(caller);
      let id: string | undefined;
      try {
        const noRoom = await makeRoom(caller);
        if (noRoom) return noRoom;
        const session = await open(() => id !== undefined && forget(id));
        id = session.id;
        const entry: Entry = { session, uses: 0, stopTimer() {} };
        entries.set(id, entry);
        rest(entry);
        return session;
      } finally {
        opening.splice(opening.indexOf(caller), 1);
      }
    },
    /** Somebody else's session is as unknown as one that never was. */
    find(id: string, caller: string) {
      const session = entries.get(id)?.session;
      return session?.caller === caller ? session : undefined;
    },
    /** Keeps a session from being idle until the result is called. */
    use({ id }: Session) {
      const entry = entries.get(id);
      if (!entry) return () => {};
      entry.uses += 1;
      entry.stopTimer();
      let over = false;
      return () => {
        if (over) return;
        over = true;
        entry.uses -= 1;
        if (entry.uses === 0) rest(entry);
      };
    },
    /** Ends those of these callers: their calls go on without them, as after any loss. */
    async end(callers: ReadonlySet<string>) {
      const own = [...entries.values()].filter(({ session }) => callers.has(session.caller));
      await Promise.all(own.map(({ session }) => session.close()));
    },
    async close() {
      await Promise.all([...entries.values()].map(({ session }) => session.close()));
    },
  };
}

export type Sessions = ReturnType<typeof createSessions>;
