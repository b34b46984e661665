import { isAppError } from '../../core/errors.ts';
import type { Listings } from '../catalogue/vendor-lists.ts';
import { steer } from '../manager/steer.ts';
import type { ProviderDefinition } from '../provider.ts';
import { nameKey } from '../routing/names.ts';
import { passedOnReason } from '../routing/pass-through.ts';
import { type Resolution, resolveIn } from '../routing/resolve.ts';
import { findProvider, type ModelRequest, type Roster, type RoutingPolicy } from '../routing/roster.ts';
import { createScene } from '../routing/scene.ts';

export interface RouteParts {
  roster(only?: string): Promise<Roster>;
  listings: Listings;
  definitions: readonly ProviderDefinition[];
  policy: RoutingPolicy;
  mayAsk(definition: ProviderDefinition): boolean;
  /** For questions about the present year. */
  year(): number;
}

/** The provider that a name begins with. */
function namedProvider(definitions: readonly ProviderDefinition[], name: string): string | undefined {
  const at = name.indexOf(':');
  return at < 1 ? undefined : findProvider({ providers: definitions }, name.slice(0, at))?.id;
}

type Outcome = { resolution: Resolution } | { error: unknown };

/**
 * Chooses the models for a call. A name that is not known for sure is looked up in the vendors' own lists first, where those
 * that are at hand are old: a new model can be asked on its first day, and a name that no vendor has is refused here.
 */
export function createRoute(parts: RouteParts): (request: ModelRequest) => Promise<Resolution> {
  const { policy, listings } = parts;
  const resolve = async (request: ModelRequest, roster: Roster): Promise<Outcome> => {
    try {
      const scene = createScene(request, roster, policy);
      const steered = steer(scene, policy, parts.year());
      const resolution = resolveIn({ ...scene, request: steered }, policy);
      return { resolution: { ...resolution, ...(steered.plan && { plan: steered.plan }) } };
    } catch (error) {
      // Kept until the lists were looked at: with them the same name may resolve.
      return { error };
    }
  };
  return async request => {
    const name = request.name?.trim() || policy.defaultModel?.trim();
    const only = name && namedProvider(parts.definitions, name);
    const roster = await parts.roster(only);
    const first = await resolve(request, roster);
    const asked = name && isUnsure(first, request, policy) ? await whoMayKnow(parts, name, roster) : [];
    await Promise.all(asked.map(definition => listings.current(definition)));
    const second = asked.length === 0 ? first : await resolve(request, await parts.roster(only));
    // A choice that is free after all is one among all providers.
    const isFree = only !== undefined && isPassedOver(second, request, policy);
    return settled(isFree ? await resolve(request, await parts.roster()) : second);
  };
}

function settled(outcome: Outcome): Resolution {
  if ('error' in outcome) throw outcome.error;
  const { resolution } = outcome;
  const model = resolution.candidates[0]?.model;
  if (!model?.windowAssumed) return resolution;
  const { provider, id, window } = model;
  const warning = `${provider} does not tell the context window of ${id}; ${window} tokens are assumed. The operator can set it (CUSTOM_CONTEXT_WINDOW, context_window of an endpoint, or a models file).`;
  return { ...resolution, warnings: [...resolution.warnings, warning] };
}

/** Whether the vendors' lists could say something else. A different spelling of what is known is no doubt. */
function isUnsure(outcome: Outcome, request: ModelRequest, policy: RoutingPolicy): boolean {
  if ('error' in outcome) {
    if (!isAppError(outcome.error) || outcome.error.kind !== 'input') return false;
    const { code, class: kind } = outcome.error.details;
    return code === 'PROVIDER_NOT_FOUND' || kind === 'unknown';
  }
  const { corrected, candidates } = outcome.resolution;
  if (corrected) return nameKey(corrected.from.slice(corrected.from.indexOf(':') + 1)) !== nameKey(corrected.to);
  return candidates[0]?.reason === passedOnReason || isPassedOver(outcome, request, policy);
}

/** Whether the default model did not resolve, and another was chosen in its place. */
function isPassedOver(outcome: Outcome, request: ModelRequest, policy: RoutingPolicy): boolean {
  if ('error' in outcome || request.name?.trim()) return false;
  const byDefault = policy.defaultModel?.trim();
  return byDefault !== undefined && outcome.resolution.requested !== byDefault;
}

/** The provider that the name begins with, else all vendors with a list, those whose list is not fresh. */
async function whoMayKnow(parts: RouteParts, name: string, roster: Roster): Promise<ProviderDefinition[]> {
  const { definitions, listings, mayAsk } = parts;
  const scope = namedProvider(definitions, name);
  const usable = new Set(
    roster.providers.filter(({ configured, onlyByName }) => configured && !onlyByName).map(({ id }) => id),
  );
  const asked = definitions.filter(definition => {
    if (!usable.has(definition.id) || definition.unlisted || !mayAsk(definition)) return false;
    if (scope) return definition.id === scope;
    // Aggregators' names have a maker in front.
    return !definition.servesOthers || name.includes('/');
  });
  const known = await Promise.all(asked.map(definition => listings.known(definition)));
  return asked.filter((definition, at) => !listings.isFresh(definition, known[at]));
}
