import { createHash } from 'node:crypto';
import type { FaultScope } from '../../../core/errors.ts';
import type { ProviderDefinition, ProviderSettings } from '../../provider.ts';

/** Where a provider's calls go, and under which key: what breakers and budgets are kept for. Holds no secret. */
export interface Upstream {
  provider: string;
  /** The provider's id, with a short hash of its address where one is set. */
  endpoint: string;
  /** A short hash of the key; `none` without one. Another key is another upstream, without a past. */
  key: string;
}

export function upstreamOf({ id, options }: ProviderDefinition, settings: ProviderSettings): Upstream {
  const valuesOf = (wanted: (name: string) => boolean) =>
    Object.keys(options)
      .filter(name => wanted(name) && settings[name] !== undefined)
      .map(name => `${name}=${settings[name]}`);
  const keys = valuesOf(name => options[name]?.secret === true);
  // All other settings: an address, a deployment, a version may be what a vendor answers to.
  const places = valuesOf(name => options[name]?.secret !== true);
  return {
    provider: id,
    endpoint: places.length === 0 ? id : `${id}.${fingerprint(places)}`,
    key: keys.length === 0 ? 'none' : fingerprint(keys),
  };
}

/** Long enough to tell keys apart, too short to find one by it. */
function fingerprint(texts: readonly string[]): string {
  return createHash('sha256')
    .update(`polylogue upstream\0${texts.join('\0')}`)
    .digest('hex')
    .slice(0, 10);
}

export const statePrefix = 'breaker/';

/** The names under which the breakers of one model are kept, in the order in which they are looked at. */
export function breakerNames({ endpoint, key }: Upstream, model: string): Record<FaultScope, string> {
  const place = `${statePrefix}${endpoint}`;
  const named = encodeURIComponent(model.toWellFormed());
  return {
    key: `${place}/key/${key}`,
    account: `${place}/account/${key}`,
    key_model: `${place}/key_model/${key}/${named}`,
    model: `${place}/model/${named}`,
  };
}
