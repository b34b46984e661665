import { hash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { Clock, Random } from '../../core/ports.ts';
import type { Principal } from '../../core/tool-host.ts';
import type { KeptRoom } from '../access/limits.ts';
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
  room: KeptRoom;
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

export type FrameSession = ReturnType<typeof createFrameSession>;

/** What a client has under way and what he has not got yet. It outlasts his connections. */
export function createFrameSession(options: FrameSessionOptions) {
  const { clock, admission, random, rules, room } = options;
  const kept = createKeptResults(rules, clock, room);
  const running = new Map<string, Entry>();
  const works = createWorks(options);
  /** Ends that were sent to nobody, oldest first; of those that are kept, only that they are. */
  const untold: { requestId: string; error?: ResultFrame; delivered?: (() => void) | undefined }[] = [];
  let characters = 0;
  let current: Link | undefined;

  /** A request that runs is sent once more: by a client who lost his connection meanwhile, or by mistake. */
  function again(requestId: string, name: string, same: string, entry: Entry) {
    if (entry.same === same && entry.link !== current) {
      entry.link = current;
      return entry.call.report();
    }
    void send(duplicate(requestId, name));
  }

  function begin(requestId: string, same: string, frame: CallFrame, size: number): void {
    const release = admission.hold();
    const call = openFrameCall({
      requestId,
      frame,
      work: works.find(requestId, same, frame),
      clock,
      rules,
      send,
      onEnd: (ended, reply) => {
        running.delete(requestId);
        characters -= size;
        if (!ended.error) kept.keep(requestId, { same, frame: ended });
        void tell(ended, reply?.delivered).then(release);
      },
    });
    running.set(requestId, { same, call, link: current });
    characters += size;
  }

  /** Hands the end of a call to the client, now or when he is back, or has caught up. */
  async function tell(frame: ResultFrame, delivered: (() => void) | undefined): Promise<void> {
    if (current?.hasRoom() && (await send(frame))) return delivered?.();
    untold.push({ requestId: frame.request_id, delivered, ...(frame.error && { error: frame }) });
    if (untold.length > maxUnannounced) untold.shift();
  }

  const send = async (frame: ServerFrame): Promise<boolean> => (await current?.send(frame)) ?? false;

  /** Sends what was kept back, as far as there is room for it. */
  function catchUp(link: Link): void {
    while (current === link && link.hasRoom()) {
      const next = untold.shift();
      if (!next) return;
      const frame = next.error ?? kept.find(next.requestId)?.frame;
      if (frame) void tell(frame, next.delivered);
    }
  }

  return {
    isRunning: (requestId: string) => running.has(requestId),
    /** Goes on over this connection, and sends what came meanwhile. */
    attach(link: Link): void {
      const before = current;
      current = link;
      before?.replace();
      works.resume();
      catchUp(link);
      for (const { call } of running.values()) call.report();
    },
    catchUp,
    isEmpty: () => running.size === 0 && untold.length === 0 && kept.count() === 0,
    forget(): void {
      kept.clear();
      untold.splice(0);
    },
    detach(link: Link): void {
      if (current !== link) return;
      current = undefined;
      works.leave();
    },
    /** `size`: characters of the whole message. */
    call(frame: CallFrame, size: number): void {
      const requestId = frame.request_id ?? random.uuid();
      const same = sameCall(frame);
      const entry = running.get(requestId);
      const found = kept.find(requestId);
      const isFull = running.size >= maxRunning || (characters > 0 && characters + size > rules.maxAsked);
      if (entry) again(requestId, frame.name, same, entry);
      else if (found?.same === same) void send({ ...found.frame, from_cache: true });
      else if (isFull) void send(busy(requestId, frame.name, rules));
      else begin(requestId, same, frame, size);
    },
    cancel: (requestId: string) => running.get(requestId)?.call.cancel(),
  };
}

function duplicate(requestId: string, tool: string): ServerFrame {
  const message = `The request_id "${requestId}" is that of a call that still runs.`;
  const next = 'Wait for its call_tool_res, cancel it, or give this call a different id.';
  const error = ownError({ code: 'DUPLICATE', error_class: 'running', message, tool }, next);
  return { op: 'error', request_id: requestId, message, error };
}

function busy(requestId: string, tool: string, { compatText }: FrameRules): ResultFrame {
  const message = 'This session has too many requests under way, or too large ones.';
  const facts = { code: 'OVER_CAPACITY', error_class: 'over_capacity', message, tool, retry_after: 5 } as const;
  const error = ownError(facts, 'Resend the call once some of them have ended.');
  return { ...resultFrame(requestId, '', compatText), error };
}

/** The calls of the host that a session has under way, and whether its client is there. */
function createWorks(options: FrameSessionOptions) {
  const { rules, principal, scope } = options;
  const works = new Map<string, SharedCall>();
  let presence = new AbortController();
  return {
    /** The one that is under way for the same request, or a new one. */
    find(requestId: string, same: string, frame: CallFrame): SharedCall {
      const name = toolNameOf(frame.name);
      // What streams is told from its beginning to one request alone.
      const isJoined = frame.stream !== true && !rules.notJoined.includes(name);
      const key = isJoined ? same : `${same} ${requestId}`;
      const known = works.get(key);
      if (known) return known;
      const work = openSharedCall(
        { ...options, client: `frames ${scope}` },
        {
          requestId,
          request: { name, arguments: frame.arguments ?? {}, principal, rateLimited: true },
          // What the host knows the call by, so that it is not made again when it is sent again.
          idempotencyKey: `ws ${hash('sha256', JSON.stringify([scope, requestId, same]))}`,
          gone: presence.signal,
          stream: frame.stream === true,
          onOver: () => {
            if (works.get(key) === work) works.delete(key);
          },
        },
      );
      works.set(key, work);
      return work;
    },
    leave: () => presence.abort(),
    /** The client is here, again or still. */
    resume() {
      if (!presence.signal.aborted) return;
      presence = new AbortController();
      for (const work of works.values()) work.rejoin(presence.signal);
    },
  };
}

interface KeptResult {
  /** What was called, as one text: the same request_id for something else is another call. */
  same: string;
  frame: ResultFrame;
}

const maxResults = 1_024;

type KeptRules = Pick<FrameRules, 'resultMs' | 'maxCharacters'>;

/** Finished results of one session by request_id, for a client that did not get them. */
export function createKeptResults(rules: KeptRules, clock: Pick<Clock, 'after'>, room: KeptRoom) {
  // The oldest stands first.
  const kept = new Map<string, KeptResult & { size: number; stopTimer(): void }>();
  let size = 0;

  function drop(requestId: string): void {
    const entry = kept.get(requestId);
    if (!entry) return;
    entry.stopTimer();
    size -= entry.size;
    room.left += entry.size;
    kept.delete(requestId);
  }

  return {
    keep(requestId: string, result: KeptResult) {
      drop(requestId);
      const { outputs, text = '' } = result.frame;
      const more = outputs.reduce((sum, output) => sum + output.text.length, text.length);
      // What cannot be kept costs no other its place.
      if (more > rules.maxCharacters) return;
      for (const oldest of kept.keys()) {
        if (size + more <= rules.maxCharacters && kept.size < maxResults) break;
        drop(oldest);
      }
      if (more > room.left) return;
      room.left -= more;
      size += more;
      const stopTimer = clock.after(rules.resultMs, () => drop(requestId));
      kept.set(requestId, { ...result, size: more, stopTimer });
    },
    find: (requestId: string): KeptResult | undefined => kept.get(requestId),
    count: () => kept.size,
    clear() {
      for (const id of kept.keys()) drop(id);
    },
  };
}

/** Hosts put the server's name behind that of a tool. */
const serverName = /[_-](?:exai[_-]ws|polylogue)$/i;

const toolNameOf = (name: string): string => name.replace(serverName, '') || name;

/** The same for two frames that ask for the same, whatever the order of their keys. */
const sameCall = ({ name, arguments: args, stream }: CallFrame): string =>
  hash('sha256', canonicalJson([toolNameOf(name), args ?? {}, stream === true]));
