import { type AppError, storageError } from '../../core/errors.ts';
import { redisTopology } from '../../memory/stores/redis-topology.ts';
import { troubleLog } from '../../memory/stores/redis-trouble.ts';
import type { RedisLinkOptions } from './connection.ts';
import { redisFailure, replyCode, troubleOf, Unreachable } from './failure.ts';
import type { RedisScript, ScriptKind } from './script.ts';

export interface RedisWireOptions extends RedisLinkOptions {
  /** Told once when something goes wrong, and once when it is over. */
  onWarning: (message: string) => void;
}

/**
 * Sends commands to the server that has the key, in a cluster or alone. Failures are `AppError`s of kind `storage`. A command
 * whose answer was lost is sent again, so each has to be one that may come twice.
 */
export interface RedisWire {
  /** Without credentials. */
  readonly address: string;
  send(key: string, args: readonly string[]): Promise<unknown>;
  /** For answers of any length. */
  fetch(key: string, args: readonly string[]): Promise<unknown>;
  /** Runs a script. `bulk` for answers of any length. */
  run(script: RedisScript, keys: readonly string[], args: readonly string[], bulk?: 'bulk'): Promise<unknown>;
  /** Asks each server that holds keys. */
  everywhere(args: readonly string[]): Promise<unknown[]>;
  isCluster(): Promise<boolean>;
  close(): void;
}

/** A link is given this much longer for what it has to carry. */
const bytesPerMs = 20_000;
/** How much longer than others a long answer may take. */
const bulkFactor = 8;
const mostRedirects = 5;
/** While a slot moves, commands with several of its keys have to wait. */
const movingPauseMs = 20;

interface Manner {
  bulk?: boolean;
  kind?: ScriptKind;
}

export function redisWire({ onWarning, ...options }: RedisWireOptions): RedisWire {
  const { clock, patienceMs } = options;
  const topology = redisTopology(options);
  const troubles = troubleLog(onWarning);
  const { address } = topology;

  function failed(error: unknown, node: string): AppError {
    const failure = redisFailure(error, node);
    const code = replyCode(error);
    if (code === 'NOSCRIPT') return failure;
    const trouble = troubleOf(error);
    if (error instanceof Unreachable || code === 'CLUSTERDOWN') topology.mapAgain(node);
    // A primary that became a replica: its name may lead to the new primary.
    if (trouble === 'read_only') topology.linkTo(node).renew();
    troubles.met(node, trouble, failure.message);
    return failure;
  }

  async function routed(key: string, args: readonly string[], { bulk, kind = 'reads' }: Manner): Promise<unknown> {
    const bytes = args.reduce((sum, arg) => sum + arg.length, 0);
    const deadline = clock.monotonic() + patienceMs * (bulk ? bulkFactor : 1) + bytes / bytesPerMs;
    let node = address;
    try {
      await topology.discover(clock.monotonic() + patienceMs);
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
          if (!target || redirects++ >= mostRedirects) throw error;
          ({ node, asking } = target);
        }
      }
    } catch (error) {
      throw failed(error, node);
    }
  }

  async function run(script: RedisScript, keys: readonly string[], args: readonly string[], bulk: boolean) {
    const key = keys[0] ?? '';
    const rest = [String(keys.length), ...keys, ...args];
    const manner = { bulk, kind: script.kind };
    try {
      return await routed(key, ['EVALSHA', script.sha1, ...rest], manner);
    } catch (error) {
      if (!(error instanceof Error) || replyCode(error.cause) !== 'NOSCRIPT') throw error;
      return routed(key, ['EVAL', script.text, ...rest], manner);
    }
  }

  /** A short answer from the same server comes first: whether it is there is known as soon as for any other command. */
  async function afterShort<Answer>(key: string, long: () => Promise<Answer>): Promise<Answer> {
    const [, answer] = await Promise.all([routed(key, ['EXISTS', key], {}), long()]);
    return answer;
  }

  return {
    address,
    send: (key, args) => routed(key, args, {}),
    fetch: (key, args) => afterShort(key, () => routed(key, args, { bulk: true })),
    run: (script, keys, args, bulk) =>
      bulk ? afterShort(keys[0] ?? '', () => run(script, keys, args, true)) : run(script, keys, args, false),
    async everywhere(args) {
      const deadline = clock.monotonic() + patienceMs;
      try {
        await topology.discover(deadline);
        return await Promise.all(topology.nodes().map(node => topology.linkTo(node).ask({ args, deadline })));
      } catch (error) {
        throw failed(error, address);
      }
    },
    async isCluster() {
      try {
        return await topology.discover(clock.monotonic() + patienceMs);
      } catch (error) {
        throw failed(error, address);
      }
    },
    close: () => topology.close(),
  };
}

export function closedRedis(): AppError {
  return storageError('unavailable', 'The store of the threads is closed.', {
    next: 'Start the program again: a closed store is not opened a second time.',
  });
}
