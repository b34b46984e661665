import { asError, isAppError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import type { ToolHost, ToolListing } from '../../core/tool-host.ts';
import { type Caller, type Refusal, refusalFor } from '../access/caller.ts';
import type { CallerProduct, RouteServices } from '../http/routes.ts';
import { readJson } from '../mcp/lines.ts';
import type { ResultStore } from './kept-results.ts';
import type { LiveSocket } from './live-socket.ts';
import {
  type ClientFrame,
  clientFrame,
  closeCodes,
  type HelloFrame,
  issueIn,
  ops,
  type RefusedText,
  refusedFrame,
  type ServerFrame,
} from './protocol.ts';
import { FrameSession, type FrameSessionRules, type FrameSessions, type Link } from './session.ts';
import type { WorkOptions } from './shared-call.ts';

/** A connection that has said hello. */
export interface OpenClient {
  parts: Pick<RouteServices, 'clock' | 'gate' | 'tokens' | 'identify'> & {
    sessions: Pick<FrameSessions, 'count'>;
    /** WebSockets that are open. */
    connections(): number;
  };
  host: Pick<ToolHost, 'list'>;
  caller: Caller;
  /** Where it connects from. */
  address: string;
  session: FrameSession;
  send(frame: ServerFrame): Promise<boolean>;
  /** Another token holds for this caller from now on: his other connections have to say it. */
  onRotated(): void;
}

/** Answers one message after the other; none waits for the end of a call. */
export function createFrameHandler(open: OpenClient): (text: string) => void {
  return text => {
    const json = readJson(text);
    const refuse = (frame: RefusedText) => void open.send(refusedFrame(frame));
    if ('refusal' in json) return refuse({ class: json.refusal.class, message: 'invalid_json' });
    const { value } = json;
    const op = isRecord(value) && typeof value.op === 'string' ? value.op : undefined;
    if (!isRecord(value) || op === undefined) return refuse({ class: 'frame', message: 'No "op" in this message.' });
    const id = typeof value.request_id === 'string' ? value.request_id.slice(0, 128) : '';
    if (!ops.has(op)) return refuse({ class: 'op', message: `Unknown op: ${op.slice(0, 64)}`, id });
    const { data: frame, error } = clientFrame.safeParse(value);
    if (frame) return serve(open, frame, text.length);
    const tool = op === 'call_tool' && typeof value.name === 'string' ? value.name.slice(0, 200) : undefined;
    refuse({ class: 'frame', message: issueIn(error), id, tool, isCall: op === 'call_tool' });
  };
}

function serve(open: OpenClient, frame: ClientFrame, size: number): void {
  const answer = answerTo(open, frame);
  if (answer) void open.send(answer);
  if (frame.op === 'call_tool') open.session.call(frame, size);
  if (frame.op === 'cancel') open.session.cancel(frame.request_id);
}

/** What is answered at once; undefined: a call answers by itself. */
function answerTo(open: OpenClient, frame: ClientFrame): ServerFrame | undefined {
  const { parts, session } = open;
  const t = parts.clock.now() / 1_000;
  const id = frame.op === 'hello' || frame.request_id === undefined ? {} : { request_id: frame.request_id };
  switch (frame.op) {
    case 'hello':
      return refusedFrame({ class: 'hello', message: 'This connection has said hello already.' });
    case 'list_tools':
      return { op: 'list_tools_res', ...id, tools: open.host.list().map(shownTool) };
    case 'call_tool':
      return undefined;
    case 'cancel':
      return { op: 'cancelled', request_id: frame.request_id, running: session.isRunning(frame.request_id), t };
    case 'ping':
      return { op: 'pong', ...id, t };
    case 'health':
      return { op: 'health_res', ...id, ok: true, health: healthOf(parts, t) };
    case 'rotate_token':
      return { op: 'rotate_token_res', ...id, ...rotated(open, frame.old, frame.new) };
  }
}

function shownTool({ name, description, inputSchema }: ToolListing) {
  return { name, description, inputSchema };
}

function healthOf({ gate, sessions, connections }: OpenClient['parts'], t: number) {
  const { running, waiting, max } = gate.load();
  return {
    t,
    sessions: sessions.count(),
    connections: connections(),
    global_capacity: max,
    global_inflight: running,
    global_waiting: waiting,
    draining: gate.isShut(),
  };
}

function rotated({ parts, caller, address, onRotated }: OpenClient, old = '', replacement = '') {
  if (old === '' || replacement === '') {
    return {
      ok: false,
      error: 'missing_params',
      message: 'Send the token that holds as "old" and another as "new".',
    } as const;
  }
  const found = parts.identify(`Bearer ${old}`, address);
  const wait = 'status' in found ? found.retryAfterSeconds : undefined;
  // A token for somebody else changes nothing, even where it is one.
  if (parts.tokens.find(old)?.name !== caller.name) {
    const message = '"old" is not the token of this connection.';
    return { ok: false, error: 'unauthorized', message, retry_after_s: wait } as const;
  }
  if (!parts.tokens.rotate(old, replacement)) {
    const message = '"new" has to be another token of 16 to 4,096 printable characters without spaces and commas.';
    return { ok: false, error: 'invalid_token', message } as const;
  }
  onRotated();
  return { ok: true } as const;
}

/** Somebody who said who he is. */
export interface Hello {
  caller: Caller;
  product: CallerProduct;
  frame: HelloFrame;
}

/** What is answered to a bad hello, and the code that the connection is closed with. */
export type BadHello = Pick<Extract<ServerFrame, { op: 'hello_ack' }>, 'error' | 'message' | 'retry_after_s'> & {
  code: number;
};

/** Reads the first message of a connection; `before` is what was said before it. */
export async function readHello(
  parts: Pick<RouteServices, 'tokens' | 'identify' | 'productOf'>,
  before: Pick<FrameClient, 'caller' | 'root' | 'address'>,
  text: string,
): Promise<Hello | BadHello> {
  const json = readJson(text);
  const invalid = { error: 'invalid_hello', code: closeCodes.invalidHello } as const;
  if ('refusal' in json) return { ...invalid, message: json.refusal.message };
  if (!isRecord(json.value) || typeof json.value.op !== 'string') return { ...invalid, message: 'Send a hello first.' };
  if (json.value.op !== 'hello') {
    return { error: 'missing_hello', code: closeCodes.helloMissing, message: 'The first message has to be a hello.' };
  }
  const { data: frame, error } = clientFrame.safeParse(json.value);
  if (frame?.op !== 'hello') return { ...invalid, message: issueIn(error) };
  const caller = callerOf(parts, before, frame);
  if ('status' in caller) return unauthorized(caller);
  try {
    const product = await parts.productOf(caller, frame.root ?? before.root);
    // It may have been replaced meanwhile.
    const now = callerOf(parts, before, frame);
    return 'status' in now ? unauthorized(now) : { caller, frame, product };
  } catch (problem) {
    if (!isAppError(problem)) throw problem;
    return { ...invalid, message: problem.message };
  }
}

function unauthorized({ status, message, next, retryAfterSeconds }: Refusal): BadHello {
  const how = 'Send {"op": "hello", "token": TOKEN} with a token that this server knows.';
  return {
    error: 'unauthorized',
    code: closeCodes.unauthorized,
    message: status === 429 ? `${message} ${next}` : how,
    retry_after_s: retryAfterSeconds,
  };
}

/** Who says hello. Where the connection said it before, the hello may say nothing else. */
function callerOf(
  { tokens, identify }: Pick<RouteServices, 'tokens' | 'identify'>,
  { caller: known, address }: Pick<FrameClient, 'caller' | 'address'>,
  { token }: HelloFrame,
): Caller | Refusal {
  if (known && (tokens.count() === 0 || !token)) return known;
  const identified = identify(token ? `Bearer ${token}` : undefined, address);
  if ('status' in identified || known === undefined || known.name === identified.name) return identified;
  return refusalFor(401, 'token_other', 'The hello has a token of somebody else.', {
    next: 'Send the same one twice.',
  });
}

export interface FrameRules extends FrameSessionRules {
  /** Milliseconds that a client has for its first message. */
  helloMs: number;
}

export interface FrameServerOptions extends RouteServices, Pick<WorkOptions, 'ceilings' | 'kindOf'> {
  rules: FrameRules;
  sessions: FrameSessions;
  store: ResultStore;
  /** WebSockets that are open. */
  connections(): number;
}

export interface FrameClient {
  socket: LiveSocket;
  /** Who it is, when that was said before the first message. */
  caller: Caller | undefined;
  /** Where it connects from. */
  address: string;
  /** The project that it named before the first message, which may name another. */
  root: string | undefined;
  /** What it calls itself. */
  name: string;
  /** Told once who it is; false: he has too many connections. */
  onKnown(caller: Caller): boolean;
  /** Another token holds for this caller from now on: his other connections have to say it. */
  onRotated(caller: Caller): void;
}

/** The frame protocol on one connection: a hello, then any number of requests at once. */
export function serveFrames(options: FrameServerOptions, client: FrameClient): void {
  const { clock, rules, sessions } = options;
  const { socket } = client;
  /** What came while the hello was looked at. */
  const early: string[] = [];
  let phase: 'new' | 'joining' | 'open' = 'new';
  let onFrame = (_text: string) => {};
  const send = (frame: ServerFrame) => socket.send(JSON.stringify(frame));
  const stopWaiting = clock.after(rules.helloMs, () => void socket.close(closeCodes.helloLate, 'no hello in time'));

  async function join(text: string): Promise<void> {
    phase = 'joining';
    stopWaiting();
    const hello = await readHello(options, client, text);
    if ('code' in hello) {
      const { code, ...details } = hello;
      void send({ op: 'hello_ack', ok: false, ...details });
      return void socket.close(code, details.error ?? '');
    }
    const { caller, product } = hello;
    const { address } = client;
    const isWelcome = client.onKnown(caller);
    const entered = isWelcome ? enter(options, client.name, hello) : undefined;
    if (!entered) {
      const message = isWelcome
        ? 'There are too many sessions, in all or of your token. Try again later.'
        : 'Your token has as many connections as one token may have. Close one first.';
      void send({ op: 'hello_ack', ok: false, error: 'over_capacity', message });
      return void socket.close(1013, message);
    }
    const { session, resumed } = entered;
    socket.slowDown(() => secondsFor(options, caller));
    void send({ op: 'hello_ack', ok: true, session_id: session.id, resumed });
    const link: Link = {
      send,
      hasRoom: socket.hasRoom,
      replace: () => void socket.close(1000, 'another connection took this session over'),
    };
    session.attach(link);
    socket.onRoom(() => session.catchUp(link));
    socket.onClose(() => sessions.leave(session, link));
    const onRotated = () => client.onRotated(caller);
    const { host } = product;
    onFrame = createFrameHandler({ parts: options, host, caller, address, session, send, onRotated });
    phase = 'open';
    for (const each of early.splice(0)) onFrame(each);
  }

  socket.onClose(stopWaiting);
  socket.onText(text => {
    if (phase === 'open') onFrame(text);
    else if (phase === 'joining') early.push(text);
    else {
      join(text).catch(error => {
        options.onError(asError(error));
        void socket.close(1011, 'internal error');
      });
    }
  });
}

/** For how long nothing more is read of a caller who sends too much. */
export function secondsFor({ admit }: Pick<RouteServices, 'admit'>, caller: Caller): number | undefined {
  const refusal = admit(caller);
  return refusal && (refusal.retryAfterSeconds ?? 1);
}

const sessionId = /^[A-Za-z0-9_-]{3,64}$/;

function enter(options: FrameServerOptions, client: string, { caller, product, frame }: Hello) {
  const { host, root } = product;
  const wanted = frame.session_id ?? '';
  const id = sessionId.test(wanted) ? wanted : options.random.uuid();
  const principal = { owner: caller.owner, root, client };
  return options.sessions.enter(
    { caller: caller.name, root, id },
    scope => new FrameSession({ ...options, id, scope, host, principal }),
  );
}
