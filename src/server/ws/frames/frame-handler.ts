import { isRecord } from '../../../core/json.ts';
import type { ToolHost } from '../../../core/tool-host.ts';
import type { Caller } from '../../access/caller.ts';
import { readJson } from '../../guards/json-body.ts';
import type { DoorParts } from '../../http/routes.ts';
import { type ClientFrame, clientFrame, ops, type ServerFrame } from '../../websocket/protocol.ts';
import type { FrameSession } from '../../websocket/session.ts';
import { issueIn, type RefusedText, refusedFrame } from './refused-frame.ts';
import type { FrameSessions } from './sessions.ts';

/** A connection that has said hello. */
export interface OpenClient {
  parts: Pick<DoorParts, 'clock' | 'gate' | 'tokens'> & {
    sessions: Pick<FrameSessions, 'count'>;
    /** WebSockets that are open. */
    connections(): number;
  };
  host: Pick<ToolHost, 'list'>;
  caller: Caller;
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
      return { op: 'list_tools_res', ...id, tools: toolsOf(open.host) };
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

function toolsOf(host: Pick<ToolHost, 'list'>) {
  return host.list().map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
}

function healthOf({ gate, sessions, connections }: OpenClient['parts'], t: number) {
  const { running, waiting, most } = gate.load();
  return {
    t,
    sessions: sessions.count(),
    connections: connections(),
    global_capacity: most,
    global_inflight: running,
    global_waiting: waiting,
    draining: gate.isShut(),
  };
}

function rotated({ parts: { tokens }, caller, onRotated }: OpenClient, old = '', replacement = '') {
  if (old === '' || replacement === '') {
    return {
      ok: false,
      error: 'missing_params',
      message: 'Send the token that holds as "old" and another as "new".',
    } as const;
  }
  // A token for somebody else changes nothing, even where it is one.
  if (tokens.find(old)?.name !== caller.name) {
    return { ok: false, error: 'unauthorized', message: '"old" is not the token of this connection.' } as const;
  }
  if (!tokens.rotate(old, replacement)) {
    const message = '"new" has to be another token of 16 to 4,096 printable characters without spaces and commas.';
    return { ok: false, error: 'invalid_token', message } as const;
  }
  onRotated();
  return { ok: true } as const;
}
