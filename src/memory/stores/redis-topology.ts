import { type RedisLink, type RedisLinkOptions, redisLink } from '../../storage/redis/connection.ts';
import { replyCode } from '../../storage/redis/failure.ts';
import { slotOf } from '../../storage/redis/keys.ts';
import { partsOf } from '../../storage/redis/script.ts';

/** Which server has which keys: one of them all of them, or each its slots. */
export interface RedisTopology {
  /** `host:port` of the server that was named, without credentials. */
  readonly address: string;
  /** Whether it is a cluster, as far as `discover` got. */
  discover(deadline: number): Promise<boolean>;
  nodeOf(key: string): string;
  linkTo(node: string): RedisLink;
  /** Where an answer of the cluster sends to; undefined when it is none of these. */
  redirected(error: unknown, asked: string, key: string): { node: string; asking: boolean } | undefined;
  /** A node may be gone for good, and another have its slots: asks the others, unless it did so just now. */
  mapAgain(except: string): void;
  nodes(): string[];
  close(): void;
}

const mapEveryMs = 500;

export function redisTopology(options: RedisLinkOptions): RedisTopology {
  const { url, clock, patienceMs } = options;
  const address = URL.parse(url)?.host || 'the address in REDIS_URL';
  const links = new Map<string, RedisLink>();
  const slots = new Map<number, string>();
  let discovery: Promise<boolean> | undefined;
  let mappedAt = Number.NEGATIVE_INFINITY;

  function linkTo(node: string): RedisLink {
    let link = links.get(node);
    if (!link) {
      const target = new URL(url);
      if (node !== address) target.host = node;
      link = redisLink({ ...options, url: target.href });
      links.set(node, link);
    }
    return link;
  }

  async function map(node: string, deadline: number): Promise<void> {
    mappedAt = clock.monotonic();
    const ranges = partsOf(await linkTo(node).ask({ args: ['CLUSTER', 'SLOTS'], deadline }));
    for (const range of ranges) {
      const [from, to, primary] = partsOf(range);
      const [host, port] = partsOf(primary);
      const name = nodeName(String(host ?? ''), String(port), node);
      for (let slot = Number(from); slot <= Number(to); slot++) slots.set(slot, name);
    }
  }

  async function discover(deadline: number): Promise<boolean> {
    const info = await linkTo(address)
      .ask({ args: ['INFO', 'cluster'], deadline })
      .catch(error => {
        // A user who may not ask this: what the first redirection says is enough.
        if (replyCode(error) === 'NOPERM') return '';
        throw error;
      });
    if (!/cluster_enabled:1/.test(String(info))) return false;
    await map(address, deadline);
    return true;
  }

  return {
    address,
    linkTo,
    nodeOf: key => slots.get(slotOf(key)) ?? address,
    nodes: () => (slots.size === 0 ? [address] : [...new Set(slots.values())]),
    discover(deadline) {
      discovery ??= discover(deadline).catch(error => {
        discovery = undefined;
        throw error;
      });
      return discovery;
    },
    redirected(error, asked, key) {
      const code = replyCode(error);
      if (!(error instanceof Error) || (code !== 'MOVED' && code !== 'ASK')) return undefined;
      const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(error.message.split(' ')[2] ?? '') ?? [];
      if (port === '') return undefined;
      const node = nodeName(host, port, asked);
      if (code === 'MOVED') slots.set(slotOf(key), node);
      return { node, asking: code === 'ASK' };
    },
    mapAgain(except) {
      if (slots.size === 0 || clock.monotonic() - mappedAt < mapEveryMs) return;
      mappedAt = clock.monotonic();
      const deadline = clock.monotonic() + patienceMs;
      for (const node of new Set([...slots.values(), address])) {
        // Whoever answers last: they agree, or the next command is redirected.
        if (node !== except) map(node, deadline).catch(() => undefined);
      }
    },
    close() {
      for (const link of links.values()) link.close();
    },
  };
}

/** An empty host means the node that was asked. */
function nodeName(host: string, port: string, asked: string): string {
  const name = host === '' || host === '?' ? asked.replace(/:\d+$/, '') : host;
  return `${name.includes(':') && !name.startsWith('[') ? `[${name}]` : name}:${port}`;
}
