import type { ModelInfo } from '../../core/model.ts';
import { assumed, type LiveModel, type ProviderDefinition, plainModel } from '../provider.ts';
import { byPriority } from '../routing/eligible-models.ts';
import { isChatId, isDated, makerOf, sameModel, undatedKey } from '../routing/names.ts';
import { type Roster, strangerScore } from '../routing/roster.ts';
import { type ConfiguredProvider, isListed, missingNames } from './connections.ts';
import { atHand, revived } from './overlay.ts';
import type { Listing, Listings } from './vendor-lists.ts';

export interface LiveRosterParts {
  providers: readonly ConfiguredProvider[];
  listings: Listings;
  /** What is known without asking a vendor. */
  catalogue: () => readonly ModelInfo[] | Promise<readonly ModelInfo[]>;
  /** Lays the operator's own word over everything else. */
  finish?(models: readonly ModelInfo[]): readonly ModelInfo[];
  /** Whether a vendor may be asked for its list; false where nothing may leave this machine. */
  mayAsk?(provider: ConfiguredProvider): boolean;
  /** Vendors are asked in the background for a list that is not there yet; absent: only for one that has grown old. */
  listsAhead?: boolean;
}

/**
 * Everything there is to choose from now: the catalogue, what settings bring along, and what servers list. Servers whose
 * models nobody else knows are waited for until they listed them once, and where models come and go whenever their list is
 * old; otherwise an old list counts, or none, and is renewed while the call goes on. With `only`, the one provider that is meant, no
 * other is asked for anything.
 */
export function createLiveRoster(parts: LiveRosterParts): (only?: string) => Promise<Roster> {
  const { listings, mayAsk = () => true, finish = models => models } = parts;
  /** What was laid together last, and of what: the same parts make the same roster. */
  let last: { of: readonly unknown[]; roster: Roster } | undefined;

  async function listingFor(provider: ConfiguredProvider, only: string | undefined): Promise<Listing | undefined> {
    const { definition } = provider;
    const known = await listings.known(provider);
    const isMeant = only === undefined || only === definition.id;
    if (!isMeant || !mayAsk(provider) || listings.isFresh(provider)) return known;
    if (definition.listDecides || (definition.models && !known)) return listings.current(provider);
    // Not awaited; a failure is kept with the list and told as a warning.
    if (known || parts.listsAhead) listings.renew(provider);
    return known;
  }

  const factsOf = ({ definition, settings, configured, local, searches, cachesApart }: ConfiguredProvider) => {
    const { id, names, onlyByName = false, onlyByPrefix, openEnded = false } = definition;
    const missing = configured ? undefined : missingNames(definition, settings) || undefined;
    const own = { id, names, configured, missing, local, onlyByName, onlyByPrefix, searches, cachesApart };
    return { ...own, listComplete: !openEnded };
  };
  const facts = parts.providers.map(factsOf);
  const configured = parts.providers.filter(provider => provider.configured);

  return async only => {
    const found = configured.map(provider => (isListed(provider) ? listingFor(provider, only) : undefined));
    const [catalogue, ...lists] = await Promise.all([parts.catalogue(), ...found]);
    const of = [catalogue, ...lists];
    if (last?.of.every((part, at) => part === of[at])) return last.roster;
    const partial = configured.filter((_, at) => lists[at]?.complete === false).map(each => each.definition.id);
    const models = configured.reduce((laid, provider, at) => withProvider(laid, provider, lists[at]), catalogue);
    const providers = facts.map(each => ({ ...each, listComplete: each.listComplete && !partial.includes(each.id) }));
    const named = new Map(configured.map(({ definition }, at) => [definition.id, namedBy(lists[at]?.models)]));
    const laid = new Set(models.map(({ provider, id }) => `${provider}:${id}`));
    // What only the operator's files know is chosen where the server has it; their aliases are no names of the server's.
    const settle = (model: ModelInfo) =>
      laid.has(`${model.provider}:${model.id}`) || (named.get(model.provider)?.([model.id]) ?? true)
        ? model
        : { ...model, unlisted: true as const };
    last = { of, roster: { providers, models: finish(models).map(settle) } };
    return last.roster;
  };
}

/** Lays what is known of one provider over the models known so far. */
function withProvider(models: readonly ModelInfo[], configured: ConfiguredProvider, listing?: Listing) {
  const { definition, settings } = configured;
  const { id: provider } = definition;
  const { models: live = [], at } = listing ?? {};
  if (definition.listDecides) return served(models, provider, live);
  if (!definition.models) return live.length === 0 ? models : listed(models, provider, live, at);
  const reported = new Map(live.map(model => [model.id, model]));
  const settle = (model: ModelInfo) => settled(configured, model, reported.get(model.id));
  // Deployments and gateways have days of their own for the models of others.
  const own = definition
    .models(settings, models)
    .map(model => (model.life ? { ...model, status: 'active' as const, life: undefined } : model));
  const more = live.filter(({ id }) => !own.some(known => known.id === id));
  // The same model at its maker, or at whoever is nearest to it, for servers that pass others' models on.
  const like = (id: string) => own[0] ?? (definition.servesOthers ? sameElsewhere(models, id) : undefined);
  const listedOnly = more.map(({ id }) => settle(modelFrom(definition, like(id), id)));
  // Where the operator says what is asked there, the others are asked by name.
  const others = own.length > 0 ? listedOnly.map(model => ({ ...model, score: strangerScore })) : listedOnly;
  return [...models, ...own.map(settle), ...others];
}

/** Whether a list names a model under one of these names, with another date perhaps; one without a model for chats says nothing. */
function namedBy(live: readonly LiveModel[] = []): (names: readonly string[]) => boolean {
  // A gateway that puts the maker in front wants it there; Google's `models/` is no maker, and Ollama's `latest` tells nothing.
  const plain = (id: string) => id.replace(/^models\/|:latest$/g, '');
  const keyOf = (id: string) => `${makerOf(plain(id))}/${undatedKey(plain(id))}`;
  const named = new Set(live.map(({ id }) => keyOf(id)));
  const silent = !live.some(({ id }) => isChatId(id));
  return names => silent || names.some(name => named.has(keyOf(name)));
}

/** What a list tells of each model, and those models for chats in it that nobody knew of this provider. */
function readListing(models: readonly ModelInfo[], provider: string, live: readonly LiveModel[]) {
  const facts = new Map(live.map(model => [model.id, model]));
  const own = new Set(models.filter(model => model.provider === provider).map(({ id }) => id));
  const isNew = ({ id }: LiveModel) => !own.has(id) && !own.has(id.replace(/:latest$/, ''));
  return { facts, added: [...facts.values()].filter(model => isChatId(model.id) && isNew(model)) };
}

/**
 * A vendor's own list, which is believed: what it does not name, under no date or alias either, is asked by name alone. What it names
 * anew is there to be asked for by name, what it tells counts, and what it still names on the day of its announced end, or
 * later, has not ended.
 */
function listed(models: readonly ModelInfo[], provider: string, live: readonly LiveModel[], at = 0): ModelInfo[] {
  const { facts, added } = readListing(models, provider, live);
  const isNamed = namedBy(live);
  const known = models.map(model => {
    const told = facts.get(model.id);
    if (model.provider !== provider) return model;
    if (!told) return isNamed([model.id, ...model.aliases]) ? model : { ...model, unlisted: true as const };
    const { window = model.window } = told;
    const current = at >= Date.parse(model.life?.retired ?? '') ? revived(model) : model;
    return withEfforts({ ...current, window, maxOutput: Math.min(model.maxOutput, window) }, told);
  });
  return [...known, ...added.map(told => newlyListed(models, provider, told))];
}

/** A model that a vendor names anew: like the one of its maker, where the name tells that. */
function newlyListed(models: readonly ModelInfo[], provider: string, told: LiveModel): ModelInfo {
  const { id, window = assumed.window } = told;
  const like = makerOf(id) === '' ? undefined : sameElsewhere(models, id);
  const { maxOutput } = like ?? { maxOutput: Math.min(assumed.maxOutput, window) };
  const own = { provider, id, window, aliases: [], score: strangerScore, status: 'active', life: undefined } as const;
  const model = plainModel({
    ...like,
    ...own,
    maxOutput: told.maxOutput ? Math.min(told.maxOutput, halfOf(window)) : maxOutput,
    ...(told.input && { input: told.input }),
    ...(told.price && { price: told.price }),
    ...(told.window === undefined && { windowAssumed: true }),
  });
  return withEfforts(model, told);
}

/** With the efforts that the vendor tells; a budget in tokens says more. */
function withEfforts(model: ModelInfo, { reasoning, efforts }: LiveModel): ModelInfo {
  if (efforts === undefined || model.thinkingBudget) return model;
  return { ...model, efforts, reasoning: reasoning ?? model.reasoning };
}

/** What the server has, and nothing else of this provider; with what it tells of each. */
function served(models: readonly ModelInfo[], provider: string, live: readonly LiveModel[]): ModelInfo[] {
  const { facts, added } = readListing(models, provider, live);
  const withFacts = (model: ModelInfo, told: LiveModel): ModelInfo => {
    const { window = model.window, input = model.input, reasoning = model.reasoning } = told;
    const maxOutput = Math.min(told.maxOutput ?? model.maxOutput, halfOf(window));
    return { ...model, window, input, reasoning, efforts: reasoning ? model.efforts : [], maxOutput };
  };
  const known = models.flatMap(model => {
    const told = facts.get(model.id);
    if (model.provider !== provider) return model;
    return told ? withFacts(model, told) : facts.has(`${model.id}:latest`) ? model : [];
  });
  // Of a model that merely thinks nothing is known but that this can be switched.
  const plain = { ...atHand, provider, efforts: ['none', 'high'] } as const;
  return [...known, ...added.map(told => withFacts(plainModel({ ...plain, id: told.id }), told))];
}

function sameElsewhere(models: readonly ModelInfo[], id: string): ModelInfo | undefined {
  const like = models.filter(model => model.id === id || sameModel(model, { id }));
  return byPriority(like.length > 0 ? like : models.filter(model => isDated(model, id)))[0];
}

/** A listed model of which little is known: like the one that was configured or its maker's, else careful guesses. */
function modelFrom({ id: provider }: ProviderDefinition, like: ModelInfo | undefined, id: string): ModelInfo {
  if (!like) return plainModel({ ...assumed, provider, id, windowAssumed: true });
  const { name, window, efforts, reasoning, maxOutput, input, temperature, tools, score, allowCodeGeneration } = like;
  const shared = { provider, id, maxOutput, input, temperature, tools, score, allowCodeGeneration };
  return like.provider === provider
    ? plainModel({ ...shared, window: assumed.window, windowAssumed: true })
    : plainModel({ ...shared, name, window, efforts, reasoning });
}

/** With the window that the operator gave it, else the server tells, else is taken for all of its models. */
function settled({ definition, settings }: ConfiguredProvider, model: ModelInfo, reported?: LiveModel): ModelInfo {
  const input = reported?.input ?? model.input;
  const decided = model.windowAssumed === false;
  if (decided || (!model.windowAssumed && reported?.window === undefined)) return { ...model, input };
  const usual = definition.fallbackWindow?.(settings) ?? { tokens: model.window, assumed: true };
  const window = reported?.window ?? usual.tokens;
  const windowAssumed = reported?.window === undefined && usual.assumed;
  const told = reported?.maxOutput && Math.min(reported.maxOutput, halfOf(window));
  const maxOutput = told ?? (model.windowAssumed ? halfOf(window) : Math.min(model.maxOutput, window));
  return { ...model, input, window, windowAssumed, maxOutput };
}

/** The most that a model may answer of which its vendor does not say how much: what it is asked needs room, too. */
const halfOf = (window: number): number => Math.max(1, Math.floor(window / 2));
