import { asError, isAppError } from '../../core/errors.ts';
import { isRecord, recordIn, textIn } from '../../core/json.ts';
import type { ToolHost } from '../../core/tool-host.ts';
import { type Caller, type Refusal, refusalFor } from '../access/caller.ts';
import type { createIdleSessions } from '../access/idle-sessions.ts';
import type { KeptRoom } from '../access/limits.ts';
import type { RouteServices } from '../http/routes.ts';
import { readJson } from '../mcp/lines.ts';
import type { WorkOptions } from './frame-call.ts';
import type { LiveSocket } from './live-socket.ts';
import type { ClientFrame, FrameRules, RefusedText, ServerFrame } from './protocol.ts';
import { clientFrame, closeCodes, issueIn, ops, refusedFrame } from './protocol.ts';
import { createFrameSession, type FrameSession, type Link } from './session.ts';

export interface FrameServerOptions extends RouteServices, Pick<WorkOptions, 'ceilings' | 'kindOf'> {
  rules: FrameRules;
  sessions: ReturnType<typeof createIdleSessions<FrameSession>>;
  room: KeptRoom;
  /** WebSockets that are open. */
  connections(): number;
}

export interface FrameClient {
  socket: LiveSocket;
  /** Who it is, when that was said before the first message. */
  caller: Caller | undefined;
  address: string;
  /** The project that it named before the first message, which may name another. */
  root: string | undefined;
  name: string;
  /** Told once who it is; false: he has too many connections. */
  onKnown(caller: Caller): boolean;
  /** Another token holds for this caller from now on: his other connections have to say it. */
  onRotated(caller: Caller): void;
}

/** A connection that has said hello. */
interface OpenClient extends Pick<FrameClient, 'address' | 'onRotated'> {
  options: FrameServerOptions;
  caller: Caller;
  host: ToolHost;
  session: FrameSession;
  send(frame: ServerFrame): Promise<boolean>;
}

/** The frame protocol on one connection: a hello, then any number of requests at once. */
export function serveFrames(options: FrameServerOptions, client: FrameClient): void {
  const { clock, rules } = options;
  const { socket } = client;
  /** What came while the hello was looked at; undefined before it. */
  let early: string[] | undefined;
  let open: OpenClient | undefined;
  const send = (frame: ServerFrame) => socket.send(JSON.stringify(frame));
  const stopWaiting = clock.after(rules.helloMs, () => void socket.close(closeCodes.helloLate, 'no hello in time'));

  function refuse(code: number, answer: Partial<ServerFrame & { op: 'hello_ack' }>, reason = answer.error ?? ''): void {
    void send({ op: 'hello_ack', ok: false, ...answer });
    void socket.close(code, reason);
  }

  async function join(text: string): Promise<void> {
    const hello = await readHello(options, client, text);
    if (hello.code !== undefined) return refuse(hello.code, hello.answer);
    const { caller, product } = hello;
    const isWelcome = client.onKnown(caller);
    const entered = isWelcome ? enter(options, client.name, hello) : undefined;
    if (!entered) {
      const message = isWelcome
        ? 'There are too many sessions, in all or of your token. Try again later.'
        : 'Your token has as many connections as one token may have. Close one first.';
      return refuse(1013, { error: 'over_capacity', message }, message);
    }
    const { id, session, resumed, release } = entered;
    socket.slowDown(() => secondsFor(options, caller));
    void send({ op: 'hello_ack', ok: true, session_id: id, resumed });
    const replace = () => void socket.close(1000, 'another connection took this session over');
    const link: Link = { send, hasRoom: socket.hasRoom, replace };
    session.attach(link);
    socket.onRoom(() => session.catchUp(link));
    socket.onClose(() => {
      session.detach(link);
      release(session.isEmpty());
    });
    open = { ...client, options, caller, host: product.host, session, send };
    for (const each of early?.splice(0) ?? []) takeText(open, each);
  }

  socket.onClose(stopWaiting);
  socket.onText(text => {
    if (open) return takeText(open, text);
    if (early) return void early.push(text);
    early = [];
    stopWaiting();
    join(text).catch(error => {
      options.onError(asError(error));
      void socket.close(1011, 'internal error');
    });
  });
}

/** Clients of a newer version of the older server write a call as `tool_call`, with its tool as an object. */
const renamedCall = (value: unknown) =>
  isRecord(value) && value.op === 'tool_call' ? { ...value, op: 'call_tool', name: recordIn(value.tool).name } : value;

/** Answers one message after the other; none waits for the end of a call. */
function takeText(open: OpenClient, text: string) {
  const refuse = (frame: RefusedText) => void open.send(refusedFrame(frame));
  const json = readJson(text);
  if ('refusal' in json) return refuse({ class: json.refusal.class, message: 'invalid_json' });
  const value = renamedCall(json.value);
  const op = isRecord(value) ? value.op : undefined;
  if (!isRecord(value) || typeof op !== 'string')
    return refuse({ class: 'frame', message: 'No "op" in this message.' });
  // A number is none here; its text tells the client which of its messages is meant.
  const { request_id: named } = value;
  const id = (typeof named === 'number' ? `${named}` : textIn(named)).slice(0, 128);
  if (!ops.has(op)) return refuse({ class: 'op', message: `Unknown op: ${op.slice(0, 64)}`, id });
  const { data: frame, error } = clientFrame.safeParse(value);
  if (frame) return serve(open, frame, text.length);
  const tool = op === 'call_tool' && typeof value.name === 'string' ? value.name.slice(0, 200) : undefined;
  refuse({ class: 'frame', message: issueIn(error), id, tool, isCall: op === 'call_tool' });
}

function serve(open: OpenClient, frame: ClientFrame, size: number) {
  const { options, host, session } = open;
  const send = (answer: ServerFrame) => void open.send(answer);
  const t = options.clock.now() / 1_000;
  const id = frame.op === 'hello' || frame.request_id === undefined ? {} : { request_id: frame.request_id };
  switch (frame.op) {
    case 'hello':
      return send(refusedFrame({ class: 'hello', message: 'This connection has said hello already.' }));
    case 'list_tools': {
      const tools = host.list().map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
      return send({ op: 'list_tools_res', ...id, tools });
    }
    case 'call_tool':
      return session.call(frame, size);
    case 'cancel':
      send({ op: 'cancelled', request_id: frame.request_id, running: session.isRunning(frame.request_id), t });
      return session.cancel(frame.request_id);
    case 'ping':
      return send({ op: 'pong', ...id, t });
    case 'health':
      return send({ op: 'health_res', ...id, ok: true, health: healthOf(options, t) });
    case 'rotate_token':
      return send({ op: 'rotate_token_res', ...id, ...rotated(open, frame.old, frame.new) });
  }
}

function healthOf({ admission, sessions, connections }: FrameServerOptions, t: number) {
  const { running, waiting, max } = admission.load();
  return {
    t,
    sessions: sessions.count(),
    connections: connections(),
    global_capacity: max,
    global_inflight: running,
    global_waiting: waiting,
    draining: admission.isShut(),
  };
}

function rotated({ options, caller, address, onRotated }: OpenClient, old = '', replacement = '') {
  const { tokens, identify } = options;
  if (old === '' || replacement === '') {
    const message = 'Send the token that holds as "old" and another as "new".';
    return { ok: false, error: 'missing_params', message } as const;
  }
  const found = identify(`Bearer ${old}`, address);
  const wait = 'status' in found ? found.retryAfterSeconds : undefined;
  // A token for somebody else changes nothing, even where it is one.
  if (tokens.find(old)?.name !== caller.name) {
    const message = '"old" is not the token of this connection.';
    return { ok: false, error: 'unauthorized', message, retry_after_s: wait } as const;
  }
  if (!tokens.rotate(old, replacement)) {
    const message = '"new" has to be another token of 16 to 4,096 printable characters without spaces and commas.';
    return { ok: false, error: 'invalid_token', message } as const;
  }
  onRotated(caller);
  return { ok: true } as const;
}

/** Somebody who said who he is. */
type Hello = Exclude<Awaited<ReturnType<typeof readHello>>, { code: number }>;

/** Reads the first message of a connection: who it is, or what is answered to a bad one, with the code that closes the connection. */
async function readHello(options: FrameServerOptions, client: FrameClient, text: string) {
  const invalid = (message: string) => ({
    code: closeCodes.invalidHello,
    answer: { error: 'invalid_hello', message } as const,
  });
  const json = readJson(text);
  if ('refusal' in json) return invalid(json.refusal.message);
  if (!isRecord(json.value) || typeof json.value.op !== 'string') return invalid('Send a hello first.');
  if (json.value.op !== 'hello') {
    const message = 'The first message has to be a hello.';
    return { code: closeCodes.helloMissing, answer: { error: 'missing_hello', message } as const };
  }
  const { data: frame, error } = clientFrame.safeParse(json.value);
  if (frame?.op !== 'hello') return invalid(issueIn(error));
  const caller = callerOf(options, client, frame.token);
  if ('status' in caller) return unauthorized(caller);
  try {
    const product = await options.productOf(caller, frame.root ?? client.root);
    // It may have been replaced meanwhile.
    const now = callerOf(options, client, frame.token);
    return 'status' in now ? unauthorized(now) : { caller, frame, product };
  } catch (problem) {
    if (!isAppError(problem)) throw problem;
    return invalid(problem.message);
  }
}

function unauthorized({ status, message, next, retryAfterSeconds }: Refusal) {
  const how = 'Send {"op": "hello", "token": TOKEN} with a token that this server knows.';
  const answer = { error: 'unauthorized', message: status === 429 ? `${message} ${next}` : how } as const;
  return { code: closeCodes.unauthorized, answer: { ...answer, retry_after_s: retryAfterSeconds } };
}

/** Who says hello. Where the connection said it before, the hello may say nothing else. */
function callerOf({ tokens, identify }: FrameServerOptions, client: FrameClient, token: string | null | undefined) {
  const { caller: known, address } = client;
  if (known && (tokens.count() === 0 || !token)) return known;
  const identified = identify(token ? `Bearer ${token}` : undefined, address);
  if ('status' in identified || known === undefined || known.name === identified.name) return identified;
  return refusalFor(401, 'token_other', 'The hello has a token of somebody else.', {
    next: 'Send the same one twice.',
  });
}

/** For how long nothing more is read of a caller who sends too much. */
export function secondsFor({ admit }: Pick<RouteServices, 'admit'>, caller: Caller): number | undefined {
  const refusal = admit(caller);
  return refusal && (refusal.retryAfterSeconds ?? 1);
}

const sessionId = /^[A-Za-z0-9_-]{3,64}$/;

/** The session that a hello names, or a new one; undefined: no room for another. */
function enter({ sessions, ...options }: FrameServerOptions, client: string, { caller, product, frame }: Hello) {
  const { host, root } = product;
  const wanted = frame.session_id ?? '';
  const id = sessionId.test(wanted) ? wanted : options.random.uuid();
  // Nobody comes into another caller's, whatever id he names.
  const scope = JSON.stringify([caller.name, root, id]);
  const principal = { owner: caller.owner, root, client };
  const found = sessions.use(scope, caller.name);
  const make = () => createFrameSession({ ...options, scope, host, principal });
  const held = found ?? sessions.add(scope, caller.name, make);
  return typeof held === 'string' ? undefined : { ...held, id, resumed: found !== undefined };
}
