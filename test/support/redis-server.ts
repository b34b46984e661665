import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createClient } from '@redis/client';

/** A real redis-server in a folder of its own. */
export interface RedisServer {
  port: number;
  url: string;
  command(...args: string[]): Promise<unknown>;
  signal(signal: NodeJS.Signals): void;
  /** Ends it at once, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
  dispose(): Promise<void>;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || !address) throw new Error('no port');
  return address.port;
}

async function connect(port: number, password?: string) {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, password, socket: { reconnectStrategy: false } });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

async function untilItAnswers(port: number, password?: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      const client = await connect(port, password);
      await client.ping();
      client.destroy();
      return;
    } catch (error) {
      if (tries > 200) throw error;
      await wait(20);
    }
  }
}

export async function startRedis(...settings: string[]): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'polylogue-redis-'));
  const port = await freePort();
  const password = settings[settings.indexOf('--requirepass') + 1 || settings.length];
  let child: ChildProcess | undefined;
  const self: RedisServer = {
    port,
    url: `redis://127.0.0.1:${port}`,
    async command(...args) {
      const client = await connect(port, password);
      try {
        return await client.sendCommand(args);
      } finally {
        client.destroy();
      }
    },
    signal: signal => void child?.kill(signal),
    async kill() {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
    async start() {
      const fixed = [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--dir',
        folder,
        '--save',
        '',
        '--repl-diskless-sync-delay',
        '0',
      ];
      child = spawn('redis-server', [...fixed, '--appendonly', 'yes', ...settings], { stdio: 'ignore' });
      const failed = once(child, 'error').then(([error]) => {
        throw new Error('redis-server did not start: run "node scripts/test-needs.ts"', { cause: error });
      });
      await Promise.race([untilItAnswers(port, password), failed]);
    },
    async dispose() {
      await self.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await self.start();
  return self;
}

export interface RedisCluster {
  url: string;
  nodes: RedisServer[];
  dispose(): Promise<void>;
}

const slots = 16_384;

/** Primaries that share all slots. */
export async function startRedisCluster(size = 3): Promise<RedisCluster> {
  const buses = await Promise.all(Array.from({ length: size }, freePort));
  const nodes = await Promise.all(
    buses.map(bus =>
      startRedis('--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-node-timeout', '2000'),
    ),
  );
  const [first] = nodes;
  for (const [index, node] of nodes.entries()) {
    const from = Math.floor((slots * index) / size);
    const to = Math.floor((slots * (index + 1)) / size) - 1;
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
    if (index > 0) await first!.command('CLUSTER', 'MEET', '127.0.0.1', String(node.port), String(buses[index]));
  }
  for (const node of nodes) {
    while (!/cluster_state:ok/.test(String(await node.command('CLUSTER', 'INFO')))) await wait(50);
    while (
      String(await node.command('CLUSTER', 'NODES'))
        .trim()
        .split('\n').length < size
    )
      await wait(50);
  }
  return {
    url: first!.url,
    nodes,
    async dispose() {
      await Promise.all(nodes.map(node => node.dispose()));
    },
  };
}
