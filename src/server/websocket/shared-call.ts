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
