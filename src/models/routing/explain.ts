import { isAppError } from '../../core/errors.ts';
import type { Candidate, ModelInfo } from '../../core/model.ts';
import { type EligibleModels, eligibleModels, toOffer } from './eligible-models.ts';
import { applyRequirements, resolveIn } from './resolve.ts';
import { averagePrice, type ModelRequest, type Refusal, type Roster, type RoutingPolicy, settingOf } from './roster.ts';

/** Why a model would not answer. */
export type LeftOutWhy =
  | Refusal
  | 'only_by_name'
  | 'no_vision'
  | 'no_search'
  | 'window'
  | 'cost'
  | 'failing'
  | 'ranked_lower'
  | 'not_named';

/** Models that stay out for one reason, by provider. */
export interface LeftOut {
  why: LeftOutWhy;
  provider: string;
  /** The setting that would let them in, where one would. */
  setting?: string;
  models: string[];
}

export type RouteExplanation = ReturnType<typeof explainRoute>;

/** Who would answer a request, best first; nobody where none can. Pure. */
export const candidatesFor = (...route: [ModelRequest, Roster, RoutingPolicy]): readonly Candidate[] =>
  attempt(applyRequirements(eligibleModels(...route))).resolution?.candidates ?? [];

/** Routes a request and says why each other model was left out. Pure. */
export function explainRoute(request: ModelRequest, roster: Roster, policy: RoutingPolicy) {
  const eligible = applyRequirements(eligibleModels(request, roster, policy));
  const { plan } = eligible.request;
  const { resolution, failure } = attempt(eligible);
  const candidates = resolution?.candidates ?? [];
  return {
    ...(plan && { plan }),
    requested: resolution?.requested ?? request.name ?? 'auto',
    /** Best first; empty where nobody can answer. */
    candidates: candidates.map((candidate): Candidate & { price?: number; usd?: number; searches: boolean } => ({
      ...candidate,
      price: averagePrice(candidate.model),
      usd: toOffer(eligible, candidate.model, candidate.effort).usd,
      searches: eligible.searches(candidate.model),
    })),
    ...(resolution?.corrected && { corrected: resolution.corrected }),
    warnings: resolution?.warnings ?? [],
    /** Why nobody can answer, and what to do about it. */
    ...(failure && { failure }),
    leftOut: leftOut(eligible, candidates, plan?.class === 'explicit'),
  };
}

function attempt(eligible: EligibleModels) {
  try {
    return { resolution: resolveIn(eligible) };
  } catch (error) {
    // That nobody can answer is an answer here.
    if (!isAppError(error)) throw error;
    const { code, class: kind, next } = error.details;
    return { failure: { code, class: kind, message: error.message, next } };
  }
}

function leftOut(eligible: EligibleModels, candidates: readonly Candidate[], named: boolean): LeftOut[] {
  const groups = new Map<string, LeftOut>();
  for (const model of eligible.roster.models) {
    if (candidates.some(candidate => candidate.model === model)) continue;
    const why = reasonFor(eligible, model, named);
    const key = `${why}/${model.provider}`;
    const setting = why === 'no_key' ? settingOf(model.provider) : undefined;
    const group = groups.get(key) ?? { why, provider: model.provider, ...(setting && { setting }), models: [] };
    group.models.push(model.id);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function reasonFor(eligible: EligibleModels, model: ModelInfo, named: boolean): LeftOutWhy {
  const refusal = eligible.refusal(model);
  if (refusal) return refusal;
  if (named) return 'not_named';
  if (!eligible.open.includes(model)) return 'only_by_name';
  const { vision, window = 0, search } = eligible.request.plan?.needs ?? eligible.request.needs;
  if (vision && !model.input.includes('image')) return 'no_vision';
  if (model.window < window) return 'window';
  if (search && !eligible.searches(model)) return 'no_search';
  if (toOffer(eligible, model, eligible.request.effort).holds === 0) return 'cost';
  if (eligible.request.ailing?.(model)) return 'failing';
  return model.status === 'active' ? 'ranked_lower' : 'retired';
}
