import type { ModelInfo } from '../../core/model.ts';
import type { Clock, Emit, KeptTexts, SharedState } from '../../core/ports.ts';
import type { Connection, ProviderDefinition, ProviderSettings } from '../provider.ts';
import { explainRoute, type RouteExplanation } from '../routing/explain.ts';
import type { Resolution } from '../routing/resolve.ts';
import type { ModelRequest, Roster, RoutingPolicy } from '../routing/roster.ts';
import { type ModelsFile, overlayFiles } from '../sources/own-files.ts';
import { createRoute } from '../sources/route.ts';
import { loadCatalogue } from './catalogue.ts';
import { usableSettings } from './connections.ts';
import { createLiveRoster } from './live-roster.ts';
import { overlayFacts } from './models-dev.ts';
import { keptFacts, type Refreshed, refreshFacts } from './refresh.ts';
import { createListings, type Listing } from './vendor-lists.ts';

/** Where knowledge of models comes from, beside the vendors. */
export interface SourceOptions {
  /** The operator's files about models; later ones win over all else. */
  files?: readonly ModelsFile[];
  /** Where fetched facts are kept; absent: nothing is written. */
  kept?: KeptTexts;
  /** Where facts are fetched from, when the operator asks for it. */
  factsUrl?: string;
}

export interface SourceParts extends SourceOptions {
  definitions: readonly ProviderDefinition[];
  settings: Readonly<Record<string, ProviderSettings>>;
  connection(providerId: string): Promise<Connection>;
  policy: RoutingPolicy;
  clock: Clock;
  emit: Emit;
  state?: SharedState;
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
export interface ModelSources {
  /** With `only`, the one provider that is meant, no other is asked for its list. */
  roster(only?: string): Promise<Roster>;
  /** Of what is known without a vendor and without the store. */
  rosterAlone(): Promise<Roster>;
  route(request: ModelRequest): Promise<Resolution>;
  /** What `route` would choose by what is known now. Only servers on this machine or network are asked for their lists. */
  explain(request: ModelRequest): Promise<RouteExplanation>;
  /** What each vendor listed last; with `fresh`, those whose list is old are asked, all at once. Vendors without one are left out. */
  listings(fresh: boolean): Promise<ReadonlyMap<string, ListingState>>;
  /** Fetches facts about models. Throws an `AppError`; what is there then stays. */
  refresh(signal: AbortSignal): Promise<Refreshed>;
  /** What is wrong with the operator's files, one sentence each. */
  warnings: readonly string[];
}

export function createModelSources(parts: SourceParts): ModelSources {
  const { definitions, connection, policy, clock, emit, files = [], kept, factsUrl = '' } = parts;
  const settings = (id: string) => usableSettings(parts.settings[id] ?? {});
  const listings = createListings({ connection, settings, clock, emit, state: parts.state });
  const providerIds = definitions.map(({ id }) => id);
  const isLocal = (definition: ProviderDefinition) => definition.local?.(settings(definition.id)) === true;
  const mayAsk = (definition: ProviderDefinition) => !(policy.localOnly || policy.offline) || isLocal(definition);
  const finish = (models: readonly ModelInfo[]) =>
    files.length === 0 ? models : overlayFiles(models, files, providerIds).models;

  let known: Promise<readonly ModelInfo[]> | undefined;
  const catalogue = () => (known ??= withFacts(kept));
  const rosterParts = { definitions, settings: parts.settings, listings, catalogue, finish };
  const roster = createLiveRoster({ ...rosterParts, mayAsk });
  const rosterAtHand = createLiveRoster({ ...rosterParts, mayAsk: isLocal });
  const year = () => new Date(clock.now()).getUTCFullYear();
  const route = createRoute({ roster, listings, definitions, policy, mayAsk, year });

  return {
    roster,
    rosterAlone: () =>
      createLiveRoster({
        ...rosterParts,
        listings: createListings({ connection, settings, clock, emit }),
        mayAsk: () => false,
      })(),
    route,
    explain: async request => explainRoute(request, await rosterAtHand(), policy, year()),
    warnings: files.length === 0 ? [] : overlayFiles(loadCatalogue(), files, providerIds).warnings,
    async listings(fresh) {
      const usable = definitions.filter(
        ({ id, onlyByName, unlisted, configured }) => !(onlyByName || unlisted) && configured(settings(id)),
      );
      const found = await Promise.all(
        usable.map(async definition => {
          const ask = fresh && mayAsk(definition);
          const listing = ask ? await listings.current(definition) : await listings.known(definition);
          return [definition.id, listing && stateOf(listing, clock.now())] as const;
        }),
      );
      return new Map(found.flatMap(([id, state]) => (state ? [[id, state]] : [])));
    },
    async refresh(signal) {
      const refreshed = await refreshFacts({ kept, clock, url: factsUrl }, signal);
      known = undefined;
      return refreshed;
    },
  };
}

/** Undefined for a vendor that turned out to have no list. */
function stateOf({ models, at, complete, failure }: Listing, now: number): ListingState | undefined {
  if (!complete && failure === undefined) return undefined;
  return {
    models: models.length,
    ...(at === undefined ? {} : { ageSeconds: Math.max(0, Math.round((now - at) / 1_000)) }),
    ...(failure === undefined ? {} : { failure }),
  };
}

async function withFacts(kept: KeptTexts | undefined): Promise<readonly ModelInfo[]> {
  const found = await keptFacts(kept);
  return found ? overlayFacts(loadCatalogue(), found.facts) : loadCatalogue();
}
