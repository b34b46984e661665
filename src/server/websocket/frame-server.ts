import type { Caller } from '../access/caller.ts';
import type { DoorParts } from '../http/routes.ts';
import { createFrameHandler } from '../ws/frames/frame-handler.ts';
import { type Hello, readHello } from '../ws/frames/hello.ts';
import type { FrameSessions } from '../ws/frames/sessions.ts';
import type { ResultStore } from './kept-results.ts';
import type { LiveSocket } from './live-socket.ts';
import { closeCodes, type ServerFrame } from './protocol.ts';
import { createFrameSession, type FrameSessionRules, type Link } from './session.ts';
import type { WorkOptions } from './work.ts';

export interface FrameRules extends FrameSessionRules {
  /** Milliseconds that a client has for its first message. */
  helloMs: number;
}

export interface FrameDoorOptions extends DoorParts, Pick<WorkOptions, 'ceilings' | 'kindOf'> {
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
export function serveFrames(options: FrameDoorOptions, client: FrameClient): void {
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
      const { code, ...told } = hello;
      void send({ op: 'hello_ack', ok: false, ...told });
      return void socket.close(code, told.error ?? '');
    }
    const { caller, product } = hello;
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
    socket.slowDown(() => {
      const refusal = options.admit(caller);
      return refusal && (refusal.retryAfterSeconds ?? 1);
    });
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
    onFrame = createFrameHandler({ parts: options, host: product.host, caller, session, send, onRotated });
    phase = 'open';
    for (const each of early.splice(0)) onFrame(each);
  }

  socket.onClose(stopWaiting);
  socket.onText(text => {
    if (phase === 'open') onFrame(text);
    else if (phase === 'joining') early.push(text);
    else {
      join(text).catch(error => {
        options.onError(error instanceof Error ? error : new Error(String(error)));
        void socket.close(1011, 'internal error');
      });
    }
  });
}

const sessionId = /^[A-Za-z0-9_-]{3,64}$/;

function enter(options: FrameDoorOptions, client: string, { caller, product, frame }: Hello) {
  const { host, root } = product;
  const wanted = frame.session_id ?? '';
  const id = sessionId.test(wanted) ? wanted : options.random.uuid();
  const principal = { owner: caller.owner, root, client };
  return options.sessions.enter({ caller: caller.name, root, id }, scope =>
    createFrameSession({ ...options, id, scope, host, principal }),
  );
}
