import type { AppError } from '../../core/errors.ts';
import { type RedisLink, type RedisLinkOptions, redisLink } from './connection.ts';
import { redisFailure, replyCode, type Trouble, troubleOf, Unreachable } from './failure.ts';
import { slotOf } from './keys.ts';
import { partsOf, type RedisScript, type ScriptKind } from './script.ts';

const mapEveryMs = 500;

/** Which server has which keys: one of them all of them, or each its slots. */
function redisTopology(options: RedisLinkOptions) {
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

  async function map(node: string): Promise<void> {
    mappedAt = clock.monotonic();
    const deadline = mappedAt + patienceMs;
    const ranges = partsOf(await linkTo(node).ask({ args: ['CLUSTER', 'SLOTS'], deadline }));
    for (const range of ranges) {
      const [from, to, primary] = partsOf(range);
      const [host, port] = partsOf(primary);
      const name = nodeName(String(host ?? ''), String(port), node);
      for (let slot = Number(from); slot <= Number(to); slot++) slots.set(slot, name);
    }
  }

  async function discover(): Promise<boolean> {
    const deadline = clock.monotonic() + patienceMs;
    const info = await linkTo(address)
      .ask({ args: ['INFO', 'cluster'], deadline })
      .catch(error => {
        // A user who may not ask this: what the first redirection says is enough.
        if (replyCode(error) === 'NOPERM') return '';
        throw error;
      });
    if (!/cluster_enabled:1/.test(String(info))) return false;
    await map(address);
    return true;
  }

  return {
    /** `host:port` of the server that was named, without credentials. */
    address,
    linkTo,
    nodeOf: (key: string) => slots.get(slotOf(key)) ?? address,
    nodes: () => (slots.size === 0 ? [address] : [...new Set(slots.values())]),
    /** Whether it is a cluster, as far as that got. */
    discover(): Promise<boolean> {
      discovery ??= discover().catch(error => {
        discovery = undefined;
        throw error;
      });
      return discovery;
    },
    /** Where an answer of the cluster sends to; undefined when it is none of these. */
    redirected(error: unknown, asked: string, key: string): { node: string; asking: boolean } | undefined {
      const code = replyCode(error);
      if (!(error instanceof Error) || (code !== 'MOVED' && code !== 'ASK')) return undefined;
      const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(error.message.split(' ')[2] ?? '') ?? [];
      if (port === '') return undefined;
      const node = nodeName(host, port, asked);
      if (code === 'MOVED') slots.set(slotOf(key), node);
      return { node, asking: code === 'ASK' };
    },
    /** A node may be gone for good, and another have its slots: asks the others, unless it did so just now. */
    mapAgain(except: string): void {
      if (slots.size === 0 || clock.monotonic() - mappedAt < mapEveryMs) return;
      for (const node of new Set([...slots.values(), address])) {
        // Whoever answers last: they agree, or the next command is redirected.
        if (node !== except) map(node).catch(() => undefined);
      }
    },
    close(): void {
      for (const link of links.values()) link.close();
    },
  };
}

/** An empty host means the node that was asked. */
function nodeName(host: string, port: string, asked: string): string {
  const name = host === '' || host === '?' ? asked.replace(/:\d+$/, '') : host;
  return `${name.includes(':') && !name.startsWith('[') ? `[${name}]` : name}:${port}`;
}

/** One line when a server begins to fail, and one when it is over, however many calls notice. */
function troubleLog(onWarning: (message: string) => void) {
  const open = new Map<string, Trouble>();
  const refused = new Set<string>();
  return {
    met(node: string, trouble: Trouble, message: string): void {
      // What is refused once stays refused, while other commands go on.
      if (trouble === 'refused' ? refused.has(message) : open.get(node) === trouble) return;
      if (trouble === 'refused') refused.add(message);
      else open.set(node, trouble);
      onWarning(message);
    },
    /** Something of this kind worked: a server without room, or that is read-only, answers reads all the same. */
    over(node: string, kind: ScriptKind): void {
      const trouble = open.get(node);
      if (trouble === undefined) return;
      if ((trouble === 'full' && kind !== 'writes') || (trouble === 'read_only' && kind === 'reads')) return;
      open.delete(node);
      onWarning(`The Redis at ${node} works again.`);
    },
  };
}

export interface RedisClientOptions extends RedisLinkOptions {
  /** Told once when something goes wrong, and once when it is over: for the log, one sentence each. */
  onWarning: (message: string) => void;
}

export type RedisClient = ReturnType<typeof redisClient>;

/** A link is given this much longer for what it has to carry. */
const bytesPerMs = 20_000;

/** How much longer than others a long answer may take. */
const bulkFactor = 8;

const maxRedirects = 5;

/** While a slot moves, commands with several of its keys have to wait. */
const movingPauseMs = 20;

/** What follows the name of a command. */
type Values = readonly (string | number)[];

/** Asks the server that has the key; failures are of kind `storage`. A command may come twice: one without an answer is sent again. */
export function redisClient({ onWarning, ...options }: RedisClientOptions) {
  const { clock, patienceMs } = options;
  const topology = redisTopology(options);
  const troubles = troubleLog(onWarning);
  const { address } = topology;

  function failed(error: unknown, node: string, key = ''): AppError {
    const failure = redisFailure(error, node, key);
    const code = replyCode(error);
    // Neither is a trouble of the server.
    if (code === 'NOSCRIPT' || code === 'WRONGTYPE') return failure;
    const trouble = troubleOf(error);
    if (error instanceof Unreachable || code === 'CLUSTERDOWN') topology.mapAgain(node);
    // A primary that became a replica: its name may lead to the new primary.
    if (trouble === 'read_only') topology.linkTo(node).renew();
    troubles.met(node, trouble, failure.message);
    return failure;
  }

  async function routed(key: string, values: Values, kind: ScriptKind = 'reads', bulk = false): Promise<unknown> {
    const args = values.map(String);
    const bytes = args.reduce((sum, arg) => sum + arg.length, 0);
    let node = address;
    try {
      await topology.discover();
      const deadline = clock.monotonic() + patienceMs * (bulk ? bulkFactor : 1) + bytes / bytesPerMs;
      node = topology.nodeOf(key);
      for (let asking = false, redirects = 0; ; ) {
        try {
          const answer = await topology.linkTo(node).ask({ args, deadline, bulk, asking });
          troubles.over(node, kind);
          return answer;
        } catch (error) {
          if (replyCode(error) === 'TRYAGAIN' && clock.monotonic() < deadline) {
            await clock.sleep(movingPauseMs);
            continue;
          }
          const target = topology.redirected(error, node, key);
          if (!target || redirects++ >= maxRedirects) throw error;
          ({ node, asking } = target);
        }
      }
    } catch (error) {
      throw failed(error, node, key);
    }
  }

  async function run(script: RedisScript, keys: readonly string[], args: Values, bulk: boolean) {
    const key = keys[0] ?? '';
    const rest = [keys.length, ...keys, ...args];
    try {
      return await routed(key, ['EVALSHA', script.sha1, ...rest], script.kind, bulk);
    } catch (error) {
      if (!(error instanceof Error) || replyCode(error.cause) !== 'NOSCRIPT') throw error;
      return routed(key, ['EVAL', script.text, ...rest], script.kind, bulk);
    }
  }

  /** A short answer from the same server comes first: whether it is there is known as soon as for any other command. */
  async function afterShort<Answer>(key: string, long: () => Promise<Answer>): Promise<Answer> {
    const [, answer] = await Promise.all([routed(key, ['EXISTS', key]), long()]);
    return answer;
  }

  /** For what is asked of no key: its failures are those of the server that was named. */
  async function keyless<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    try {
      return await ask();
    } catch (error) {
      throw failed(error, address);
    }
  }

  return {
    /** Without credentials. */
    address,
    send: (command: string, key: string, ...values: Values) => routed(key, [command, key, ...values]),
    /** For answers of any length. */
    fetch: (command: string, key: string, ...values: Values) =>
      afterShort(key, () => routed(key, [command, key, ...values], 'reads', true)),
    /** Seconds and microseconds by the server that has a key. */
    time: (key: string) => routed(key, ['TIME']),
    /** Runs a script. `bulk` for answers of any length. */
    run: (script: RedisScript, keys: readonly string[], args: Values, bulk?: 'bulk') =>
      bulk ? afterShort(keys[0] ?? '', () => run(script, keys, args, true)) : run(script, keys, args, false),
    /** Asks each server that holds keys, as far as `isCluster` found them. */
    everywhere(args: readonly string[]): Promise<unknown[]> {
      const deadline = clock.monotonic() + patienceMs;
      return keyless(() => Promise.all(topology.nodes().map(node => topology.linkTo(node).ask({ args, deadline }))));
    },
    isCluster: () => keyless(topology.discover),
    close: () => topology.close(),
  };
}
