import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { FrameError, ServerFrame } from '../../src/server/websocket/protocol.ts';
import { parseServerFrame } from './frame-schema.ts';

export interface FrameClientOptions {
  headers?: Record<string, string>;
  token?: string;
  session?: string;
  root?: string;
}

/** A plain `ws` client that checks each message of the server against the published shape. */
export async function openFrames(url: string, { headers }: Pick<FrameClientOptions, 'headers'> = {}) {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false });
  const frames: ServerFrame[] = [];
  const looked: (() => void)[] = [];
  let pings = 0;
  const closed = new Promise<{ code: number; reason: string }>(resolve => {
    socket.on('close', (code, reason) => {
      resolve({ code, reason: reason.toString() });
      for (const look of looked.splice(0)) look();
    });
  });
  socket.on('message', data => {
    frames.push(parseServerFrame(JSON.parse(data.toString())));
    for (const look of looked.splice(0)) look();
  });
  socket.on('ping', () => {
    pings += 1;
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => {});
  const self = {
    socket,
    frames,
    closed,
    pings: () => pings,
    send: (frame: object) => socket.send(JSON.stringify(frame)),
    raw: (text: string) => socket.send(text),
    /** All frames of an op that came so far. */
    all<Op extends ServerFrame['op']>(op: Op, id?: string) {
      return frames.filter(
        (frame): frame is Extract<ServerFrame, { op: Op }> =>
          frame.op === op && (id === undefined || ('request_id' in frame && frame.request_id === id)),
      );
    },
    /** The first frame of an op, with that request_id where one is given; waits for it. */
    async next<Op extends ServerFrame['op']>(op: Op, id?: string, nth = 0) {
      const until = performance.now() + 60_000;
      for (;;) {
        const found = self.all(op, id)[nth];
        if (found) return found;
        if (socket.readyState === WebSocket.CLOSED) throw new Error(`closed before ${op} ${id ?? ''}`);
        if (performance.now() > until)
          throw new Error(`no ${op} ${id ?? ''}: ${JSON.stringify(frames).slice(0, 2_000)}`);
        await Promise.race([new Promise<void>(resolve => looked.push(resolve)), wait(250)]);
      }
    },
    /** The end of a call. */
    async result(id: string, nth = 0) {
      const frame = await self.next('call_tool_res', id, nth);
      return { ...frame, document: frame.outputs[0]?.text ? JSON.parse(frame.outputs[0].text) : undefined };
    },
    call(id: string, name: string, args: Record<string, unknown> = {}, more: object = {}) {
      self.send({ op: 'call_tool', name, arguments: args, request_id: id, ...more });
    },
    async close() {
      socket.close();
      await closed;
    },
  };
  return self;
}

export type FrameClient = Awaited<ReturnType<typeof openFrames>>;

/** One that has said hello. */
export async function helloFrames(url: string, { headers, token, session, root }: FrameClientOptions = {}) {
  const client = await openFrames(url, { headers });
  client.send({ op: 'hello', token: token ?? '', session_id: session, root });
  const ack = await client.next('hello_ack');
  return { ...client, ack };
}

export function codeOf({ error }: { error?: FrameError }) {
  return error?.code;
}
