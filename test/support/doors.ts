import { testDaemon } from './daemon.ts';
import { helloFrames } from './frame-client.ts';
import { connectHttp } from './http-session.ts';
import { type SessionCall, startSession } from './mcp-session.ts';
import type { Document } from './product.ts';
import { startProxy } from './tcp-proxy.ts';
import { type TempProject, tempProject } from './temp-project.ts';
import { connectWebSocket } from './web-socket-session.ts';

/** A client of one door. */
export interface DoorClient {
  call(name: string, args?: Record<string, unknown>, options?: SessionCall): Promise<Document>;
  close(): Promise<void>;
}

/** A product of its own behind one door. */
export interface OpenDoor {
  connect(): Promise<DoorClient>;
  /** Ends the connections of all clients without a word, in the middle of whatever passes. */
  cut(): Promise<void>;
  close(): Promise<void>;
}

export interface DoorPlace {
  root: string;
  env: Record<string, string>;
}

export const doorNames = [
  'stdio 2025',
  'stdio 2026',
  'HTTP 2025',
  'HTTP 2026',
  'WebSocket 2025',
  'WebSocket 2026',
  'frames',
  'bridge 2025',
  'bridge 2026',
] as const;
export type DoorName = (typeof doorNames)[number];

export function openDoor(name: DoorName, place: DoorPlace): Promise<OpenDoor> {
  return name.startsWith('stdio') ? openStdio(name, place) : openDaemonDoor(name, place);
}

const eraOf = (name: DoorName) => (name.endsWith('2025') ? 'legacy' : 'modern');

async function openStdio(name: DoorName, { root, env }: DoorPlace): Promise<OpenDoor> {
  const home = await tempProject();
  const sessions: DoorClient[] = [];
  const closeAll = () => Promise.all(sessions.splice(0).map(session => session.close()));
  return {
    async connect() {
      const session = await startSession({ root, home: home.root, env }, eraOf(name));
      sessions.push(session);
      return session;
    },
    // Its connection is the process: at the end of its input it ends, with what was under way.
    cut: async () => void (await closeAll()),
    async close() {
      await closeAll();
      await home.dispose();
    },
  };
}

async function openDaemonDoor(name: DoorName, { root, env }: DoorPlace): Promise<OpenDoor> {
  const [daemon, home] = await Promise.all([testDaemon({ root, env }), tempProject()]);
  const proxy = await startProxy(Number(new URL(daemon.url).port));
  const port = new URL(proxy.url).port;
  const clients: DoorClient[] = [];
  return {
    async connect() {
      const client = await clientOf(name, port, { root, home });
      clients.push(client);
      return client;
    },
    cut: async () => proxy.cutAll(),
    async close() {
      // Whoever is gone already is no trouble.
      await Promise.all(clients.map(client => client.close().catch(() => undefined)));
      await proxy.dispose();
      await daemon.close();
      await home.dispose();
    },
  };
}

function clientOf(
  name: DoorName,
  port: string,
  { root, home }: { root: string; home: TempProject },
): Promise<DoorClient> {
  if (name.startsWith('HTTP')) return connectHttp(`http://127.0.0.1:${port}`, eraOf(name));
  if (name.startsWith('WebSocket')) return connectWebSocket(`ws://127.0.0.1:${port}/ws`, eraOf(name));
  if (name === 'frames') return connectFrames(`ws://127.0.0.1:${port}/ws`);
  const args = ['connect', '--url', `http://127.0.0.1:${port}`];
  return startSession({ root, home: home.root, env: { HOME: home.root }, args }, eraOf(name));
}

/** A client of the frame protocol that comes back into its session when it loses its connection. */
async function connectFrames(url: string): Promise<DoorClient> {
  const headers = { 'user-agent': 'polylogue-test' };
  let frames = await helloFrames(url, { headers });
  let count = 0;
  let isOver = false;
  return {
    async call(name, args = {}, { signal, onprogress } = {}) {
      const id = `call-${count++}`;
      frames.call(id, name, args);
      const stop = () => frames.send({ op: 'cancel', request_id: id });
      signal?.addEventListener('abort', stop, { once: true });
      for (;;) {
        try {
          const { document, error } = await frames.result(id);
          for (const { t, note } of frames.all('progress', id)) onprogress?.({ progress: t, message: note });
          if (error?.code === 'CANCELLED') throw new Error('cancelled');
          return { ...document, isError: error !== undefined };
        } catch (reason) {
          if (isOver || frames.socket.readyState === frames.socket.OPEN) throw reason;
          const { ack } = frames;
          // The session delivers by itself what it has, or comes to have, of its requests.
          frames = await helloFrames(url, { headers, ...(ack.session_id && { session: ack.session_id }) });
        }
      }
    },
    close() {
      isOver = true;
      return frames.close();
    },
  };
}
