import { distance } from 'fastest-levenshtein';
import type { Candidate, Effort, ModelInfo } from '../../core/model.ts';
import { tokenFactor } from '../../core/tokens.ts';
import { dollars } from '../../core/usage.ts';
import { type BudgetHeadroom, quote } from '../budget.ts';
import {
  isVariant,
  madeBy,
  makerOf,
  modelKey,
  nameKey,
  nameWords,
  ownId,
  resolveEffort,
  type Suffixed,
  sameModel,
  splitAsk,
  splitDate,
  splitSuffix,
  undatedKey,
} from './names.ts';
import type { Category, ModelRequest, Roster, RosterProvider, RoutingPolicy } from './roster.ts';
import { averagePrice, createRestrictions, isOffline, isQuick, priorityOf, rankModels } from './roster.ts';

/** A word a model is known by, taken apart. */
type Name = ReturnType<typeof readName> & { model: ModelInfo };

/** Shorter texts begin or occur in too many names by chance. */
const leastPart = 4;

const leastLetters = 5;

const maxEdits = 2;

/** Models whose name differs from the text in case and separators alone; empty when that is not one model. */
export function sameSpelling(text: string, models: readonly ModelInfo[]): ModelInfo[] {
  const whole = nameKey(text);
  if (whole === '') return [];
  const named = models.filter(
    model => nameKey(model.id) === whole || model.aliases.some(alias => nameKey(alias) === whole),
  );
  const key = modelKey(text);
  const maker = makerOf(text);
  const found =
    named.length > 0 ? named : models.filter(model => modelKey(ownId(model)) === key && madeBy(maker, model));
  return new Set(found.map(model => modelKey(ownId(model)))).size === 1 ? found : [];
}

/**
 * The one model that a mistyped or shortened name means, or undefined. In this order: the newest of its dated versions;
 * the only name it begins, or occurs in; the only name within two edits of letters. Numbers must agree in every case,
 * and a cheaper model that the text could mean as well forbids the guess.
 */
export function correctName(text: string, models: readonly ModelInfo[], costOf: EligibleModels['cost']) {
  const typed = readName(text);
  if (typed.key === '') return undefined;
  const maker = makerOf(text);
  const names = models
    .filter(model => madeBy(maker, model))
    .flatMap(model => [model.id, ...model.aliases].map(name => ({ model, ...readName(name) })))
    .filter(name => name.numbers === typed.numbers && (typed.date === '' || typed.date === name.date));
  const isVersion = ({ date, key }: Name) => date !== '' && key.replace(/-(preview|latest)$/, '') === typed.key;
  const versions = typed.date === '' ? names.filter(isVersion) : [];
  const near = names.filter(
    name =>
      typed.letters.length >= leastLetters &&
      Math.abs(typed.letters.length - name.letters.length) <= maxEdits &&
      distance(typed.letters, name.letters) <= maxEdits,
  );
  const choice = newestOf(versions) ?? onlyOne(partsOf(typed, names)) ?? onlyOne(near);
  if (!choice) return undefined;
  const shorter = names.filter(name => typed.key.startsWith(`${name.key}-`));
  const plausible = [...versions, ...partsOf(typed, names), ...near, ...shorter];
  return plausible.some(name => costOf(name.model) < costOf(choice)) ? undefined : choice;
}

function readName(text: string) {
  const { words, date } = splitDate(nameWords(text.slice(text.lastIndexOf('/') + 1)));
  return {
    /** Letters and digits joined by hyphens, date left out. */
    key: words.join('-'),
    /** The numbers in it, in order, date left out. */
    numbers: words.filter(word => /\d/.test(word)).join('-'),
    letters: words.filter(word => !/\d/.test(word)).join(''),
    date,
  };
}

function partsOf(typed: Omit<Name, 'model'>, names: readonly Name[]): Name[] {
  if (typed.key.length < leastPart) return [];
  const begun = names.filter(name => name.key.startsWith(typed.key));
  return begun.length > 0 ? begun : names.filter(name => name.key.includes(typed.key));
}

/** The model behind all these names when it is one; of its rows the plain id first, then the newest date. */
function onlyOne(names: readonly Name[]): ModelInfo | undefined {
  const models = new Set(names.map(name => undatedKey(name.model.id)));
  if (models.size !== 1) return undefined;
  const undated = names.filter(name => name.date === '');
  return newestOf(undated.length > 0 ? undated : names);
}

/** Where several are as new, the one of the provider that is nearest. */
const newestOf = (names: readonly Name[]): ModelInfo | undefined =>
  names.toSorted(
    (a, b) => b.date.localeCompare(a.date) || priorityOf(a.model.provider) - priorityOf(b.model.provider),
  )[0]?.model;

/** The ids nearest to a text, best first, each model once. For suggestions only: nothing is chosen by it. */
export function nearestModels(text: string, models: readonly ModelInfo[], count: number): string[] {
  const typed = nameKey(text);
  const words = new Set(nameWords(text));
  const gap = (name: string) => {
    const key = nameKey(name);
    const shared = [...new Set(nameWords(name))].filter(word => words.has(word)).length;
    return distance(typed, key) / Math.max(typed.length, key.length, 1) - shared / Math.max(words.size, 1);
  };
  const ranked = models
    .map(model => ({ model, gap: Math.min(...[model.id, ...model.aliases].map(gap)) }))
    .sort((a, b) => a.gap - b.gap || priorityOf(a.model.provider) - priorityOf(b.model.provider));
  const seen = new Set<string>();
  const unseen = ranked.filter(({ model }) => !seen.has(undatedKey(model.id)) && seen.add(undatedKey(model.id)));
  return unseen.slice(0, count).map(({ model }) => model.id);
}

/** What one resolution looks at: the request, what there is, and what is permitted. */
export type EligibleModels = ReturnType<typeof eligibleModels>;

/** What requests of one category have in common. */
interface Ranked {
  /** What may be chosen without being named, the best for the request's category first. */
  open: readonly ModelInfo[];
  /** What names were found to mean, as long as all of this is the same. */
  meanings: Map<string, Meaning>;
}

/** What all requests have in common as long as roster and policy are the same. */
function sceneOf(roster: Roster, policy: RoutingPolicy) {
  const providers = new Map(roster.providers.map(provider => [provider.id, provider]));
  const refusal = createRestrictions(roster, policy);
  const isLocal = (id: string) => providers.get(id)?.local === true;
  const mayOpen = (model: ModelInfo) =>
    policy.offline ? isOffline(model.provider) : providers.get(model.provider)?.onlyByName === false;
  const searches = (model: ModelInfo) => providers.get(model.provider)?.searches?.(model) ?? false;
  const cachesApart = (id: string) => providers.get(id)?.cachesApart === true;
  return {
    roster,
    policy,
    provider: (id: string) => providers.get(id),
    refusal,
    searches,
    pricing: { isLocal, cachesApart, searches, allowUnpriced: policy.allowUnpriced ?? false },
    /** Dollars a million tokens; nothing for local models, infinite where no price is named. */
    cost: (model: ModelInfo) => averagePrice(model) ?? (isLocal(model.provider) ? 0 : Number.POSITIVE_INFINITY),
    permitted: roster.models.filter(model => mayOpen(model) && !model.unlisted && !refusal(model)),
    /** All that are permitted, by category, as far as one was asked for. */
    ranked: new Map<Category, Ranked>(),
  };
}

/** A roster is made anew when anything in it changes. */
const scenes = new WeakMap<Roster, ReturnType<typeof sceneOf>>();

export function eligibleModels(request: ModelRequest, roster: Roster, policy: RoutingPolicy) {
  const known = scenes.get(roster);
  const scene = known?.policy === policy ? known : sceneOf(roster, policy);
  scenes.set(roster, scene);
  const { permitted, ranked } = scene;
  const { avoid, category } = request;
  const suited = avoid ? permitted.filter(model => !avoid(model)) : permitted;
  const rank = () => rankModels(suited, category, policy.prefer, scene.pricing.isLocal);
  const found: Ranked = (avoid ? undefined : ranked.get(category)) ?? { open: rank(), meanings: new Map() };
  if (!avoid) ranked.set(category, found);
  // Whether some that may be chosen are missing because they can't do what is asked.
  const avoids = suited.length < permitted.length;
  return { ...scene, ...found, request, avoids };
}

/** A model that may be chosen, with what the call may cost there. */
export type Offer = ReturnType<typeof toOffer>;

/** Searches that a call may come to; the operator may allow fewer. */
const searchRounds = { maxResults: 10, maxRounds: 3 };

/** US dollars that a call with a model may cost that nobody named, and what limits them; infinite where nothing does. */
function autoLimit({ request, policy }: EligibleModels): Pick<BudgetHeadroom, 'name' | 'usd'> {
  const { left, sharers = 1 } = request;
  const usual = policy.autoCostLimit ?? Number.POSITIVE_INFINITY;
  const { name, free } = left && left.free <= usual ? left : { name: 'AUTO_COST_LIMIT' as const, free: usual };
  return { name, usd: Math.max(0, free / sharers) };
}

/** What to say where a limit on costs lets less in than the prompt has. */
export function shortened(eligible: EligibleModels, { holds, maxPrompt }: Offer): string {
  if (maxPrompt === undefined || holds >= 1 || holds === 0) return '';
  const { name, usd } = autoLimit(eligible);
  return `The prompt is kept to about ${maxPrompt} tokens, so that this call costs at most ${dollars(usd)}, which ${name} leaves for a model that was chosen; what does not fit is outlined or left out.`;
}

/** What to say where only models without a known price are left: the limit is of no use then. */
export function noPriceWarning({ policy: { autoCostLimit } }: EligibleModels, { usd, model }: Offer): string {
  if (usd !== undefined || autoCostLimit === undefined) return '';
  return `No price is known for ${model.provider}:${model.id}, so AUTO_COST_LIMIT ${dollars(autoCostLimit)} cannot be kept for this call.`;
}

export function toOffer(eligible: EligibleModels, model: ModelInfo, effort: Effort | undefined) {
  const { request, pricing } = eligible;
  const { search, window = 0 } = request.plan?.needs ?? request.needs;
  const tokens = request.promptTokens ?? request.task?.estimatedTokens ?? window;
  const settled = resolveEffort(model, effort, request.toolEffort);
  const candidate: Candidate = { model, ...settled, reason: '' };
  const limits = { limit: autoLimit(eligible).usd, ...(search && { webSearch: searchRounds }) };
  return { model, settled, ...quote(candidate, tokens, pricing, limits) };
}

/** Models at most `scores` below the best serve as well; a better liked one may cost `times` what the cheapest does. */
const tolerance = { usual: { scores: 3, times: 3 }, cost: { scores: 5, times: 1.5 } };

/** US dollars from which a model that was made to be quick serves a hard task about as well as a thorough one. */
const thoroughUsd = 0.5;

/** US dollars that a better liked model may cost where another serves for nothing. */
const insteadOfFree = 0.25;

/** The offers in their order, but those last that cost far more than another one that serves about as well. */
export function overpricedLast({ request, policy: { prefer } }: EligibleModels, offers: readonly Offer[]): Offer[] {
  const { ailing, before, category } = request;
  const { scores, times } = prefer === 'cost' ? tolerance.cost : tolerance.usual;
  const price = ({ model, usd = Number.POSITIVE_INFINITY }: Offer) => {
    // The beginning of the prompt may be in its vendor's cache.
    const saved =
      isBefore(before, model) && model.price ? model.price.in - (model.price.cacheRead ?? model.price.in) : 0;
    return Math.max(0, usd - ((before?.tokens ?? 0) * tokenFactor(model.id) * saved) / 1_000_000);
  };
  const sound = offers.filter(({ model }) => !ailing?.(model));
  const able = sound.length > 0 ? sound : offers;
  const best = Math.max(...able.map(({ model }) => model.score));
  const alike = able.filter(({ model }) => model.score >= best - scores);
  const thorough = alike.filter(({ model }) => category !== 'extended_reasoning' || !isQuick(model));
  const careful = Math.min(...thorough.map(price));
  const cheapest = careful < thoroughUsd && prefer !== 'cost' ? careful : Math.min(...alike.map(price));
  const most = cheapest === 0 ? insteadOfFree : cheapest * times;
  const isDear = (offer: Offer) => price(offer) > most;
  return [...offers.filter(offer => !isDear(offer)), ...offers.filter(isDear).toSorted((a, b) => price(a) - price(b))];
}

/** Whether a thread's automatic choice took this model before. */
export const isBefore = (before: ModelRequest['before'], { provider, id }: ModelInfo): boolean =>
  before?.model === `${provider}:${id}`;

/** Sorts rows by how near their provider is: the maker before an aggregator. */
export const byPriority = (models: readonly ModelInfo[]): ModelInfo[] =>
  models.toSorted((a, b) => priorityOf(a.provider) - priorityOf(b.provider));

/** What a name was found to mean, and who serves it: the best first. */
export type Meaning = { match?: Match; scope?: RosterProvider; servers: readonly ModelInfo[] };

export interface Match {
  /** The rows that bear the name itself: one model, at one provider or several. */
  rows: readonly ModelInfo[];
  how: 'id' | 'alias' | 'spelling' | 'guess';
  /** The suffix that was taken off the name, when that made it known. */
  suffix?: Suffixed | undefined;
}

/**
 * Everything a name can mean, the plainest reading first; guesses are not among them. Each is looked for when it is asked
 * for: comparing spellings is by far the most work, and a name that is an id needs none of it.
 */
export function* interpretationsOf(eligible: EligibleModels, text: string, scope?: RosterProvider): Generator<Match> {
  const rows = eligible.roster.models.filter(({ provider }) =>
    scope ? provider === scope.id : eligible.provider(provider)?.onlyByPrefix !== true,
  );
  const { id: base, suffix } = splitAsk(text);
  function* both(how: Match['how'], find: (name: string) => readonly ModelInfo[]): Generator<Match> {
    const named = find(text);
    if (named.length > 0) yield { how, rows: named };
    const bare = suffix ? find(base) : [];
    if (bare.length > 0) yield { how, rows: bare, suffix };
  }
  yield* both('id', name => byId(rows, name));
  yield* both('id', name => byVariant(rows, name));
  yield* both('alias', name => byAlias(eligible, rows, name));
  yield* both('spelling', name => byIdInAnyCase(rows, name));
  if (!isUnknownSuffix(eligible, splitSuffix(text), scope)) yield* both('spelling', name => sameSpelling(name, rows));
}

/** Whether a known name has something after its colon that means nothing. */
export function isUnknownSuffix(eligible: EligibleModels, split?: Suffixed, scope?: RosterProvider): split is Suffixed {
  if (!split || split.ask) return false;
  const rows = eligible.roster.models.filter(model => scope === undefined || model.provider === scope.id);
  const { base } = split;
  return [byId(rows, base), byIdInAnyCase(rows, base), byAlias(eligible, rows, base)].some(found => found.length > 0);
}

/** The one model a mistyped name means: among configured providers' models first, then among all, to say what is missing. */
export function guessModel(eligible: EligibleModels, text: string, scope?: RosterProvider): Match | undefined {
  const { id: name, suffix } = splitAsk(text);
  const rows = eligible.roster.models.filter(model =>
    scope ? model.provider === scope.id : eligible.provider(model.provider)?.onlyByName !== true,
  );
  const configured = rows.filter(model => eligible.provider(model.provider)?.configured === true);
  const served = configured.filter(({ status }) => status !== 'retired');
  const among = (pool: readonly ModelInfo[]) => correctName(name, pool, eligible.cost);
  const model = among(served) ?? among(configured) ?? among(rows);
  return model && { how: 'guess', rows: [model], suffix };
}

function byId(rows: readonly ModelInfo[], name: string): ModelInfo[] {
  const found = rows.filter(model => model.id === name);
  return found.length > 0 ? byPriority(found) : rows.filter(model => sameTag(model, name));
}

const byIdInAnyCase = (rows: readonly ModelInfo[], name: string): ModelInfo[] =>
  rows.filter(model => model.id.toLowerCase() === name.toLowerCase());

/** Ollama takes a name without a tag for its `latest`. */
const sameTag = ({ provider, id }: ModelInfo, name: string): boolean =>
  provider === 'ollama' && (id === `${name}:latest` || `${id}:latest` === name);

/** A row for a known OpenRouter model on a route of its own, such as `:nitro`. What the route costs is not known. */
function byVariant(rows: readonly ModelInfo[], name: string): ModelInfo[] {
  const split = splitSuffix(name);
  if (!split || !isVariant(split.suffix)) return [];
  const [base] = rows.filter(model => model.provider === 'openrouter' && model.id === split.base);
  if (!base) return [];
  const { price: _, ...rest } = base;
  const route = split.suffix.toLowerCase();
  return [
    { ...rest, id: `${base.id}:${route}`, aliases: [], ...(route === 'free' ? { price: { in: 0, out: 0 } } : {}) },
  ];
}

/** The alias's owner, and where that one is out of reach the same model in the rows at hand. */
function byAlias(eligible: EligibleModels, rows: readonly ModelInfo[], name: string): ModelInfo[] {
  const alias = name.toLowerCase();
  const owner = eligible.roster.models.find(model => model.aliases.includes(alias));
  if (!owner) return [];
  return rows.includes(owner) ? [owner] : byPriority(rows.filter(model => sameModel(owner, model)));
}
