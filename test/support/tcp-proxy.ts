import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** Stands between a client and a server on this machine, and spoils what passes as it is told. */
export interface TcpProxy {
  url: string;
  /** Where new connections lead. */
  target: number;
  /** Bytes of answers that still pass; then the connection is cut. Infinity: all. */
  left: number;
  /** Instead of being cut it brings nothing any more. */
  hangs: boolean;
  /** Refuses new connections. */
  refuses: boolean;
  /** Milliseconds for which the first answer of a connection is kept back, as on a busy machine. */
  firstAnswerAfterMs: number;
  /** Connections that were made. */
  connections: number;
  cutAll(): void;
  /** The clients' connections break, and the server is not told. */
  cutNear(): void;
  dispose(): Promise<void>;
}

export async function startProxy(target: number): Promise<TcpProxy> {
  const open = new Set<Socket>();
  const near = new Set<Socket>();
  const server = createServer(client => {
    self.connections++;
    if (self.refuses) {
      client.destroy();
      return;
    }
    const far = connect(self.target, '127.0.0.1');
    if (self.firstAnswerAfterMs > 0) {
      far.pause();
      setTimeout(() => far.resume(), self.firstAnswerAfterMs);
    }
    near.add(client);
    for (const socket of [client, far]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        client.destroy();
        if (near.delete(client)) far.destroy();
      });
    }
    client.on('data', chunk => far.write(chunk));
    far.on('data', chunk => {
      const passing = chunk.subarray(0, Math.min(chunk.length, self.left));
      self.left -= passing.length;
      client.write(passing);
      if (passing.length === chunk.length) return;
      if (!self.hangs) {
        self.left = Number.POSITIVE_INFINITY;
        client.end();
        far.destroy();
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const self: TcpProxy = {
    url: `redis://127.0.0.1:${port}`,
    target,
    left: Number.POSITIVE_INFINITY,
    hangs: false,
    refuses: false,
    firstAnswerAfterMs: 0,
    connections: 0,
    cutAll() {
      for (const socket of open) socket.destroy();
    },
    cutNear() {
      const cut = [...near];
      near.clear();
      for (const socket of cut) socket.destroy();
    },
    async dispose() {
      self.cutAll();
      server.close();
      await once(server, 'close');
    },
  };
  return self;
}
