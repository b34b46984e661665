import { asError, cancelledError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { CallKind, ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';
import type { Gate } from '../access/admission.ts';
import type { CallFrame, FrameError, FrameRules, ResultFrame, ServerFrame } from './protocol.ts';
import { errorOfReply, ownError } from './protocol.ts';

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
    const frame = { op: 'progress', request_id: requestId, name, t: clock.now() / 1_000, note: work.note } as const;
    void send(frame).then(() => {
      isTaken = true;
    });
  }

  function acknowledge(): void {
    if (endsAt === undefined) return;
    const timeout = Math.round((endsAt - clock.monotonic()) / 10) / 100;
    void send({ op: 'call_tool_ack', request_id: requestId, accepted: true, timeout, name });
  }

  function end(outcome: { reply: ToolReply } | { error: FrameError; reason: Error }): void {
    if (isOver) return;
    isOver = true;
    stopCeiling();
    stopProgress();
    if ('reason' in outcome) leave(outcome.reason);
    const reply = 'reply' in outcome ? outcome.reply : undefined;
    const error = 'error' in outcome ? outcome.error : undefined;
    const failure = error ?? (reply?.isError ? errorOfReply(reply, name) : undefined);
    const times = { receivedAt, heldAt: held?.at, endedAt: clock.monotonic() };
    const text = reply?.text ?? '';
    const frame: ResultFrame = {
      op: 'call_tool_res',
      request_id: requestId,
      outputs: [{ type: 'text', text }],
      ...(rules.compatText && { text }),
      ...(failure && { error: failure }),
      metadata: { latency_metrics: latencyOf(times, reply) },
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

/** After a chunk the next words are gathered for so many milliseconds, or until they are so many characters. */
const gatherMs = 40;
const gatherLength = 4_096;

/** Sends an answer on as it is written: the first words at once, then one chunk at a time with all that came since the last one. */
function streamWriter({ frame: { stream }, requestId, clock, send }: FrameCallOptions) {
  let text = '';
  let isSending = false;
  let stopGathering: (() => void) | undefined;
  let then: (() => void) | undefined;

  function flush(): void {
    if (isSending || (stopGathering && !then && text.length < gatherLength)) return;
    stopGathering?.();
    stopGathering = undefined;
    if (text === '') {
      then?.();
      return;
    }
    isSending = true;
    stopGathering = clock.after(gatherMs, () => {
      stopGathering = undefined;
      flush();
    });
    const chunk = text;
    text = '';
    void send({ op: 'stream_chunk', request_id: requestId, chunk, t: clock.now() / 1_000 }).then(() => {
      isSending = false;
      flush();
    });
  }

  return {
    write(delta: string) {
      if (!stream) return;
      text += delta;
      flush();
    },
    /** `after` comes behind the last chunk. */
    end(whole: boolean, after: () => void) {
      if (!stream) return after();
      then = () => {
        if (whole) void send({ op: 'stream_complete', request_id: requestId, t: clock.now() / 1_000 });
        after();
      };
      flush();
    },
  };
}

function latencyOf(times: { receivedAt: number; heldAt: number | undefined; endedAt: number }, reply?: ToolReply) {
  const { receivedAt, heldAt = times.endedAt, endedAt } = times;
  const facts = isRecord(reply?.document.metadata) ? reply.document.metadata : {};
  const { provider_used: provider, queue_ms: queueMs } = facts;
  // A reply says so only where there was a wait.
  const queued = typeof queueMs === 'number' ? queueMs : 0;
  const processing = endedAt - heldAt - queued;
  return {
    latency_ms: Math.round(endedAt - receivedAt),
    global_sem_wait_ms: Math.round(heldAt - receivedAt),
    ...(typeof provider === 'string' && { provider_sem_wait_ms: Math.round(queued) }),
    processing_ms: Math.max(0, Math.round(processing)),
    ...(typeof provider === 'string' && { provider_name: provider }),
  };
}

export interface WorkOptions {
  host: ToolHost;
  gate: Gate;
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
export class SharedCall {
  /** The request that it was begun for. */
  readonly requestId: string;
  /** What it is at. */
  note = 'waiting for a place';
  readonly #options: WorkOptions;
  readonly #asked: WorkRequest;
  readonly #stop = new AbortController();
  readonly #listeners = new Set<WorkListener>();
  #gone: AbortSignal;
  #held: Held | undefined;
  #isOver = false;

  constructor(options: WorkOptions, asked: WorkRequest) {
    this.#options = options;
    this.#asked = asked;
    this.#gone = asked.gone;
    this.requestId = asked.requestId;
    const { gate, host, client } = options;
    const call: ToolHost['call'] = (request, signal) => this.#begin(request, signal);
    // Not at once: who starts it must be able to join before anything is told.
    queueMicrotask(() => this.#attend(gate.before({ ...host, call }, client).call));
  }

  /** The result leaves it again; when nobody is left, it is ended with the reason. */
  join(listener: WorkListener): (reason: Error) => void {
    this.#listeners.add(listener);
    if (this.#held) listener.onHeld(this.#held);
    return reason => {
      if (!this.#listeners.delete(listener) || this.#listeners.size > 0 || this.#isOver) return;
      this.#isOver = true;
      this.#asked.onOver();
      this.#stop.abort(reason);
    };
  }

  /** Goes on for a client that was gone and is here again. */
  rejoin(gone: AbortSignal): void {
    this.#gone = gone;
    // What still waits for its place is known by its place in the line alone.
    if (this.#held && !this.#isOver) this.#attend(this.#options.host.call);
  }

  async #begin(request: ToolRequest, signal: AbortSignal): Promise<ToolReply> {
    const { ceilings, kindOf, clock, host } = this.#options;
    const ceilingMs = ceilings[await kindOf(request)];
    this.#held = { at: clock.monotonic(), ceilingMs };
    this.note = 'working';
    for (const each of this.#listeners) each.onHeld(this.#held);
    // The client may have gone and come back while it waited.
    return host.call({ ...request, session: this.#session() }, signal);
  }

  #session() {
    return { gone: this.#gone, idempotencyKey: this.#asked.idempotencyKey };
  }

  #attend(call: ToolHost['call']): void {
    const request: ToolRequest = {
      ...this.#asked.request,
      session: this.#session(),
      onProgress: ({ message }) => {
        this.note = message;
      },
      ...(this.#asked.stream && {
        onText: delta => {
          for (const each of this.#listeners) each.onText(delta);
        },
      }),
    };
    // Whoever came back while it runs is not behind the gate any more.
    call(request, AbortSignal.any([this.#stop.signal, this.#options.gate.ended])).then(
      reply => this.#over(reply),
      error => {
        this.#options.onError(asError(error));
        this.#over(broken);
      },
    );
  }

  #over(reply: ToolReply): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#asked.onOver();
    for (const each of this.#listeners) each.onReply(reply);
  }
}

const broken: ToolReply = {
  isError: true,
  document: {
    status: 'error',
    error: { code: 'INTERNAL_SERVER_ERROR', class: 'bug', message: 'Internal error in this server.' },
  },
  text: 'Internal error in this server.',
};
