import type { ModelInfo } from '../../core/model.ts';
import { averagePrice, rankModels } from './categories.ts';
import type { Refusal, Restrictions } from './restrictions.ts';
import { createRestrictions } from './restrictions.ts';
import type { ModelRequest, Roster, RosterProvider, RoutingPolicy } from './roster.ts';
import { isOffline, priorityOf } from './roster.ts';

/** What one resolution looks at: the request, what there is, and what is permitted. */
export interface Scene {
  request: ModelRequest;
  roster: Roster;
  policy: RoutingPolicy;
  provider(id: string): RosterProvider | undefined;
  refusal(model: ModelInfo): Refusal | undefined;
  /** Whether a model can search the web by itself. */
  searches(model: ModelInfo): boolean;
  /** Dollars a million tokens; nothing for local models, infinite where no price is named. */
  cost(model: ModelInfo): number;
  /** What may be chosen without being named, the best for the request's category first. */
  open: readonly ModelInfo[];
  /** Whether some that may be chosen are missing there because they can't do what is asked. */
  avoids: boolean;
}

export function createScene(request: ModelRequest, roster: Roster, policy: RoutingPolicy): Scene {
  const providers = new Map(roster.providers.map(provider => [provider.id, provider]));
  const restrictions: Restrictions = createRestrictions(roster, policy);
  const refusals = new Map<ModelInfo, Refusal | undefined>();
  const refusal = (model: ModelInfo) => {
    if (!refusals.has(model)) refusals.set(model, restrictions(model));
    return refusals.get(model);
  };
  const isLocal = (id: string) => providers.get(id)?.local === true;
  const mayOpen = (model: ModelInfo) =>
    policy.offline ? isOffline(model.provider) : providers.get(model.provider)?.onlyByName === false;
  const permitted = roster.models.filter(model => mayOpen(model) && refusal(model) === undefined);
  const suited = permitted.filter(model => request.avoid?.(model) !== true);
  return {
    request,
    roster,
    policy,
    provider: id => providers.get(id),
    refusal,
    searches: model => providers.get(model.provider)?.searches?.(model) ?? false,
    cost: model => averagePrice(model) ?? (isLocal(model.provider) ? 0 : Number.POSITIVE_INFINITY),
    open: rankModels(suited, request.category, policy.prefer, isLocal),
    avoids: suited.length < permitted.length,
  };
}

/** Sorts rows by how near their provider is: the maker before an aggregator. */
export function byPriority(models: readonly ModelInfo[]): ModelInfo[] {
  return models.toSorted((a, b) => priorityOf(a.provider) - priorityOf(b.provider));
}
