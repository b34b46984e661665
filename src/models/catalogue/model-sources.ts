import { isAppError } from '../../core/errors.ts';
import { efforts, type ModelInfo } from '../../core/model.ts';
import type { KeptText } from '../../core/ports.ts';
import { dayMs, dayOf } from '../../core/usage.ts';
import type { ProviderDefinition, ProviderSettings } from '../provider.ts';
import { eligibleModels } from '../routing/eligible-models.ts';
import { candidatesFor, explainRoute } from '../routing/explain.ts';
import { nameKey } from '../routing/names.ts';
import { passedOnReason } from '../routing/refusals.ts';
import { applyRequirements, type Resolution, resolveIn } from '../routing/resolve.ts';
import { findProvider, type ModelRequest, type Roster, type RoutingPolicy } from '../routing/roster.ts';
import generated from './catalogue.gen.json' with { type: 'json' };
import { type ConfiguredProvider, isListed } from './connections.ts';
import { createLiveRoster, type LiveRosterParts } from './live-roster.ts';
import { inputKinds, keptFacts, overlayFacts, refreshFacts } from './models-dev.ts';
import { type ModelsFile, overlayFiles } from './overlay.ts';
import { createListings, type Listing, type ListingParts } from './vendor-lists.ts';

/** A row as the generator writes it: members at their usual value are left out. */
interface Row
  extends Pick<ModelInfo, 'id' | 'name' | 'window' | 'maxOutput' | 'score'>,
    Partial<Pick<ModelInfo, 'aliases' | 'thinkingBudget' | 'reasoning' | 'price' | 'life'>> {
  /** What it reads besides text. */
  input?: readonly string[];
  efforts?: readonly string[];
  noTemperature?: boolean;
  noTools?: boolean;
  code?: boolean;
  deprecated?: boolean;
}

const rowsByProvider: Readonly<Record<string, readonly Row[]>> = generated;

let loaded: readonly ModelInfo[] | undefined;

/** The models we know of, by provider and id. Read on first use; the rows are shared and frozen. */
export function loadCatalogue(): readonly ModelInfo[] {
  loaded ??= Object.freeze(
    Object.entries(rowsByProvider).flatMap(([id, rows]) => rows.map(row => Object.freeze(toModel(id, row)))),
  );
  return loaded;
}

const toModel = (provider: string, { noTemperature, noTools, code, deprecated, ...row }: Row): ModelInfo => ({
  provider,
  ...row,
  aliases: row.aliases ?? [],
  input: inputKinds.filter(kind => kind === 'text' || row.input?.includes(kind)),
  efforts: efforts.filter(effort => row.efforts?.includes(effort)),
  reasoning: row.reasoning ?? false,
  temperature: noTemperature ? 'none' : 'range',
  tools: !noTools,
  allowCodeGeneration: code ?? false,
  status: deprecated ? 'deprecated' : 'active',
});

interface RouteParts extends Required<Pick<LiveRosterParts, 'listings' | 'mayAsk'>> {
  roster(only?: string): Promise<Roster>;
  providers: readonly ConfiguredProvider[];
  policy: RoutingPolicy;
}

/** The provider that a name begins with. */
function namedProvider(definitions: readonly ProviderDefinition[], name: string): string | undefined {
  const at = name.indexOf(':');
  return at < 1 ? undefined : findProvider({ providers: definitions }, name.slice(0, at))?.id;
}

type Outcome = PromiseSettledResult<Resolution>;

/**
 * Chooses the models for a call. A name that is not known for sure is looked up in the vendors' own lists first, where those
 * that are at hand are old: a new model can be asked on its first day, and a name that no vendor has is refused here.
 */
function createRoute(parts: RouteParts): (request: ModelRequest) => Promise<Resolution> {
  const { policy, listings } = parts;
  const definitions = parts.providers.map(({ definition }) => definition);
  const resolve = async (request: ModelRequest, roster: Roster): Promise<Resolution> => {
    const eligible = applyRequirements(eligibleModels(request, roster, policy));
    const { plan } = eligible.request;
    return { ...resolveIn(eligible), ...(plan && { plan }) };
  };
  return async request => {
    const name = request.name?.trim() || policy.defaultModel?.trim();
    const only = name && namedProvider(definitions, name);
    const roster = await parts.roster(only);
    // A failure is kept until the lists were looked at: with them the same name may resolve.
    const [first] = await Promise.allSettled([resolve(request, roster)]);
    const asked = name && isUnsure(first, request, policy) ? await whoMayKnow(parts, name, only) : [];
    await Promise.all(asked.map(listings.current));
    const [second] =
      asked.length === 0 ? [first] : await Promise.allSettled([resolve(request, await parts.roster(only))]);
    // A choice that is free after all is one among all providers.
    const isFree = only !== undefined && isPassedOver(second, request, policy);
    if (isFree) return withWindowWarning(await resolve(request, await parts.roster()));
    if (second.status === 'rejected') throw second.reason;
    return withWindowWarning(second.value);
  };
}

function withWindowWarning(resolution: Resolution): Resolution {
  const { model } = resolution.candidates[0];
  if (!model.windowAssumed) return resolution;
  const { provider, id, window } = model;
  const warning = `${provider} does not tell the context window of ${id}; ${window} tokens are assumed. The operator can set it (CUSTOM_CONTEXT_WINDOW, context_window of an endpoint, or a models file).`;
  return { ...resolution, warnings: [...resolution.warnings, warning] };
}

/** Whether the vendors' lists could say something else. A different spelling of what is known is no doubt. */
function isUnsure(outcome: Outcome, request: ModelRequest, policy: RoutingPolicy): boolean {
  if (outcome.status === 'rejected') {
    const error: unknown = outcome.reason;
    if (!isAppError(error) || error.kind !== 'input') return false;
    const { code, class: kind } = error.details;
    return code === 'PROVIDER_NOT_FOUND' || kind === 'unknown' || kind === 'retired';
  }
  const { corrected, candidates } = outcome.value;
  if (corrected) return nameKey(corrected.from.slice(corrected.from.indexOf(':') + 1)) !== nameKey(corrected.to);
  return candidates[0]?.reason === passedOnReason || isPassedOver(outcome, request, policy);
}

/** Whether the default model did not resolve, and another was chosen in its place. */
function isPassedOver(outcome: Outcome, request: ModelRequest, policy: RoutingPolicy): boolean {
  if (outcome.status === 'rejected' || request.name?.trim()) return false;
  const byDefault = policy.defaultModel?.trim();
  return byDefault !== undefined && outcome.value.requested !== byDefault;
}

/** The provider that the name begins with (`only`), else all vendors with a list, those whose list is not fresh. */
async function whoMayKnow(parts: RouteParts, name: string, only: string | undefined): Promise<ConfiguredProvider[]> {
  const { providers, listings, mayAsk } = parts;
  const asked = providers.filter(provider => {
    const { definition } = provider;
    if (!isListed(provider) || !mayAsk(provider)) return false;
    if (only) return definition.id === only;
    // Aggregators' names have a maker in front.
    return !definition.servesOthers || name.includes('/');
  });
  await Promise.all(asked.map(listings.known));
  return asked.filter(provider => !listings.isFresh(provider));
}

/** Where knowledge of models comes from, beside the vendors. */
export interface SourceOptions {
  /** The operator's files about models; later ones win over all else. */
  files?: readonly ModelsFile[];
  /** Where fetched facts are kept; absent: nothing is written. */
  kept?: KeptText;
  /** Where facts are fetched from, when the operator asks for it. */
  factsUrl?: string;
  /** Vendors are asked for their lists in the background, before a name needs them. */
  listsAhead?: boolean;
}

interface SourceParts extends SourceOptions, ListingParts {
  providers: readonly ConfiguredProvider[];
  policy: RoutingPolicy;
}

/** A vendor's own list as people see it. */
export interface ListingState {
  /** How many models it named when it last answered. */
  models: number;
  /** Seconds since then; absent: it never answered. */
  ageSeconds?: number;
  /** Why the last try brought none. */
  failure?: string;
}

/** What there is to choose from, and choosing. */
export type ModelSources = ReturnType<typeof createModelSources>;

export function createModelSources(parts: SourceParts) {
  const { providers, connection, policy, clock, emit, files = [], kept, factsUrl = '' } = parts;
  const listings = createListings({ connection, clock, emit, state: parts.state });
  const providerIds = providers.map(({ definition }) => definition.id);
  const isLocal = ({ local }: ConfiguredProvider) => local;
  const mayAsk = (provider: ConfiguredProvider) => !(policy.localOnly || policy.offline) || isLocal(provider);
  const finish = (models: readonly ModelInfo[]) =>
    files.length === 0 ? models : overlayFiles(models, files, providerIds).models;

  /** The catalogue, and how it is on the day on which it was last asked for. */
  let known: Promise<readonly ModelInfo[]> | undefined;
  let today: { of: readonly ModelInfo[]; day: number; models: readonly ModelInfo[] } | undefined;
  const atVendor = new Set(providers.filter(each => isAtVendor(each.settings)).map(each => each.definition.id));
  const catalogue = async () => {
    known ??= keptFacts(kept).then(found => (found ? overlayFacts(loadCatalogue(), found.facts) : loadCatalogue()));
    const of = await known;
    const now = clock.now();
    const day = Math.floor(now / dayMs);
    if (today?.of !== of || today.day !== day) today = { of, day, models: onDay(of, dayOf(now), atVendor) };
    return today.models;
  };
  const rosterParts = { providers, listings, catalogue, finish, listsAhead: parts.listsAhead };
  /** With `only`, the one provider that is meant, no other is asked for its list. */
  const roster = createLiveRoster({ ...rosterParts, mayAsk });
  const rosterAtHand = createLiveRoster({ ...rosterParts, mayAsk: isLocal });

  return {
    roster,
    /** Of what is known without a vendor and without the store. */
    rosterAlone: () =>
      createLiveRoster({
        ...rosterParts,
        listings: createListings({ connection, clock, emit }),
        mayAsk: () => false,
      })(),
    /** Nobody is asked for a list any more. */
    close: listings.close,
    route: createRoute({ roster, listings, providers, policy, mayAsk }),
    /** What `route` would choose by what is known now. Only servers on this machine or network are asked for their lists. */
    explain: async (request: ModelRequest) => explainRoute(request, await rosterAtHand(), policy),
    candidates: async (request: ModelRequest) => candidatesFor(request, await rosterAtHand(), policy),
    /** What is wrong with the operator's files, one sentence each. */
    warnings: files.length === 0 ? [] : overlayFiles(loadCatalogue(), files, providerIds).warnings,
    /** The last list of each vendor that has one. Asks vendors without known models; with `fresh`, all whose list is old. */
    async listings(fresh: boolean) {
      const inCatalogue = new Set(finish(await catalogue()).map(({ provider }) => provider));
      const found = await Promise.all(
        providers.filter(isListed).map(async provider => {
          const { id } = provider.definition;
          const atHand = await listings.known(provider);
          const ask = mayAsk(provider) && (fresh || !(atHand || inCatalogue.has(id)));
          const listing = ask ? await listings.current(provider) : atHand;
          return [id, listing && stateOf(listing, clock.storeTime())] as const;
        }),
      );
      return new Map(found.flatMap(([id, state]) => (state ? [[id, state]] : [])));
    },
    /** Fetches facts about models. Throws an `AppError`; what is there then stays. */
    async refresh(signal: AbortSignal) {
      const refreshed = await refreshFacts({ kept, clock, url: factsUrl }, signal);
      known = undefined;
      return refreshed;
    },
  };
}

/** Undefined for a vendor that turned out to have no list. */
function stateOf({ models, at, complete, failure }: Listing, now: number): ListingState | undefined {
  if (!complete && failure === undefined) return undefined;
  const ageSeconds = at === undefined ? undefined : Math.max(0, Math.round((now - at) / 1_000));
  return { models: models.length, ageSeconds, failure };
}

/** Hosts where vendors serve their models themselves, in any region. */
const vendorHosts =
  /(^|\.)(anthropic\.com|openai\.com|googleapis\.com|groq\.com|x\.ai|deepseek\.com|moonshot\.(ai|cn)|minimax\.io|minimaxi\.com|z\.ai|bigmodel\.cn)$/;

/** Whether a provider is asked at its vendor: what a gateway serves in its place does not end with the vendor's models. */
const isAtVendor = ({ baseUrl }: ProviderSettings): boolean =>
  baseUrl === undefined || vendorHosts.test(URL.parse(baseUrl)?.hostname ?? '');

/** The models of these providers as they are on a day (YYYY-MM-DD): with the status and the price that hold then. */
export const onDay = (models: readonly ModelInfo[], day: string, providers: ReadonlySet<string>): ModelInfo[] =>
  models.map(model => {
    if (!model.life || !providers.has(model.provider)) return model;
    const { deprecated, retired, priceFrom } = model.life;
    const announced = deprecated === undefined ? retired !== undefined : day >= deprecated;
    const status = retired !== undefined && day >= retired ? 'retired' : announced ? 'deprecated' : model.status;
    return { ...model, status, ...(priceFrom && day >= priceFrom.day && { price: priceFrom.price }) };
  });
