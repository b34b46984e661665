import { type AppError, isAppError } from '../../core/errors.ts';
import type { Candidate, Candidates, Effort, ModelInfo } from '../../core/model.ts';
import { dollars } from '../../core/usage.ts';
import type { EligibleModels, Match, Meaning, Offer } from './eligible-models.ts';
import {
  byPriority,
  guessModel,
  interpretationsOf,
  isBefore,
  isUnknownSuffix,
  noPriceWarning,
  overpricedLast,
  shortened,
  toOffer,
} from './eligible-models.ts';
import { isDated, ownId, resolveEffort, resolveSuffix, type Suffixed, sameModel, splitSuffix } from './names.ts';
import * as refusals from './refusals.ts';
import { type ModelRequirements, requirementsOf } from './requirements.ts';
import type { ModelRequest, RosterProvider } from './roster.ts';
import {
  averagePrice,
  defaultOrder,
  findProvider,
  isRestriction,
  prefixOf,
  settingOf,
  spreadOverProviders,
  wantedProvider,
} from './roster.ts';

/** Which models may answer a call, and how that was decided. */
export interface Resolution {
  candidates: Candidates;
  /** What was asked for: the caller's word, the default's, or `auto`. */
  requested: string;
  /** Given when the name was not quite one we know. */
  corrected?: { from: string; to: string };
  /** One sentence each, for the reply. */
  warnings: string[];
  /** What the AI manager made of the call, where it was asked. */
  plan?: ModelRequirements;
  /** The first candidate can search the web by itself. */
  searches?: boolean;
}

const automatic = 'auto';

const most = { candidates: 3, nameLength: 200, rememberedNames: 500 };

/**
 * Chooses the models for one call. Pure. Throws `MODEL_NOT_FOUND` (class `unknown`, `restricted`, `no_key`, `no_provider`
 * or `unmet_needs`), `PROVIDER_NOT_FOUND`, `INVALID_INPUT_FORMAT` for a suffix that means nothing, and `CONFIG` when no
 * provider is configured at all.
 */
export function resolveIn(eligible: EligibleModels): Resolution {
  const { request, policy } = eligible;
  const name = request.name?.trim();
  if (name) return resolveName(eligible, name, 'asked for by name');
  const byDefault = policy.defaultModel?.trim();
  if (!byDefault) return resolveAuto(eligible, automatic, request.effort);
  try {
    return resolveName(eligible, byDefault, 'the default model');
  } catch (error) {
    // Anything but a name that fails to resolve goes on.
    if (!isAppError(error) || error.kind !== 'input') throw error;
    const chosen = insteadOfDefault(eligible, byDefault, error);
    return { ...chosen, warnings: [`The default model was passed over: ${error.message}`, ...chosen.warnings] };
  }
}

/**
 * An unusable default must not stop every call: what its vendor has in its place answers, else one that is chosen, if possible of
 * the same provider. What was bound for this machine stays on it, or is refused with `error`.
 */
function insteadOfDefault(eligible: EligibleModels, name: string, error: AppError): Resolution {
  const { open, provider, request } = eligible;
  const { scope, rest } = splitProvider(eligible, name);
  const [first] = byPriority([...interpretationsOf(eligible, rest, scope)].at(0)?.rows ?? []);
  const successor = first && refusals.successorOf(eligible, first);
  if (successor && open.includes(successor))
    return resolveName(eligible, `${successor.provider}:${successor.id}`, 'replaces the default');
  const meant = scope ?? provider(first?.provider ?? '');
  const own = open.filter(model => (meant?.local ? provider(model.provider)?.local : model.provider === meant?.id));
  if (meant?.local && own.length === 0) throw error;
  const from = own.length > 0 && meant ? { provider: meant.id, always: false } : undefined;
  const narrowed = meant?.local ? { ...eligible, open: own } : { ...eligible, request: { from, ...request } };
  return resolveAuto(narrowed, automatic, request.effort);
}

function resolveName(eligible: EligibleModels, name: string, reason: string): Resolution {
  if (name.length > most.nameLength) throw refusals.malformedNameError(`is longer than ${most.nameLength} characters`);
  const wanted = autoAsk(name);
  if (wanted) return resolveAuto(eligible, name, wanted.effort ?? eligible.request.effort);
  // A provider that we know of, and that this installation does not have.
  const prefix = prefixOf(eligible, name);
  if (prefix !== undefined && settingOf(prefix)) throw refusals.unknownProviderError(eligible, prefix);
  const meaning = eligible.meanings.get(name) ?? findMatch(eligible, name);
  if (eligible.meanings.size >= most.rememberedNames) eligible.meanings.clear();
  eligible.meanings.set(name, meaning);
  return meaning.match ? resolveMatch(eligible, name, meaning.match, meaning, reason) : resolveUnknown(eligible, name);
}

/** `auto` may carry an effort; a budget says nothing before the model is known. */
function autoAsk(name: string): { effort?: Effort } | undefined {
  const split = splitSuffix(name);
  if (name.toLowerCase() === automatic) return {};
  if (split?.base.toLowerCase() !== automatic) return undefined;
  if (split.ask?.effort === undefined) throw refusals.unknownSuffixError(split.base, split.suffix);
  return split.ask;
}

/** A provider's name before the first colon, unless the whole is a model's id. */
function splitProvider(eligible: EligibleModels, name: string): { scope?: RosterProvider; rest: string } {
  const at = name.indexOf(':');
  if (at < 1 || eligible.roster.models.some(model => model.id === name)) return { rest: name };
  const scope = findProvider(eligible.roster, name.slice(0, at));
  return scope ? { scope, rest: name.slice(at + 1).trim() } : { rest: name };
}

function findMatch(eligible: EligibleModels, name: string): Meaning {
  const { scope, rest } = splitProvider(eligible, name);
  if (rest === '') throw refusals.malformedNameError(`lacks a model after "${name}"`);
  let known: Match | undefined;
  for (const reading of interpretationsOf(eligible, rest, scope)) {
    known ??= reading;
    const usable = servers(eligible, reading.rows, scope);
    if (usable.length > 0) return { match: reading, scope, servers: usable };
  }
  if (known) return { match: known, scope, servers: [] };
  const split = splitSuffix(rest);
  if (scope?.listComplete !== false && isUnknownSuffix(eligible, split, scope))
    throw refusals.unknownSuffixError(split.base, split.suffix);
  // What an open-ended provider is asked for by its own name may well exist: no guessing.
  const guessed = scope?.listComplete === false ? undefined : guessModel(eligible, rest, scope);
  // A guess never leads to what may not be used.
  const match = guessed?.rows.some(model => isRestriction(eligible.refusal(model))) ? undefined : guessed;
  return { match, scope, servers: match ? servers(eligible, match.rows, scope) : [] };
}

/** The usable rows of a model: those that bear the name, then its twins elsewhere, each by priority. */
function servers(eligible: EligibleModels, rows: readonly ModelInfo[], scope?: RosterProvider): ModelInfo[] {
  const named = byPriority(rows.filter(model => eligible.refusal(model) === undefined));
  if (scope && named.length === 0) return [];
  const twins = eligible.open.filter(model => !rows.includes(model) && rows.some(row => sameModel(row, model)));
  const dated = (model: ModelInfo) => rows.some(row => isDated(row, ownId(model)));
  const all = [...named, ...byPriority(named.length + twins.length > 0 ? twins : eligible.open.filter(dated))];
  const [first] = all;
  // What was bound for this machine stays on it.
  if (!first || !eligible.provider(first.provider)?.local) return all;
  return all.filter(model => eligible.provider(model.provider)?.local);
}

function resolveMatch(
  eligible: EligibleModels,
  name: string,
  { rows, how, suffix }: Match,
  { scope, servers: [first, ...others] }: Meaning,
  reason: string,
): Resolution {
  if (!first) {
    const model = scope ? undefined : refusals.offeredByAggregator(eligible, rows);
    if (model) return passOn(eligible, name, { model, suffix, warning: '' });
    throw scope && rows.some(model => eligible.refusal(model) === 'no_key')
      ? refusals.unconfiguredError(eligible, name, scope.id, rows)
      : refusals.refusedError(eligible, name, rows);
  }
  const settle = (model: ModelInfo) => settleFor(eligible, model, suffix);
  const settled = settle(first);
  const fitting = others.filter(model => unmetNeeds(eligible, model).length <= unmetNeeds(eligible, first).length);
  const effort = (suffix && settled.effort) ?? eligible.request.effort;
  const stand = eligible.request.allowFallback ? substitutes(eligible, first, [first, ...fitting], effort) : [];
  const corrected = how === 'spelling' || how === 'guess' ? { from: name, to: first.id } : undefined;
  return {
    candidates: [
      candidate(first, settled, corrected ? `${reason}, corrected from "${name}"` : reason),
      ...fitting.map(model => candidate(model, settle(model), `the same model at ${model.provider}`)),
      ...stand.map(offer => autoCandidate(offer, `if ${first.id} fails`)),
    ],
    requested: name,
    ...(corrected ? { corrected } : {}),
    warnings: [...(settled.warning ? [settled.warning] : []), ...unmetNeeds(eligible, first), ...retirement(first)],
  };
}

function resolveUnknown(eligible: EligibleModels, name: string): Resolution {
  const { scope, rest } = splitProvider(eligible, name);
  if (scope && !scope.configured) throw refusals.unconfiguredError(eligible, name, scope.id);
  const passed = refusals.passThrough(eligible, rest, scope);
  if (passed && eligible.refusal(passed.model)) throw refusals.refusedError(eligible, name, [passed.model]);
  if (passed) return passOn(eligible, name, passed);
  const unheard = refusals.unknownProviderPrefix(eligible, name);
  if (!scope && unheard !== undefined) throw refusals.unknownProviderError(eligible, unheard);
  if (eligible.open.length === 0) throw refusals.nothingAllowedError(eligible);
  throw refusals.unknownModelError(eligible, rest, scope?.id);
}

function passOn(eligible: EligibleModels, requested: string, { model, suffix, warning }: refusals.Passed): Resolution {
  const settled = settleFor(eligible, model, suffix);
  const warnings = [warning, settled.warning ?? '', ...unmetNeeds(eligible, model)].filter(Boolean);
  return { candidates: [candidate(model, settled, refusals.passedOnReason)], requested, warnings };
}

/** Other models that may answer for a named one, where the caller allows it. */
function substitutes(eligible: EligibleModels, first: ModelInfo, taken: readonly ModelInfo[], effort?: Effort) {
  const isLocal = (model: ModelInfo) => eligible.provider(model.provider)?.local === true;
  const pool = eligible.open.filter(
    model =>
      !taken.some(other => other === model || sameModel(other, model)) &&
      model.status === 'active' &&
      (!isLocal(first) || isLocal(model)) &&
      unmetNeeds(eligible, model).length <= unmetNeeds(eligible, first).length,
  );
  return choose(eligible, payable(pool.map(model => toOffer(eligible, model, effort))));
}

/** Prompts of which a window or the limits on costs hold less than this part of what the best one holds are too much for it. */
const nearlyAll = 0.6;

/** A model whose score is lower by more than this is no match for a prompt, however much of it its window holds. */
const decentScores = 6;

/** US dollars that another vendor may cost in any case to come before a second model of the first one. */
const nearUsd = 0.25;

function resolveAuto(eligible: EligibleModels, requested: string, effort: Effort | undefined): Resolution {
  const { open, request } = eligible;
  if (open.length === 0) throw refusals.nothingAllowedError(eligible);
  const { vision, window = 0, search } = request.plan?.needs ?? request.needs;
  const seeing = vision ? open.filter(model => model.input.includes('image')) : open;
  if (seeing.length === 0) throw refusals.noVisionError(eligible);
  const offers = seeing.map(model => toOffer(eligible, model, effort));
  const isWide = ({ model, holds }: Offer) => model.window >= window && holds >= 1;
  const wanted = wantedProvider(request, offers, isWide);
  if (wanted.length === 0) throw refusals.nothingAllowedError(eligible);
  const able = payable(wanted);
  const best = Math.max(...able.filter(isCurrent).map(({ model }) => model.score));
  const near = able.filter(({ model }) => model.score >= best - decentScores);
  const heldBest = Math.max(...near.map(({ holds }) => holds));
  const roomy = near.some(isWide) ? able.filter(isWide) : near.filter(({ holds }) => holds >= heldBest * nearlyAll);
  // An answer without a search is better than none: whoever asks says so in the reply.
  const searching = search ? roomy.filter(({ model }) => eligible.searches(model)) : [];
  const fitting = searching.length > 0 ? searching : roomy;
  const current = fitting.filter(isCurrent);
  const pool = current.length > 0 ? current : fitting;
  const others = payable(offers);
  const alike = searching.length > 0 ? others.filter(({ model }) => eligible.searches(model)) : others;
  const [first, ...following] = choose(eligible, pool, alike);
  if (!first) throw refusals.nothingAllowedError(eligible);
  const asked = (offer: Offer) => autoCandidate(offer, autoReason(offer, request));
  const fallbacks =
    request.allowFallback === false ? following.filter(({ model }) => sameModel(first.model, model)) : following;
  const widest = Math.max(...seeing.map(model => model.window));
  const fits = widest >= window;
  const warnings = [
    fits ? shortened(eligible, first) : `No model that may be used holds ${window} tokens; the widest holds ${widest}.`,
    noPriceWarning(eligible, first),
    otherThanBefore(eligible, first, offers),
  ].filter(Boolean);
  return { candidates: [asked(first), ...fallbacks.map(asked)], requested, warnings };
}

/** Those whose cost is known and within the limits, where there are such; else the cheapest one, which the limits refuse. */
function payable(offers: readonly Offer[]): readonly Offer[] {
  const priced = offers.filter(({ usd }) => usd !== undefined);
  const known = priced.length > 0 ? priced : offers;
  const held = known.filter(({ holds }) => holds > 0);
  return held.length > 0 ? held : known.toSorted((a, b) => (a.usd ?? 0) - (b.usd ?? 0)).slice(0, 1);
}

const isCurrent = ({ model }: Offer) => model.status === 'active';

/** The best of `pool`, in their order. Where one provider has them all, those `others` follow that hold most of the prompt. */
function choose(eligible: EligibleModels, pool: readonly Offer[], others: readonly Offer[] = []): Offer[] {
  const providers = new Set(pool.map(({ model }) => model.provider));
  const elsewhere = others.filter(
    other => providers.size === 1 && isCurrent(other) && !providers.has(other.model.provider),
  );
  const following = ranked(eligible, elsewhere).toSorted((a, b) => b.holds - a.holds);
  const { request, policy } = eligible;
  const mostUsd = ({ usd = 0 }: Offer) => (policy.prefer === 'cost' ? usd : Math.max(usd, nearUsd));
  const near = (offer: Offer, best: Offer) =>
    offer.model.score >= best.model.score - decentScores &&
    offer.holds >= best.holds * nearlyAll &&
    (offer.usd ?? 0) <= mostUsd(best) &&
    !request.ailing?.(offer.model);
  return spreadOverProviders([...ranked(eligible, pool), ...following], most.candidates, near);
}

/** Prices are weighed before what fails at this moment goes last: it may be well again by the time it is its turn. */
function ranked(eligible: EligibleModels, offers: readonly Offer[]): Offer[] {
  const { before, plan, prefers = plan?.prefers ?? [], ailing } = eligible.request;
  const place = ({ model }: Offer) => {
    if (isBefore(before, model)) return -1;
    return prefers.includes(model.provider) ? prefers.indexOf(model.provider) : prefers.length;
  };
  const byModel = new Map(offers.map(offer => [offer.model, offer]));
  const order = inOrder(eligible, [...byModel.keys()]).flatMap(model => byModel.get(model) ?? []);
  const wanted = order.toSorted((a, b) => place(a) - place(b));
  return overpricedLast(eligible, wanted).toSorted(
    (a, b) => Number(ailing?.(a.model) ?? false) - Number(ailing?.(b.model) ?? false),
  );
}

/** Why a thread goes on with another model than the one that was chosen before. */
function otherThanBefore({ request, searches }: EligibleModels, first: Offer, offers: readonly Offer[]): string {
  const { before, plan, needs } = request;
  if (!before || isBefore(before, first.model)) return '';
  const offer = offers.find(({ model }) => isBefore(before, model));
  const lacks = (plan?.needs ?? needs).search && offer && !searches(offer.model) && 'cannot search the web';
  const price = offer?.usd === undefined ? '' : ` up to ${dollars(offer.usd)}`;
  const why = lacks || (offer ? `suits this call less (it could cost${price})` : 'cannot be used for this call');
  return `This thread used ${before.model}, which ${why}; another model was chosen.`;
}

/** The models in the order of the category, before anybody's preference. */
export function inOrder(eligible: EligibleModels, pool: readonly ModelInfo[]): ModelInfo[] {
  const order = defaultOrder(eligible.open, eligible.request.category)?.filter(model => pool.includes(model)) ?? [];
  if (order.length === 0) return [...pool];
  const thinking = pool.filter(
    model => !order.includes(model) && (model.reasoning || eligible.request.category !== 'extended_reasoning'),
  );
  return [...order, ...thinking];
}

function autoCandidate({ model, settled, maxPrompt }: Offer, reason: string): Candidate {
  return { ...candidate(model, settled, reason), auto: true, ...(maxPrompt !== undefined && { maxPrompt }) };
}

function autoReason({ model, usd }: Offer, { category, needs, plan }: ModelRequest): string {
  const price = averagePrice(model);
  const facts = [
    `score ${model.score}`,
    model.reasoning ? 'reasons' : 'answers at once',
    price === undefined ? 'price unknown' : `$${price.toFixed(2)} per million tokens`,
    ...(usd ? [`up to ${dollars(usd)} for this call`] : []),
    ...(needs.vision ? ['sees images'] : []),
    ...(needs.window ? [`window ${model.window}`] : []),
  ];
  const planned = plan ? `; ${plan.reasons.join('; ')}` : '';
  return `chosen for ${category}: ${facts.join(', ')}${planned}`;
}

/** A suffix is taken at its word or dropped; a general wish is brought to the nearest the model takes. */
const settleFor = (eligible: EligibleModels, model: ModelInfo, suffix: Suffixed | undefined) =>
  suffix ? resolveSuffix(model, suffix) : resolveEffort(model, eligible.request.effort, eligible.request.toolEffort);

function candidate(model: ModelInfo, { effort, thinkingBudget }: Partial<Candidate>, reason: string): Candidate {
  return { model, effort, thinkingBudget, reason };
}

function unmetNeeds({ request: { needs } }: EligibleModels, model: ModelInfo): string[] {
  const { vision, window = 0 } = needs;
  return [
    vision && !model.input.includes('image') && `${model.id} cannot see images.`,
    window > model.window && `${model.id} holds ${model.window} tokens; the call would need ${window}.`,
  ].filter(unmet => unmet !== undefined && unmet !== false);
}

function retirement({ id, status, life = {} }: ModelInfo): string[] {
  const when = life.retired === undefined ? ', or soon will be' : ` on ${life.retired}`;
  const instead = life.replacedBy === undefined ? '' : `; use ${life.replacedBy} instead`;
  return status === 'deprecated' ? [`${id} is retired by its vendor${when}${instead}.`] : [];
}

/** With the manager's plan, where there is a task to plan. The plan only ever orders and narrows what is open. */
export function applyRequirements(eligible: EligibleModels): EligibleModels {
  const { request, searches, policy } = eligible;
  if (!request.task) return eligible;
  const models = inOrder(eligible, eligible.open);
  const isUnwell = (id: string) => models.every(model => model.provider !== id || request.ailing?.(model) === true);
  const plan = requirementsOf({ ...request.task, models, searches, isUnwell, webSearch: policy.webSearch ?? 'auto' });
  return { ...eligible, request: { ...request, plan } };
}
