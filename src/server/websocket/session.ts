import { hash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { Clock, Random } from '../../core/ports.ts';
import type { Principal } from '../../core/tool-host.ts';
import type { ResultStore } from '../access/limits.ts';
import { openFrameCall, openSharedCall, type SharedCall, type WorkOptions } from './frame-call.ts';
import type { CallFrame, FrameRules, ResultFrame, ServerFrame } from './protocol.ts';
import { ownError, resultFrame } from './protocol.ts';

export interface FrameSessionOptions extends Omit<WorkOptions, 'client' | 'clock'> {
  /** Names it among all sessions of all callers. */
  scope: string;
  principal: Principal;
  rules: FrameRules;
  clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
  random: Pick<Random, 'uuid'>;
  /** What the results of all sessions share. */
  store: ResultStore;
}

/** The connection that a session is on at the moment. */
export interface Link {
  /** Resolves once it was handed to the system; false: the connection ended before. Never rejects. */
  send(frame: ServerFrame): Promise<boolean>;
  /** Whether the client keeps up; results are kept back otherwise. */
  hasRoom(): boolean;
  /** Another connection has taken the session over. */
  replace(): void;
}

interface Entry {
  same: string;
  call: ReturnType<typeof openFrameCall>;
  /** The connection on which it was last asked for. */
  link: Link | undefined;
}

/** Requests of one session at the same time; those that wait for their turn count too. */
const maxRunning = 512;

/** Ends of calls that are told to a client who comes back. */
const maxUnannounced = 512;

/** What a client has under way and what he has not got yet. It outlasts his connections. */
export class FrameSession {
  readonly #options: FrameSessionOptions;
  readonly #kept;
  readonly #running = new Map<string, Entry>();
  readonly #works = new Map<string, SharedCall>();
  /** Ends that were sent to nobody, oldest first; of those that are kept, only that they are. */
  readonly #untold: { requestId: string; error?: ResultFrame; delivered?: (() => void) | undefined }[] = [];
  #characters = 0;
  #link: Link | undefined;
  #presence = new AbortController();

  constructor(options: FrameSessionOptions) {
    this.#options = options;
    this.#kept = createKeptResults(options.rules, options.clock, options.store);
  }

  isRunning(requestId: string): boolean {
    return this.#running.has(requestId);
  }

  /** Goes on over this connection, and sends what came meanwhile. */
  attach(link: Link): void {
    const before = this.#link;
    this.#link = link;
    before?.replace();
    if (this.#presence.signal.aborted) {
      this.#presence = new AbortController();
      for (const work of this.#works.values()) work.rejoin(this.#presence.signal);
    }
    this.catchUp(link);
    for (const { call } of this.#running.values()) call.report();
  }

  /** Sends what was kept back, as far as there is room for it. */
  catchUp(link: Link): void {
    while (this.#link === link && link.hasRoom()) {
      const next = this.#untold.shift();
      if (!next) return;
      const frame = next.error ?? this.#kept.find(next.requestId)?.frame;
      if (frame) void this.#tell(frame, next.delivered);
    }
  }

  /** Nothing runs, and nothing is kept. */
  isEmpty(): boolean {
    return this.#running.size === 0 && this.#untold.length === 0 && this.#kept.count() === 0;
  }

  /** Lets go of what is kept. */
  forget(): void {
    this.#kept.clear();
    this.#untold.splice(0);
  }

  /** The connection is over. */
  detach(link: Link): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    this.#presence.abort();
  }

  /** `size`: characters of the whole message. */
  call(frame: CallFrame, size: number): void {
    const requestId = frame.request_id ?? this.#options.random.uuid();
    const same = sameCall(frame);
    const entry = this.#running.get(requestId);
    const kept = this.#kept.find(requestId);
    if (entry) this.#again(requestId, frame.name, same, entry);
    else if (kept?.same === same) void this.#send({ ...kept.frame, from_cache: true });
    else if (this.#isFull(size)) void this.#send(this.#busy(requestId, frame.name));
    else this.#begin(requestId, same, { frame, size });
  }

  cancel(requestId: string): void {
    this.#running.get(requestId)?.call.cancel();
  }

  /** A request that runs is sent once more: by a client who lost his connection meanwhile, or by mistake. */
  #again(requestId: string, name: string, same: string, entry: Entry) {
    if (entry.same === same && entry.link !== this.#link) {
      entry.link = this.#link;
      return entry.call.report();
    }
    const message = `The request_id "${requestId}" is that of a call that still runs.`;
    const next = 'Wait for its call_tool_res, cancel it, or give this call a different id.';
    const error = ownError({ code: 'DUPLICATE', error_class: 'running', message, tool: name }, next);
    void this.#send({ op: 'error', request_id: requestId, message, error });
  }

  #isFull(size: number): boolean {
    const isTooMuch = this.#characters > 0 && this.#characters + size > this.#options.rules.maxAsked;
    return this.#running.size >= maxRunning || isTooMuch;
  }

  #begin(requestId: string, same: string, { frame, size }: { frame: CallFrame; size: number }): void {
    const { clock, rules, gate } = this.#options;
    const release = gate.hold();
    const call = openFrameCall({
      requestId,
      frame,
      work: this.#workFor(requestId, same, frame),
      clock,
      rules,
      send: answer => this.#send(answer),
      onEnd: (ended, reply) => {
        this.#running.delete(requestId);
        this.#characters -= size;
        if (!ended.error) this.#kept.keep(requestId, { same, frame: ended });
        void this.#tell(ended, reply?.delivered).then(release);
      },
    });
    this.#running.set(requestId, { same, call, link: this.#link });
    this.#characters += size;
  }

  #workFor(requestId: string, same: string, frame: CallFrame): SharedCall {
    const { rules, principal, scope } = this.#options;
    const name = toolNameOf(frame.name);
    // What streams is told from its beginning to one request alone.
    const isJoined = frame.stream !== true && !rules.notJoined.includes(name);
    const key = isJoined ? same : `${same} ${requestId}`;
    const running = this.#works.get(key);
    if (running) return running;
    const work = openSharedCall(
      { ...this.#options, client: `frames ${scope}` },
      {
        requestId,
        request: { name, arguments: frame.arguments ?? {}, principal, rateLimited: true },
        // What the host knows the call by, so that it is not made again when it is sent again.
        idempotencyKey: `ws ${hash('sha256', JSON.stringify([scope, requestId, same]))}`,
        gone: this.#presence.signal,
        stream: frame.stream === true,
        onOver: () => {
          if (this.#works.get(key) === work) this.#works.delete(key);
        },
      },
    );
    this.#works.set(key, work);
    return work;
  }

  /** Hands the end of a call to the client, now or when he is back, or has caught up. */
  async #tell(frame: ResultFrame, delivered: (() => void) | undefined): Promise<void> {
    if (this.#link?.hasRoom() && (await this.#send(frame))) return delivered?.();
    this.#untold.push({ requestId: frame.request_id, delivered, ...(frame.error && { error: frame }) });
    if (this.#untold.length > maxUnannounced) this.#untold.shift();
  }

  async #send(frame: ServerFrame): Promise<boolean> {
    return (await this.#link?.send(frame)) ?? false;
  }

  #busy(requestId: string, tool: string): ResultFrame {
    const message = 'This session has too many requests under way, or too large ones.';
    const facts = { code: 'OVER_CAPACITY', error_class: 'over_capacity', message, tool, retry_after: 5 } as const;
    const error = ownError(facts, 'Resend the call once some of them have ended.');
    return { ...resultFrame(requestId, '', this.#options.rules.compatText), error };
  }
}

interface KeptResult {
  /** What was called, as one text: the same request_id for something else is another call. */
  same: string;
  frame: ResultFrame;
}

const maxResults = 1_024;

type KeptRules = Pick<FrameRules, 'resultMs' | 'maxCharacters'>;

/** Finished results of one session by request_id, for a client that did not get them. */
export function createKeptResults(rules: KeptRules, clock: Pick<Clock, 'monotonic' | 'after'>, store: ResultStore) {
  // The oldest stands first.
  const kept = new Map<string, KeptResult & { size: number; until: number }>();
  let size = 0;
  let stopTimer: (() => void) | undefined;

  function drop(requestId: string): void {
    const entry = kept.get(requestId);
    if (!entry) return;
    size -= entry.size;
    store.give(entry.size);
    kept.delete(requestId);
  }

  /** Drops what is too old, and the oldest until `more` characters have room; then waits for the next to be too old. */
  function tidy(more = 0): void {
    const now = clock.monotonic();
    for (const [id, { until }] of kept) {
      if (until > now && size + more <= rules.maxCharacters && kept.size <= maxResults) break;
      drop(id);
    }
    stopTimer?.();
    const [oldest] = kept.values();
    stopTimer = oldest && clock.after(oldest.until - now, tidy);
  }

  return {
    keep(requestId: string, result: KeptResult) {
      drop(requestId);
      const { outputs, text = '' } = result.frame;
      const more = outputs.reduce((sum, output) => sum + output.text.length, text.length);
      tidy(more);
      if (more > rules.maxCharacters || !store.take(more)) return;
      size += more;
      kept.set(requestId, { ...result, size: more, until: clock.monotonic() + rules.resultMs });
      tidy();
    },
    find: (requestId: string): KeptResult | undefined => kept.get(requestId),
    count: () => kept.size,
    clear() {
      for (const id of [...kept.keys()]) drop(id);
      tidy();
    },
  };
}

/** Hosts put the server's name behind that of a tool. */
const serverName = /[_-](?:exai[_-]ws|polylogue)$/i;

const toolNameOf = (name: string): string => name.replace(serverName, '') || name;

/** The same for two frames that ask for the same, whatever the order of their keys. */
const sameCall = ({ name, arguments: args, stream }: CallFrame): string =>
  hash('sha256', canonicalJson([toolNameOf(name), args ?? {}, stream === true]));
