import type { ModelInfo } from '../../core/model.ts';
import { makerOf, modelKey, undatedKey } from './names.ts';
import type { Roster, RoutingPolicy } from './roster.ts';
import { findProvider, isOffline } from './roster.ts';

/** Why a model may not be used. `no_key`: its provider is not configured; `no_provider`: it is not part of this installation. */
export type Refusal = 'no_provider' | 'no_key' | 'offline' | 'not_local' | 'denied' | 'not_allowed';

/** Says why a model may not be used; undefined when it may. */
export type Restrictions = (model: ModelInfo) => Refusal | undefined;

/** One entry of a list: what it matches by name, and where. */
export interface Entry {
  name: string;
  /** Keys of the name itself and of the model that has it for an alias. */
  keys: ReadonlySet<string>;
  provider?: string;
}

/** Whether a refusal is the operator's decision, rather than a missing key. */
export function isRestriction(refusal: Refusal): boolean {
  return refusal !== 'no_key' && refusal !== 'no_provider';
}

/**
 * Reads the operator's lists once. Entries are ids or aliases in any case: a list that names an alias admits the id, and
 * the other way round, at every provider that serves the model. A refusal reaches further than a permission: it also
 * covers the model's dated versions and its routes at an aggregator.
 */
export function createRestrictions(roster: Roster, policy: RoutingPolicy): Restrictions {
  const read = (names: readonly string[] | undefined) =>
    (names ?? []).filter(name => name.trim() !== '').map(name => readEntry(roster, name));
  const allowed = new Map(Object.entries(policy.allowed).map(([provider, names]) => [provider, read(names)]));
  const denied = read(policy.denied);
  const providers = new Map(roster.providers.map(provider => [provider.id, provider]));

  return model => {
    const provider = providers.get(model.provider);
    if (!provider) return 'no_provider';
    if (!provider.configured) return 'no_key';
    if (policy.offline && !isOffline(provider.id) && !provider.local) return 'offline';
    if (policy.localOnly && !provider.local && !isOffline(provider.id)) return 'not_local';
    if (denied.some(entry => names(entry, model))) return 'denied';
    const list = allowed.get(provider.id);
    if (list && list.length > 0 && !list.some(entry => matches(entry, model, []))) return 'not_allowed';
    return undefined;
  };
}

/** Whether an entry reaches a model: by any of its names, by those of its undated version, or by a route to it. */
export function names(entry: Entry, model: ModelInfo): boolean {
  const plain = plainId(model);
  return matches(entry, model, [modelKey(plain), undatedKey(plain)]);
}

/** An aggregator's id without routes, presets and whatever else may follow the model. */
function plainId({ id, provider }: ModelInfo): string {
  return provider === 'openrouter' || id.includes('/') ? id.replace(/[:@].*$/, '') : id;
}

/** Reads one word of a list. */
export function readEntry(roster: Roster, text: string): Entry {
  const typed = text.trim().toLowerCase();
  const known = roster.models.some(model => model.id.toLowerCase() === typed);
  const colon = known ? -1 : typed.indexOf(':');
  const provider = colon > 0 ? findProvider(roster, typed.slice(0, colon)) : undefined;
  const name = provider ? typed.slice(colon + 1) : typed;
  const owner = roster.models.find(model => model.aliases.includes(name));
  const keys = new Set([modelKey(name), ...(owner ? [modelKey(owner.id)] : [])].filter(key => key !== ''));
  return provider ? { name, keys, provider: provider.id } : { name, keys };
}

function matches(entry: Entry, model: ModelInfo, moreKeys: readonly string[]): boolean {
  if (entry.provider !== undefined && entry.provider !== model.provider) return false;
  if (entry.name === model.id.toLowerCase() || model.aliases.includes(entry.name)) return true;
  const [maker, other] = [makerOf(entry.name), makerOf(plainId(model))];
  if (maker !== '' && other !== '' && maker !== other) return false;
  return [modelKey(model.id), ...moreKeys].some(key => entry.keys.has(key));
}
