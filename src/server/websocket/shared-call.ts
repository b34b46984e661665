import { asError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { CallKind, ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';
import type { Gate } from '../access/admission.ts';

/** Milliseconds that a call may run, by what it is expected to be. */
export type Ceilings = Readonly<Record<CallKind, number>>;

export interface WorkOptions {
  host: ToolHost;
  gate: Gate;
  /** Whose share of the server's places it takes. */
  client: string;
  ceilings: Ceilings;
  /** Never rejects. */
  kindOf(request: ToolRequest): Promise<CallKind>;
  clock: Pick<Clock, 'monotonic'>;
  onError(error: Error): void;
}

/** The work has its place and begins. */
export interface Held {
  /** By the monotonic clock. */
  at: number;
  ceilingMs: number;
}

export interface WorkListener {
  onHeld(held: Held): void;
  onText(delta: string): void;
  onReply(reply: ToolReply): void;
}

/** One call of the host, for all requests of a session that ask for the same at the same time. */
export interface Work {
  /** The request that it was begun for. */
  requestId: string;
  /** What it is at. */
  note(): string;
  /** The result leaves it again; when nobody is left, it is ended with the reason. */
  join(listener: WorkListener): (reason: Error) => void;
  /** Goes on for a client that was gone and is here again. */
  rejoin(gone: AbortSignal): void;
}

export interface WorkRequest {
  requestId: string;
  request: Omit<ToolRequest, 'session'>;
  /** Names this call to the host, now and when it comes again. */
  idempotencyKey: string;
  /** Aborted when the client is gone. */
  gone: AbortSignal;
  stream: boolean;
  onOver(): void;
}

export function startWork(options: WorkOptions, asked: WorkRequest): Work {
  const { host, gate, client, ceilings, kindOf, clock } = options;
  const stop = new AbortController();
  const listeners = new Set<WorkListener>();
  let note = 'waiting for a place';
  let held: Held | undefined;
  let isOver = false;
  let { gone } = asked;
  const session = () => ({ gone, idempotencyKey: asked.idempotencyKey });
  const begin: ToolHost['call'] = async (request, signal) => {
    const ceilingMs = ceilings[await kindOf(request)];
    held = { at: clock.monotonic(), ceilingMs };
    note = 'working';
    for (const each of listeners) each.onHeld(held);
    // The client may have gone and come back while it waited.
    return host.call({ ...request, session: session() }, signal);
  };

  function over(reply: ToolReply): void {
    if (isOver) return;
    isOver = true;
    asked.onOver();
    for (const each of listeners) each.onReply(reply);
  }

  function attend(call: ToolHost['call']): void {
    const request: ToolRequest = {
      ...asked.request,
      session: session(),
      onProgress: ({ message }) => {
        note = message;
      },
      ...(asked.stream && {
        onText: delta => {
          for (const each of listeners) each.onText(delta);
        },
      }),
    };
    call(request, stop.signal).then(over, error => {
      options.onError(asError(error));
      over(broken);
    });
  }

  // Not at once: who starts it must be able to join before anything is told.
  queueMicrotask(() => attend(gate.before({ ...host, call: begin }, client).call));
  return {
    requestId: asked.requestId,
    note: () => note,
    join(listener) {
      listeners.add(listener);
      if (held) listener.onHeld(held);
      return reason => {
        if (!listeners.delete(listener) || listeners.size > 0 || isOver) return;
        isOver = true;
        asked.onOver();
        stop.abort(reason);
      };
    },
    rejoin(signal) {
      gone = signal;
      // What still waits for its place is known by its place in the line alone.
      if (held && !isOver) attend(host.call);
    },
  };
}

const broken: ToolReply = {
  isError: true,
  document: {
    status: 'error',
    error: { code: 'INTERNAL_SERVER_ERROR', class: 'bug', message: 'Something went wrong in this server itself.' },
  },
  text: 'Something went wrong in this server itself.',
};
