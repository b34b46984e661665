import { gatherText, onAbort } from '../../core/concurrency.ts';
import { asError, cancelledError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { CallKind, ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';
import type { Admission } from '../access/admission.ts';
import type { CallFrame, FrameError, FrameRules, ResultFrame, ServerFrame } from './protocol.ts';
import { errorOfReply, latencyOf, ownError, resultFrame } from './protocol.ts';

export interface FrameCallOptions {
  requestId: string;
  /** What was asked, as the client wrote it; `timeout` counts from when the work has its place. */
  frame: CallFrame;
  work: SharedCall;
  clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
  rules: FrameRules;
  /** Resolves once the client took it, or is gone. */
  send(frame: ServerFrame): Promise<unknown>;
  /** Called once, with the end of it; `reply` where the host gave one that succeeded. */
  onEnd(frame: ResultFrame, reply?: ToolReply): void;
}

/** One request_id while it runs. */
export function openFrameCall(options: FrameCallOptions) {
  const { requestId, frame: asked, work, clock, rules, send } = options;
  const { name } = asked;
  const receivedAt = clock.monotonic();
  const joined = work.requestId !== requestId;
  const writer = streamWriter(options);
  let held: Held | undefined;
  let endsAt: number | undefined;
  let stopCeiling = () => {};
  let stopProgress = () => {};
  let isOver = false;
  let isTaken = true;

  function sendProgress(): void {
    stopProgress();
    stopProgress = clock.after(rules.progressMs, sendProgress);
    // A client that has not taken the last one needs no other.
    if (!isTaken) return;
    isTaken = false;
    const frame = { op: 'progress', request_id: requestId, name, t: clock.now() / 1_000, note: work.note() } as const;
    void send(frame).then(() => {
      isTaken = true;
    });
  }

  function acknowledge(): void {
    if (endsAt === undefined) return;
    const timeout = Math.round((endsAt - clock.monotonic()) / 10) / 100;
    void send({ op: 'call_tool_ack', request_id: requestId, accepted: true, timeout, name });
  }

  function end({ reply, error, reason }: { reply?: ToolReply; error?: FrameError; reason?: Error }): void {
    if (isOver) return;
    isOver = true;
    stopCeiling();
    stopProgress();
    if (reason) leave(reason);
    const failure = error ?? (reply?.isError ? errorOfReply(reply, name) : undefined);
    const endedAt = clock.monotonic();
    const frame: ResultFrame = {
      ...resultFrame(requestId, reply?.text ?? '', rules.compatText),
      ...(failure && { error: failure }),
      metadata: { latency_metrics: latencyOf(receivedAt, held?.at ?? endedAt, endedAt, reply) },
      ...(joined && { from_inflight: work.requestId }),
    };
    writer.end(failure === undefined, () => options.onEnd(frame, failure ? undefined : reply));
  }

  sendProgress();
  const leave = work.join({
    onHeld(admitted) {
      held = admitted;
      const seconds = asked.timeout || admitted.ceilingMs / 1_000;
      const ms = seconds * 1_000;
      endsAt = clock.monotonic() + ms;
      acknowledge();
      stopCeiling = clock.after(ms, () => {
        const reason = cancelledError(`The call took longer than ${seconds} s.`);
        const message = `The call took longer than ${seconds} s and was ended.`;
        const next = 'Ask for less at once, or send "timeout" (seconds) with the call.';
        end({ error: ownError({ code: 'TIMEOUT', error_class: 'ceiling', message, tool: name }, next), reason });
      });
    },
    onText: writer.write,
    onReply: reply => end({ reply }),
  });
  return {
    /** Tells at once how it stands, for a client that comes back or asks again. */
    report() {
      acknowledge();
      sendProgress();
    },
    cancel() {
      const next = 'Resend the call if you still need it.';
      const facts = { code: 'CANCELLED', error_class: 'cancelled', message: 'The call was cancelled.' } as const;
      end({ error: ownError({ ...facts, tool: name }, next), reason: cancelledError() });
    },
  };
}

/** Sends an answer on as it is written, where the client asked for that. */
function streamWriter({ frame: { stream }, requestId, clock, send }: FrameCallOptions) {
  const told = <Op extends string>(op: Op) => ({ op, request_id: requestId, t: clock.now() / 1_000 });
  const gathered = gatherText(clock, chunk => send({ ...told('stream_chunk'), chunk }));
  return {
    write: (delta: string) => stream && gathered.write(delta),
    /** `after` comes behind the last chunk. */
    end(whole: boolean, after: () => void) {
      if (!stream) return after();
      gathered.end(() => {
        if (whole) void send(told('stream_complete'));
        after();
      });
    },
  };
}

export interface WorkOptions {
  host: ToolHost;
  admission: Admission;
  /** Whose share of the server's places it takes. */
  client: string;
  /** Milliseconds that a call may run, by what it is expected to be. */
  ceilings: Readonly<Record<CallKind, number>>;
  /** Never rejects. */
  kindOf(request: ToolRequest): Promise<CallKind>;
  clock: Pick<Clock, 'monotonic'>;
  onError(error: Error): void;
}

/** The work has its place and begins. */
interface Held {
  /** By the monotonic clock. */
  at: number;
  ceilingMs: number;
}

interface WorkListener {
  onHeld(held: Held): void;
  onText(delta: string): void;
  onReply(reply: ToolReply): void;
}

interface WorkRequest {
  requestId: string;
  request: Omit<ToolRequest, 'session'>;
  /** Names this call to the host, now and when it comes again. */
  idempotencyKey: string;
  /** Aborted when the client is gone. */
  gone: AbortSignal;
  stream: boolean;
  onOver(): void;
}

/** One call of the host, for all requests of a session that ask for the same at the same time. */
export type SharedCall = ReturnType<typeof openSharedCall>;

export function openSharedCall(options: WorkOptions, asked: WorkRequest) {
  const { host, admission, client, ceilings, kindOf, clock, onError } = options;
  const { requestId, request, idempotencyKey, stream, onOver } = asked;
  const stop = new AbortController();
  const listeners = new Set<WorkListener>();
  let { gone } = asked;
  let note = 'waiting for a place';
  let held: Held | undefined;
  let isOver = false;

  const begin: ToolHost['call'] = async (request, signal) => {
    const ceilingMs = ceilings[await kindOf(request)];
    held = { at: clock.monotonic(), ceilingMs };
    // Also once somebody who came back for it is not among the calls of the admission.
    onAbort(signal, () => stop.abort(signal.reason));
    note = 'working';
    for (const each of listeners) each.onHeld(held);
    // The client may have gone and come back while it waited.
    return host.call({ ...request, session: { gone, idempotencyKey } }, signal);
  };

  function attend(call: ToolHost['call']): void {
    const attended: ToolRequest = {
      ...request,
      session: { gone, idempotencyKey },
      onProgress: ({ message }) => {
        note = message;
      },
      ...(stream && {
        onText: delta => {
          for (const each of listeners) each.onText(delta);
        },
      }),
    };
    // Whoever came back while it runs is not among the calls of the admission any more.
    call(attended, stop.signal).then(over, error => {
      onError(asError(error));
      over(broken);
    });
  }

  function over(reply: ToolReply): void {
    if (isOver) return;
    isOver = true;
    onOver();
    for (const each of listeners) each.onReply(reply);
  }

  // Not at once: who starts it must be able to join before anything is told.
  queueMicrotask(() => attend(admission.before({ ...host, call: begin }, client).call));
  return {
    /** The request that it was begun for. */
    requestId,
    note: () => note,
    /** The result leaves it again; when nobody is left, it is ended with the reason. */
    join(listener: WorkListener) {
      listeners.add(listener);
      if (held) listener.onHeld(held);
      return (reason: Error) => {
        if (!listeners.delete(listener) || listeners.size > 0 || isOver) return;
        isOver = true;
        onOver();
        stop.abort(reason);
      };
    },
    /** Goes on for a client that was gone and is here again. */
    rejoin(goneNow: AbortSignal) {
      gone = goneNow;
      // What still waits for its place is known by its place in the line alone.
      if (held && !isOver) attend(host.call);
    },
  };
}

const broken: ToolReply = {
  isError: true,
  document: {
    status: 'error',
    error: { code: 'INTERNAL_SERVER_ERROR', class: 'bug', message: 'Internal error in this server.' },
  },
  text: 'Internal error in this server.',
};
