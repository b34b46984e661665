import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { waitUntil } from './wait-until.ts';

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

/**
 * A port for a program that can't choose one itself, and that stays free while this program is away: below those that the
 * system gives to whoever asks for any, and to each outgoing connection.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

async function connect(port: number, password?: string) {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, password, socket: { reconnectStrategy: false } });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

async function untilItAnswers(port: number, child: ChildProcess, password?: string): Promise<void> {
  let last: unknown;
  const isSo = async () => {
    const end = child.exitCode ?? child.signalCode;
    if (end !== null) throw new Error(`redis-server at ${port} ended with ${end}`);
    try {
      const client = await connect(port, password);
      await client.ping();
      client.destroy();
      return true;
    } catch (error) {
      last = error;
      return false;
    }
  };
  await waitUntil(`redis-server at ${port} answered`, isSo, { known: () => String(last) });
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
      await Promise.race([untilItAnswers(port, child, password), failed]);
    },
    async dispose() {
      await self.kill();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
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
    let known = '';
    const isWhole = async () => {
      known = `${await node.command('CLUSTER', 'INFO')}${await node.command('CLUSTER', 'NODES')}`;
      const members = String(await node.command('CLUSTER', 'NODES'));
      return known.includes('cluster_state:ok') && members.trim().split('\n').length >= size;
    };
    await waitUntil('the nodes of the cluster knew each other', isWhole, { everyMs: 50, known: () => known });
  }
  return {
    url: first!.url,
    nodes,
    async dispose() {
      await Promise.all(nodes.map(node => node.dispose()));
    },
  };
}
