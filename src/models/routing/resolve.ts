import { isAppError } from '../../core/errors.ts';
import type { Candidate, Effort, ModelInfo } from '../../core/model.ts';
import {
  byPriority,
  type EligibleModels,
  eligibleModels,
  guess,
  interpretationsOf,
  isUnknownSuffix,
  type Match,
} from './eligible-models.ts';
import { type ResolvedEffort, resolveEffort, resolveSuffix, type Suffixed, sameModel, splitSuffix } from './names.ts';
import {
  malformedNameError,
  nothingAllowedError,
  noVisionError,
  passedOnReason,
  passThrough,
  refusedError,
  unconfiguredError,
  unknownModelError,
  unknownProviderError,
  unknownSuffixError,
} from './refusals.ts';
import { type ModelRequirements, requirementsOf } from './requirements.ts';
import {
  averagePrice,
  defaultOrder,
  findProvider,
  type ModelRequest,
  mayServeMore,
  type Roster,
  type RosterProvider,
  type RoutingPolicy,
  settingOf,
  spreadOverProviders,
} from './roster.ts';

/** What stands behind the colon of models that come in several sizes: `8b`, `8x7b-instruct-q4_K_M`, `latest`, `cloud`. */
const tag = /^(?:latest|cloud|e?\d+(?:x\d+)?(?:\.\d+)?[bm](?:[-.].*)?|.*-cloud|.*q\d(?:_\w+)?)$/i;

/** The provider that a name begins with, when it is one we know of and this installation does not have. */
export function missingProvider(eligible: EligibleModels, name: string): string | undefined {
  const prefix = prefixOf(eligible, name);
  return prefix !== undefined && settingOf(prefix) ? prefix : undefined;
}

/**
 * What a name that nothing bears puts before its colon, when that can only be meant for a provider: what follows is a model
 * that we know, or is neither a suffix nor the tag of a local model.
 */
export function unknownProviderPrefix(eligible: EligibleModels, name: string): string | undefined {
  const prefix = prefixOf(eligible, name);
  if (prefix === undefined) return undefined;
  const rest = name.slice(prefix.length + 1).trim();
  if (rest === '') return undefined;
  if (interpretationsOf(eligible, rest).next().done === false) return prefix;
  const isModel = /\d/.test(prefix) || tag.test(rest) || splitSuffix(name)?.ask !== undefined;
  return isModel ? undefined : prefix;
}

/** A plain word before the first colon that is no provider of this installation; the whole is no model's id. */
function prefixOf({ roster }: EligibleModels, name: string): string | undefined {
  const prefix = /^([a-z][\w-]*):/i.exec(name)?.[1];
  if (prefix === undefined || findProvider(roster, prefix)) return undefined;
  return roster.models.some(model => model.id === name) ? undefined : prefix.toLowerCase();
}

/** Which models may answer a call, and how that was decided. */
export interface Resolution {
  /** At least one, best first. */
  candidates: Candidate[];
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

const maxCandidates = 3;

const maxNameLength = 200;

/**
 * Chooses the models for one call. Pure. Throws `MODEL_NOT_FOUND` (class `unknown`, `restricted`, `no_key`, `no_provider`
 * or `unmet_needs`), `PROVIDER_NOT_FOUND`, `INVALID_INPUT_FORMAT` for a suffix that means nothing, and `CONFIG` when no
 * provider is configured at all.
 */
export function resolveModel(request: ModelRequest, roster: Roster, policy: RoutingPolicy): Resolution {
  return resolveIn(eligibleModels(request, roster, policy), policy);
}

/** The same for a scene that was looked at before. */
export function resolveIn(eligible: EligibleModels, policy: RoutingPolicy): Resolution {
  const { request } = eligible;
  const name = request.name?.trim();
  if (name) return resolveName(eligible, name, 'asked for by name');
  const byDefault = policy.defaultModel?.trim();
  if (!byDefault) return resolveAuto(eligible, automatic, request.effort);
  try {
    return resolveName(eligible, byDefault, 'the default model');
  } catch (error) {
    // An unusable default must not stop every call; anything but a name that fails to resolve goes on.
    if (!isAppError(error) || error.kind !== 'input') throw error;
    const chosen = resolveAuto(eligible, automatic, request.effort);
    return { ...chosen, warnings: [`The default model was passed over: ${error.message}`, ...chosen.warnings] };
  }
}

function resolveName(eligible: EligibleModels, name: string, reason: string): Resolution {
  if (name.length > maxNameLength) throw malformedNameError(`is longer than ${maxNameLength} characters`);
  const wanted = autoAsk(name);
  if (wanted) return resolveAuto(eligible, name, wanted.effort ?? eligible.request.effort);
  const missing = missingProvider(eligible, name);
  if (missing !== undefined) throw unknownProviderError(eligible, missing);
  const { match, scope } = findMatch(eligible, name);
  if (match) return resolveMatch(eligible, name, match, scope, reason);
  return resolveUnknown(eligible, name);
}

/** `auto` may carry an effort; a budget says nothing before the model is known. */
function autoAsk(name: string): { effort?: Effort } | undefined {
  const split = splitSuffix(name);
  if (name.toLowerCase() === automatic) return {};
  if (split?.base.toLowerCase() !== automatic) return undefined;
  if (split.ask?.effort === undefined) throw unknownSuffixError(split.base, split.suffix);
  return { effort: split.ask.effort };
}

/** A provider's name before the first colon, unless the whole is a model's id. */
function splitProvider(eligible: EligibleModels, name: string): { scope?: RosterProvider; rest: string } {
  const at = name.indexOf(':');
  if (at < 1 || eligible.roster.models.some(model => model.id === name)) return { rest: name };
  const scope = findProvider(eligible.roster, name.slice(0, at));
  return scope ? { scope, rest: name.slice(at + 1).trim() } : { rest: name };
}

function findMatch(eligible: EligibleModels, name: string): { match?: Match; scope?: RosterProvider } {
  const { scope, rest } = splitProvider(eligible, name);
  if (rest === '') throw malformedNameError(`lacks a model after "${name}"`);
  let known: Match | undefined;
  for (const reading of interpretationsOf(eligible, rest, scope)) {
    known ??= reading;
    if (servers(eligible, reading.rows, scope).length > 0) return { match: reading, ...(scope ? { scope } : {}) };
  }
  if (known) return { match: known, ...(scope ? { scope } : {}) };
  const split = splitSuffix(rest);
  if ((!scope || !mayServeMore(scope)) && isUnknownSuffix(eligible, split, scope)) {
    throw unknownSuffixError(split.base, split.suffix);
  }
  // What an open-ended provider is asked for by its own name may well exist: no guessing.
  const guessed = scope && mayServeMore(scope) ? undefined : guess(eligible, rest, scope);
  // A guess never leads to what may not be used.
  if (!guessed || guessed.rows.some(model => isForbidden(eligible, model))) return scope ? { scope } : {};
  return { match: guessed, ...(scope ? { scope } : {}) };
}

function isForbidden(eligible: EligibleModels, model: ModelInfo): boolean {
  const why = eligible.refusal(model);
  return why !== undefined && why !== 'no_key' && why !== 'no_provider';
}

/** The usable rows of a model: those that bear the name, then its twins elsewhere, each by priority. */
function servers(eligible: EligibleModels, rows: readonly ModelInfo[], scope?: RosterProvider): ModelInfo[] {
  const named = byPriority(rows.filter(model => eligible.refusal(model) === undefined));
  if (scope && named.length === 0) return [];
  const twins = eligible.open.filter(model => !rows.includes(model) && rows.some(row => sameModel(row, model)));
  const all = [...named, ...byPriority(twins)];
  const [first] = all;
  // What was bound for this machine stays on it.
  if (!first || !eligible.provider(first.provider)?.local) return all;
  return all.filter(model => eligible.provider(model.provider)?.local);
}

function resolveMatch(
  eligible: EligibleModels,
  name: string,
  { rows, how, suffix }: Match,
  scope: RosterProvider | undefined,
  reason: string,
): Resolution {
  const [first, ...others] = servers(eligible, rows, scope);
  if (!first) {
    throw scope && !scope.configured
      ? unconfiguredError(eligible, name, scope.id, rows)
      : refusedError(eligible, name, rows);
  }
  const settle = (model: ModelInfo) => settleFor(eligible, model, suffix);
  const settled = settle(first);
  const fitting = others.filter(model => unmetNeeds(eligible, model).length <= unmetNeeds(eligible, first).length);
  const stand = eligible.request.allowFallback ? substitutes(eligible, first, [first, ...fitting]) : [];
  const corrected = how === 'spelling' || how === 'guess' ? { from: name, to: first.id } : undefined;
  return {
    candidates: [
      candidate(first, settled, corrected ? `${reason}, corrected from "${name}"` : reason),
      ...fitting.map(model => candidate(model, settle(model), `the same model at ${model.provider}`)),
      ...stand.map(model =>
        candidate(model, resolveEffort(model, settled.effort ?? eligible.request.effort), `if ${first.id} fails`),
      ),
    ],
    requested: name,
    ...(corrected ? { corrected } : {}),
    warnings: [...(settled.warning ? [settled.warning] : []), ...unmetNeeds(eligible, first), ...retirement(first)],
  };
}

function resolveUnknown(eligible: EligibleModels, name: string): Resolution {
  const { scope, rest } = splitProvider(eligible, name);
  if (scope && !scope.configured) throw unconfiguredError(eligible, name, scope.id);
  const passed = passThrough(eligible, rest, scope);
  if (passed) {
    const why = eligible.refusal(passed.model);
    if (why) throw refusedError(eligible, name, [passed.model]);
    const settled = settleFor(eligible, passed.model, passed.suffix);
    return {
      candidates: [candidate(passed.model, settled, passedOnReason)],
      requested: name,
      warnings: [passed.warning, ...(settled.warning ? [settled.warning] : []), ...unmetNeeds(eligible, passed.model)],
    };
  }
  const unheard = unknownProviderPrefix(eligible, name);
  if (!scope && unheard !== undefined) throw unknownProviderError(eligible, unheard);
  if (eligible.open.length === 0) throw nothingAllowedError(eligible);
  throw unknownModelError(eligible, rest, scope?.id);
}

/** Other models that may answer for a named one, where the caller allows it. */
function substitutes(eligible: EligibleModels, first: ModelInfo, taken: readonly ModelInfo[]): ModelInfo[] {
  const isLocal = (model: ModelInfo) => eligible.provider(model.provider)?.local === true;
  const pool = eligible.open.filter(
    model =>
      !taken.some(other => other === model || sameModel(other, model)) &&
      model.status === 'active' &&
      (!isLocal(first) || isLocal(model)) &&
      unmetNeeds(eligible, model).length <= unmetNeeds(eligible, first).length,
  );
  return choose(eligible, pool);
}

function resolveAuto(eligible: EligibleModels, requested: string, effort: Effort | undefined): Resolution {
  const { open, request } = eligible;
  if (open.length === 0) throw nothingAllowedError(eligible);
  const { vision, window = 0, search } = request.plan?.needs ?? request.needs;
  const seeing = vision ? open.filter(model => model.input.includes('image')) : open;
  if (seeing.length === 0) throw noVisionError(eligible);
  const wide = seeing.filter(model => model.window >= window);
  const widest = Math.max(...seeing.map(model => model.window));
  const roomy = wide.length > 0 ? wide : seeing.filter(model => model.window === widest);
  // An answer without a search is better than none: whoever asks says so in the reply.
  const searching = search ? roomy.filter(eligible.searches) : [];
  const fitting = searching.length > 0 ? searching : roomy;
  const current = fitting.filter(model => model.status === 'active');
  const pool = current.length > 0 ? current : fitting;
  const [first, ...others] = choose(eligible, pool);
  const chosen =
    first && request.allowFallback === false
      ? [first, ...others.filter(other => sameModel(first, other))]
      : [first, ...others].filter(model => model !== undefined);
  return {
    candidates: chosen.map(model => candidate(model, resolveEffort(model, effort), autoReason(model, request))),
    requested,
    warnings: wide.length > 0 ? [] : [`No model that may be used holds ${window} tokens; the widest holds ${widest}.`],
  };
}

function choose(eligible: EligibleModels, pool: readonly ModelInfo[]): ModelInfo[] {
  const { plan, prefers = plan?.prefers ?? [] } = eligible.request;
  const place = ({ provider }: ModelInfo) => (prefers.includes(provider) ? prefers.indexOf(provider) : prefers.length);
  const wanted = inOrder(eligible, pool).toSorted((a, b) => place(a) - place(b));
  return spreadOverProviders(soundFirst(eligible, wanted), maxCandidates);
}

/** What fails at this moment comes last: it may be well again by the time it is its turn. */
function soundFirst({ request: { ailing } }: EligibleModels, models: readonly ModelInfo[]): readonly ModelInfo[] {
  if (!ailing) return models;
  return [...models.filter(model => !ailing(model)), ...models.filter(model => ailing(model))];
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

function autoReason(model: ModelInfo, { category, needs, plan }: ModelRequest): string {
  const price = averagePrice(model);
  const facts = [
    `score ${model.score}`,
    model.reasoning ? 'reasons' : 'answers at once',
    price === undefined ? 'price unknown' : `$${price.toFixed(2)} per million tokens`,
    ...(needs.vision ? ['sees images'] : []),
    ...(needs.window ? [`window ${model.window}`] : []),
  ];
  const planned = plan ? `; ${plan.reasons.join('; ')}` : '';
  return `chosen for ${category}: ${facts.join(', ')}${planned}`;
}

/** A suffix is taken at its word or dropped; a general wish is brought to the nearest the model takes. */
function settleFor(eligible: EligibleModels, model: ModelInfo, suffix: Suffixed | undefined): ResolvedEffort {
  if (!suffix) return resolveEffort(model, eligible.request.effort);
  return resolveSuffix(model, suffix);
}

function candidate(model: ModelInfo, { effort, thinkingBudget }: ResolvedEffort, reason: string): Candidate {
  return {
    model,
    ...(effort === undefined ? {} : { effort }),
    ...(thinkingBudget === undefined ? {} : { thinkingBudget }),
    reason,
  };
}

function unmetNeeds({ request: { needs } }: EligibleModels, model: ModelInfo): string[] {
  const unmet: string[] = [];
  if (needs.vision && !model.input.includes('image')) unmet.push(`${model.id} cannot see images.`);
  if (needs.window !== undefined && needs.window > model.window) {
    unmet.push(`${model.id} holds ${model.window} tokens; the call would need ${needs.window}.`);
  }
  return unmet;
}

function retirement(model: ModelInfo): string[] {
  return model.status === 'deprecated' ? [`${model.id} is retired by its vendor, or soon will be.`] : [];
}

/** The request with the manager's plan, where there is a task to plan. The plan only ever orders and narrows what is open. */
export function applyRequirements(eligible: EligibleModels, policy: RoutingPolicy, year: number): ModelRequest {
  const { request } = eligible;
  const { task } = request;
  if (!task) return request;
  const models = inOrder(eligible, eligible.open);
  const plan = requirementsOf({
    ...task,
    models,
    searches: eligible.searches,
    isUnwell: id => models.every(model => model.provider !== id || request.ailing?.(model) === true),
    webSearch: policy.webSearch ?? 'auto',
    year,
  });
  return { ...request, plan };
}
