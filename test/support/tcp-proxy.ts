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
  /** Connections that were made. */
  connections: number;
  cutAll(): void;
  dispose(): Promise<void>;
}

export async function startProxy(target: number): Promise<TcpProxy> {
  const open = new Set<Socket>();
  const server = createServer(near => {
    self.connections++;
    if (self.refuses) {
      near.destroy();
      return;
    }
    const far = connect(self.target, '127.0.0.1');
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', chunk => far.write(chunk));
    far.on('data', chunk => {
      const passing = chunk.subarray(0, Math.min(chunk.length, self.left));
      self.left -= passing.length;
      near.write(passing);
      if (passing.length === chunk.length) return;
      if (!self.hangs) {
        self.left = Number.POSITIVE_INFINITY;
        near.end();
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
    connections: 0,
    cutAll() {
      for (const socket of open) socket.destroy();
    },
    async dispose() {
      self.cutAll();
      server.close();
      await once(server, 'close');
    },
  };
  return self;
}
