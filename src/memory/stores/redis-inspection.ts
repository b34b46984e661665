import { storageError } from '../../core/errors.ts';
import type { RedisWire } from '../../storage/redis/cluster-client.ts';
import type { StoreInspection } from '../../storage/store.ts';

const oldest = 7;

/** What an operator should know of the servers behind a store. */
export async function redisInspection(wire: RedisWire): Promise<StoreInspection> {
  const isCluster = await wire.isCluster();
  const infos = (await wire.everywhere(['INFO'])).map(reply => fieldsOf(String(reply)));
  const [first] = infos;
  const version = first?.get('valkey_version') ?? first?.get('redis_version') ?? 'unknown';
  const name = first?.has('valkey_version') ? 'Valkey' : 'Redis';
  if (Number.parseInt(version, 10) < oldest) {
    throw storageError('unavailable', `The Redis at ${wire.address} is version ${version}.`, {
      next: `Update it to Redis ${oldest} or newer, or Valkey.`,
    });
  }
  const kind = isCluster ? `a cluster of ${infos.length} primaries` : 'a single server';
  return { text: `${name} ${version} at ${wire.address}, ${kind}`, warnings: warningsFor(infos) };
}

function warningsFor(infos: readonly ReadonlyMap<string, string>[]): string[] {
  const some = (test: (info: ReadonlyMap<string, string>) => boolean) => infos.some(test);
  const warnings: string[] = [];
  if (some(info => info.get('role') === 'slave'))
    warnings.push('It is a replica and takes no writes: let REDIS_URL name the primary.');
  if (some(info => info.get('aof_enabled') !== '1')) {
    warnings.push(
      'It keeps no append-only file: a crash loses what came after its last snapshot. Set "appendonly yes".',
    );
  }
  if (some(info => Number(info.get('maxmemory') ?? 0) > 0 && info.get('maxmemory_policy') !== 'noeviction')) {
    warnings.push('It drops data when it is full: set "maxmemory-policy noeviction", or threads lose their text.');
  }
  return warnings;
}

function fieldsOf(info: string): Map<string, string> {
  const pairs = info
    .split(/\r?\n/)
    .map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)] as const);
  return new Map(pairs.filter(([name]) => name !== ''));
}
