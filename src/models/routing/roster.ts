import type { Effort, ModelInfo } from '../../core/model.ts';
import type { BudgetHeadroom } from '../budget.ts';
import type { ProviderDefinition } from '../provider.ts';
import { makerOf, modelKey, ownId, undatedKey, vendorOf } from './names.ts';
import type { ManagerRequest, ModelRequirements, TaskProfile } from './requirements.ts';

/** What a tool is after: depth, speed, or something between. */
export type Category = 'extended_reasoning' | 'fast_response' | 'balanced';

/** Which model a call asks for, and what it must be able to do. */
export interface ModelRequest {
  /** As the caller typed it. Absent: the default model; `auto`: chosen here whatever the default is. */
  name?: string;
  category: Category;
  needs: Partial<ModelRequirements['needs']>;
  /** Whose models an automatic choice takes, others only following. Not `always`: others take their place where none holds the prompt. */
  from?: { provider: string; always: boolean };
  /** Models that are not to be chosen; one that is named is taken all the same. */
  avoid?(model: ModelInfo): boolean;
  /** What those that are avoided cannot do, for who is refused: `call tools`. Absent: it is not said. */
  lacks?: string | undefined;
  /** Models that fail at this moment: chosen only after all others. */
  ailing?(model: ModelInfo): boolean;
  /**
   * True: other models may answer for the one that is named. False: none may, even for one that was chosen here. Absent: for a
   * named one only the same model at another provider.
   */
  allowFallback?: boolean;
  /** What the call is about; the AI manager makes a plan of it. Absent: the category alone decides. */
  task?: TaskProfile;
  /** The manager's plan; needs and preferences of an automatic choice. */
  plan?: ModelRequirements;
  /** Providers whose models an automatic choice puts in front, the most wanted first. */
  prefers?: readonly string[];
  /** What the prompt takes in o200k tokens; absent: what the task says. */
  promptTokens?: number;
  /** What the limits leave for the call, by the tightest one; absent: only AUTO_COST_LIMIT counts. */
  left?: BudgetHeadroom;
  /** Into how many equal parts the call's money is shared; absent: one. */
  sharers?: number;
  /** The model, as `provider:id`, that an automatic choice took before in this thread; its vendor may keep so many tokens of it. */
  before?: { model: string; tokens: number };
  /** From `thinking_mode`: the nearest that the model takes is used. A suffix of the name wins over it. */
  effort?: Effort;
  /** Where nobody set one, and the operator's models file names none for the model. */
  toolEffort?: Effort;
}

/** A provider as routing sees it. */
export interface RosterProvider extends Pick<ProviderDefinition, 'id' | 'names' | 'onlyByPrefix'> {
  configured: boolean;
  /** The variables that still have to be set before it can be asked. */
  missing?: string | undefined;
  /** On this machine or network. */
  local: boolean;
  /** Never chosen automatically. */
  onlyByName: boolean;
  /** Whether a model of it can search the web by itself; absent: none can. */
  searches?(model: ModelInfo): boolean;
  /** Whether a prompt may be paid twice there in one call: to be kept in a cache, and to be read from it. */
  cachesApart?: boolean;
  /** Whether the roster's models are all it serves; then a name that is not among them does not exist. */
  listComplete: boolean;
}

/** Everything there is to choose from. */
export interface Roster {
  /** Configured or not. */
  providers: readonly RosterProvider[];
  /** Catalogue with its overlays. A local endpoint's models are only those it said it has. */
  models: readonly ModelInfo[];
}

/** What the operator decided. */
export interface RoutingPolicy {
  /** Name for calls without one; `auto` or absent: chosen by category. */
  defaultModel?: string;
  /** By provider id: the only models of it that may be used. Absent or empty: all. */
  allowed: Readonly<Record<string, readonly string[]>>;
  /** Never used, wherever they are served. `provider:model` refuses it at that provider alone. */
  denied: readonly string[];
  /** Nothing may leave this machine or network. */
  localOnly: boolean;
  prefer: 'quality' | 'speed' | 'cost';
  /** US dollars that a call may cost whose model nobody named; absent: no limit. */
  autoCostLimit?: number;
  /** Models whose price nobody knows count as free. */
  allowUnpriced?: boolean;
  /** When the web may be searched: for questions about now too, only where a call says so, or never. Absent: `auto`. */
  webSearch?: ManagerRequest['webSearch'];
  /** Unknown ids of vendors whose list is known pass through too. */
  allowUnknown: boolean;
  /** Started with --offline: only the offline providers and local endpoints are used. */
  offline: boolean;
}

/** In this order a name is served, and ties are broken; the setting makes a provider usable. */
const order: readonly (readonly [id: string, setting: string])[] = [
  ['google', 'GEMINI_API_KEY'],
  ['openai', 'OPENAI_API_KEY'],
  ['azure', 'AZURE_OPENAI_API_KEY'],
  ['xai', 'XAI_API_KEY'],
  ['anthropic', 'ANTHROPIC_API_KEY'],
  ['groq', 'GROQ_API_KEY'],
  ['deepseek', 'DEEPSEEK_API_KEY'],
  ['moonshot', 'MOONSHOT_API_KEY'],
  ['zhipu', 'ZHIPUAI_API_KEY'],
  ['minimax', 'MINIMAX_API_KEY'],
  ['dial', 'DIAL_API_KEY'],
  ['custom', 'CUSTOM_API_URL'],
  ['ollama', 'OLLAMA_HOST'],
  ['openrouter', 'OPENROUTER_API_KEY'],
];

/** Smaller is asked first. Providers of the operator's own stand with `custom`. */
export function priorityOf(provider: string): number {
  const at = order.findIndex(([id]) => id === provider);
  return at === -1 ? order.findIndex(([id]) => id === 'custom') : at;
}

/** The setting that makes a provider usable, for the sentence that says what to do; undefined for unlisted providers. */
export const settingOf = (provider: string): string | undefined => order.find(([id]) => id === provider)?.[1];

/** Finds a provider by its id or a short name, in any case. */
export function findProvider<Named extends Pick<RosterProvider, 'id' | 'names'>>(
  { providers }: { providers: readonly Named[] },
  name: string,
): Named | undefined {
  const wanted = name.trim().toLowerCase();
  return providers.find(({ id }) => id === wanted) ?? providers.find(({ names }) => names.includes(wanted));
}

/** A plain word before the first colon that is no provider of this installation; the whole is no model's id. */
export function prefixOf({ roster }: { roster: Roster }, name: string): string | undefined {
  const prefix = /^([a-z][\w-]*):/i.exec(name)?.[1];
  if (prefix === undefined || findProvider(roster, prefix)) return undefined;
  return roster.models.some(model => model.id === name) ? undefined : prefix.toLowerCase();
}

/** Whether a provider is one of those that answer without any vendor. */
export const isOffline = (provider: string): boolean => provider === 'offline' || provider.startsWith('offline-');

/**
 * How much each quality of a model counts. Scores run to 20, cost steps to about 10. `cost` is taken off for each doubling of the
 * price, `quick` added for a model made to be quick, and `shallow` taken off for one that does not reason.
 */
const weights = {
  extended_reasoning: { score: 1, cost: 0.35, quick: 0, shallow: 4 },
  balanced: { score: 0.7, cost: 0.7, quick: 0, shallow: 1 },
  fast_response: { score: 0.4, cost: 1, quick: 2, shallow: 0 },
} satisfies Record<Category, object>;

function weightsFor(category: Category, prefer: RoutingPolicy['prefer']) {
  const own = weights[category];
  if (prefer === 'speed') return { ...own, quick: own.quick + 3, shallow: 0 };
  if (prefer === 'cost') return { ...own, cost: own.cost * 3 };
  return own;
}

/** The price that an unnamed one is taken for: neither a bargain nor a luxury. */
const unknownPrice = 2;

/** Dollars a million tokens, three parts in and one part out; undefined when the vendor names none. */
export const averagePrice = (model: ModelInfo): number | undefined =>
  model.price && (3 * model.price.in + model.price.out) / 4;

const quickName = /flash|non-reasoning|-mini\b|nano|lite|haiku|luna|fast|turbo|instant|highspeed|spark|air\b/i;

/** Of a vendor's model we know nothing of; it is there to be named, not to be chosen. */
export const strangerScore = 1;

/** A large model on faster machines, for about twice its price: quick for who wants speed, not for a quick question. */
const hurried = /highspeed/i;

export const isQuick = ({ id }: ModelInfo): boolean => quickName.test(id);

/**
 * A name by which the greater number within a family, the newer one, is the greater text; across families this only makes the
 * order certain. The rules of a language would be loaded while the first call waits.
 */
const byNumber = ({ id }: ModelInfo): string => id.toLowerCase().replace(/\d+/g, digits => digits.padStart(12, '0'));

/** The models in the order in which they suit the category, the best first; ties go by the providers' priority. */
export function rankModels(
  models: readonly ModelInfo[],
  category: Category,
  prefer: RoutingPolicy['prefer'],
  isLocal: (provider: string) => boolean,
): ModelInfo[] {
  const weight = weightsFor(category, prefer);
  const value = (model: ModelInfo) => {
    const price = averagePrice(model) ?? (isLocal(model.provider) ? 0 : unknownPrice);
    return (
      model.score * weight.score -
      Math.log2(1 + 4 * price) * weight.cost +
      (isQuick(model) && model.score > strangerScore && (prefer === 'speed' || !hurried.test(model.id))
        ? weight.quick
        : 0) -
      (model.reasoning ? 0 : weight.shallow)
    );
  };
  const valued = models.map(model => ({ model, value: value(model), name: byNumber(model) }));
  return valued
    .sort(
      (a, b) =>
        // What its vendor retires is asked when nothing else is there.
        Number(a.model.status === 'deprecated') - Number(b.model.status === 'deprecated') ||
        Number(a.model.score === strangerScore) - Number(b.model.score === strangerScore) ||
        b.value - a.value ||
        priorityOf(a.model.provider) - priorityOf(b.model.provider) ||
        Number(a.name < b.name) - Number(a.name > b.name),
    )
    .map(({ model }) => model);
}

/** The models that the first design knew, by provider. */
const firstModels = new Set(
  Object.entries({
    anthropic: ['claude-3-5-haiku-20241022', 'claude-3-7-sonnet-20250219'],
    deepseek: ['deepseek-chat', 'deepseek-coder'],
    google: ['gemini-2.0-flash', 'gemini-2.5-flash', 'gemini-2.5-pro'],
    groq: ['llama-3.1-70b-versatile'],
    moonshot: ['kimi-k2-0711-preview', 'kimi-k2-0905-preview', 'moonshot-v1-128k', 'moonshot-v1-32k', 'moonshot-v1-8k'],
    ollama: ['llama3.1', 'llama3.2'],
    openai: ['gpt-4o-mini', 'gpt-5', 'o3', 'o3-mini', 'o3-pro', 'o4-mini'],
    xai: ['grok-3', 'grok-3-fast', 'grok-4'],
    zhipu: ['glm-4.5', 'glm-4.5-air', 'glm-4.5-flash', 'glm-4.5v'],
  }).flatMap(([provider, ids]) => ids.map(id => `${provider}/${id}`)),
);

const firstOrders: Record<Category, readonly string[]> = {
  extended_reasoning: ['openai/o3', 'xai/grok-3', 'google/gemini-2.5-pro'],
  fast_response: ['openai/o4-mini', 'openai/o3-mini', 'xai/grok-3-fast', 'google/gemini-2.5-flash'],
  balanced: ['openai/o4-mini', 'openai/o3-mini', 'xai/grok-3', 'google/gemini-2.5-flash'],
};

const nameOf = (model: ModelInfo) => `${model.provider}/${model.id}`;

/**
 * The first design's own order, when the models of vendors reached directly are none but its own; what an aggregator
 * serves comes after them. Undefined otherwise, or when none of the order's models is there.
 */
export function defaultOrder(models: readonly ModelInfo[], category: Category): ModelInfo[] | undefined {
  const direct = models.filter(model => model.provider !== 'openrouter');
  if (!direct.every(model => firstModels.has(nameOf(model)))) return undefined;
  const found = firstOrders[category].flatMap(name => direct.filter(model => nameOf(model) === name));
  return found.length > 0 ? found : undefined;
}

/**
 * The best `count` models, each model once. After the first, providers that are not in the list yet go before others, those of makers
 * that are not in it first, as long as they have an offer that is `near` the best one. One place goes to another provider than the best
 * one's if there is any, so that one vendor's bad day does not take all. The order stays that of the ranking.
 */
export function spreadOverProviders<Offer extends { model: ModelInfo }>(
  ranked: readonly Offer[],
  count: number,
  near: (offer: Offer, best: Offer) => boolean,
) {
  const seen = new Set<string>();
  const distinct = ranked.filter(
    ({ model }) => !seen.has(undatedKey(ownId(model))) && seen.add(undatedKey(ownId(model))),
  );
  const [best] = distinct;
  const chosen = distinct.slice(0, 1);
  const elsewhereIn = (offers: readonly Offer[]) => {
    const others = offers.filter(({ model }) => chosen.every(other => other.model.provider !== model.provider));
    return others.find(({ model }) => chosen.every(other => vendorOf(other.model) !== vendorOf(model))) ?? others[0];
  };
  while (best && chosen.length < Math.min(count, distinct.length)) {
    const left = distinct.filter(offer => !chosen.includes(offer));
    chosen.push(elsewhereIn(left.filter(offer => near(offer, best))) ?? left[0] ?? best);
  }
  const head = distinct.filter(offer => chosen.includes(offer));
  const elsewhere = head.every(({ model }) => model.provider === best?.model.provider) && elsewhereIn(ranked);
  return elsewhere ? [...head.slice(0, count - 1), elsewhere] : head;
}

/** `no_key`: its provider is not configured; `no_provider`: not in this installation; `retired`: not served now. */
export type Refusal = 'no_provider' | 'no_key' | 'retired' | Restriction;
export type Restriction = 'offline' | 'not_local' | 'denied' | 'not_allowed';

/** One entry of a list: what it matches by name, and where. */
export type Entry = ReturnType<typeof readEntry>;

/** Whether a refusal is the operator's decision, rather than a missing key or the vendor's. */
export const isRestriction = (refusal: Refusal | undefined): refusal is Restriction =>
  refusal !== undefined && !['no_key', 'no_provider', 'retired'].includes(refusal);

/**
 * Reads the operator's lists once. Entries are ids, aliases or providers in any case: a list that names an alias admits the id, and
 * the other way round, at every provider that serves the model. A refusal reaches further than a permission: it also
 * covers the model's dated versions, its routes at an aggregator, and the models of a program. The result says why a model may not
 * be used; undefined: it may.
 */
export function createRestrictions(roster: Roster, policy: RoutingPolicy): (model: ModelInfo) => Refusal | undefined {
  const read = (names: readonly string[]) => names.filter(name => name.trim()).map(name => readEntry(roster, name));
  const allowed = new Map(Object.entries(policy.allowed).map(([provider, names]) => [provider, read(names)]));
  const denied = read(policy.denied);
  const providers = new Map(roster.providers.map(provider => [provider.id, provider]));

  return model => {
    const provider = providers.get(model.provider);
    if (!provider) return 'no_provider';
    if (model.status === 'retired') return 'retired';
    if (!provider.configured) return 'no_key';
    const isHere = provider.local || isOffline(provider.id);
    if (policy.offline && !isHere) return 'offline';
    if (policy.localOnly && !isHere) return 'not_local';
    const program = provider.onlyByPrefix ? { ...model, id: model.id.replace(/\/.*/s, '') } : model;
    if (denied.some(entry => names(entry, model) || names(entry, program))) return 'denied';
    const list = allowed.get(provider.id);
    if (list && list.length > 0 && !list.some(entry => matches(entry, model, []))) return 'not_allowed';
    return undefined;
  };
}

/** Whether an entry reaches a model: by any of its names, by those of its undated version, by a route to it, or by who made it. */
export function names(entry: Entry, model: ModelInfo): boolean {
  const plain = plainId(model);
  return entry.maker === vendorOf(model) || matches(entry, model, [modelKey(plain), undatedKey(plain)]);
}

/** An aggregator's id without routes, presets and whatever else may follow the model. */
const plainId = (model: ModelInfo): string =>
  model.provider === 'openrouter' || model.id.includes('/') ? model.id.replace(/[:@].*$/, '') : ownId(model);

/** An empty name means all models of the provider. */
export function readEntry(roster: Roster, text: string) {
  const typed = text.trim().toLowerCase();
  const known = roster.models.some(model => model.id.toLowerCase() === typed);
  const isAlias = roster.models.some(({ aliases }) => aliases.includes(typed));
  const whole = known || isAlias ? undefined : findProvider(roster, typed.replace(/:\*?$/, ''));
  // With a colon it is the provider alone that is meant, without one also its models at aggregators.
  const maker = typed.includes(':') ? undefined : whole?.id;
  if (whole) return { name: '', keys: new Set<string>(), provider: whole.id, maker };
  const colon = known ? -1 : typed.indexOf(':');
  const provider = colon > 0 ? findProvider(roster, typed.slice(0, colon)) : undefined;
  const name = provider ? typed.slice(colon + 1) : typed;
  const owner = roster.models.find(model => model.aliases.includes(name));
  // Of the name itself and of the model that has it for an alias.
  const keys = new Set([modelKey(name), ...(owner ? [modelKey(owner.id)] : [])].filter(key => key !== ''));
  return { name, keys, provider: provider?.id, maker };
}

function matches(entry: Entry, model: ModelInfo, moreKeys: readonly string[]): boolean {
  if (entry.provider !== undefined && entry.provider !== model.provider) return false;
  if (entry.name === '') return entry.provider !== undefined;
  if (entry.name === model.id.toLowerCase() || model.aliases.includes(entry.name)) return true;
  const [maker, other] = [makerOf(entry.name), makerOf(plainId(model))];
  if (maker !== '' && other !== '' && maker !== other) return false;
  return [modelKey(model.id), modelKey(ownId(model)), ...moreKeys].some(key => entry.keys.has(key));
}

/** The offers of the provider that a request is for; all where any will do. */
export function wantedProvider<Offer extends { model: ModelInfo }>(
  { from }: ModelRequest,
  offers: readonly Offer[],
  isWide: (offer: Offer) => boolean,
): readonly Offer[] {
  const own = offers.filter(({ model }) => model.provider === from?.provider);
  const serves = own.some(isWide) || (own.length > 0 && !offers.some(isWide));
  return from && (from.always || serves) ? own : offers;
}
