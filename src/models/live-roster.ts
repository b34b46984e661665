import { isAppError } from '../domain/error.ts';
import type { ModelInfo } from '../domain/model.ts';
import type { Clock, Emit } from '../domain/ports.ts';
import { overlayListing } from './catalogue.ts';
import { usableSettings } from './connections.ts';
import type { Connection, LiveModel, ProviderDefinition, ProviderSettings } from './provider.ts';
import type { Roster, RosterProvider } from './routing/roster.ts';

export interface LiveRosterParts {
  definitions: readonly ProviderDefinition[];
  settings: Readonly<Record<string, ProviderSettings>>;
  connection(providerId: string): Promise<Connection>;
  catalogue: () => readonly ModelInfo[];
  clock: Clock;
  emit: Emit;
}

/** A listing is asked for again after this time. */
const freshMs = 24 * 3_600_000;
/** On a server of one's own, models come and go with a word. */
const decidingFreshMs = 60_000;
/** A listing that failed is asked for again sooner. */
const failedFreshMs = 60_000;
/** A server that does not list its models in this time is used by name alone. */
const patienceMs = 3_000;

interface Listed {
  /** Epoch milliseconds of the last listing that came. */
  at?: number;
  models: readonly LiveModel[];
  complete: boolean;
  until: number;
}

/** Everything there is to choose from now: the catalogue, what settings bring along, and what servers of one's own list. */
export function createLiveRoster(parts: LiveRosterParts): () => Promise<Roster> {
  const lists = new Map<string, Promise<Listed>>();

  function listed(definition: ProviderDefinition): Promise<Listed> {
    const known = lists.get(definition.id);
    const asking = (known ?? Promise.resolve(undefined)).then(before =>
      before && before.until > parts.clock.monotonic() ? before : askForList(parts, definition, before),
    );
    lists.set(definition.id, asking);
    return asking;
  }

  async function stateOf(definition: ProviderDefinition): Promise<{ facts: RosterProvider; add: Addition }> {
    const settings = usableSettings(parts.settings[definition.id] ?? {});
    const configured = definition.configured(settings);
    const { id, names, onlyByName = false } = definition;
    const facts = { id, names, configured, local: definition.local?.(settings) ?? false, onlyByName };
    if (!configured || !(definition.models || definition.listDecides)) {
      return { facts: { ...facts, listComplete: true }, add: models => models };
    }
    const live = onlyByName ? nothingListed : await listed(definition);
    return {
      facts: { ...facts, listComplete: live.complete, listedAt: live.at },
      add: additionOf(definition, settings, live.models),
    };
  }

  return async () => {
    const states = await Promise.all(parts.definitions.map(stateOf));
    const models = states.reduce<readonly ModelInfo[]>((before, { add }) => add(before), parts.catalogue());
    return { providers: states.map(({ facts }) => facts), models };
  };
}

/** Lays what is known of one provider over the models known so far. */
type Addition = (models: readonly ModelInfo[]) => readonly ModelInfo[];

const nothingListed: Listed = { models: [], complete: true, until: 0 };

function additionOf(definition: ProviderDefinition, settings: ProviderSettings, live: readonly LiveModel[]): Addition {
  if (definition.listDecides) return models => served(models, definition.id, live);
  const own = definition.models?.(settings) ?? [];
  const more = live.filter(({ id }) => !own.some(known => known.id === id));
  return models => [...models, ...own, ...more.map(({ id, window }) => modelFrom(definition, own[0], id, window))];
}

/** What the server has, and nothing else of this provider; with what it tells of each. */
function served(models: readonly ModelInfo[], provider: string, live: readonly LiveModel[]): ModelInfo[] {
  const told = new Map(live.map(model => [model.id, model]));
  const known = new Set(models.filter(model => model.provider === provider).map(({ id }) => id));
  return overlayListing(models, { provider, models: live, exhaustive: true }).map(model => {
    const facts = model.provider === provider ? told.get(model.id) : undefined;
    return facts ? withFacts(model, facts, known.has(model.id)) : model;
  });
}

function withFacts(model: ModelInfo, { input, reasoning }: LiveModel, known: boolean): ModelInfo {
  const thinks = reasoning ?? model.reasoning;
  // Of a model that merely thinks nothing is known but that this can be switched.
  const efforts = known ? model.efforts : (['none', 'high'] as const);
  return {
    ...model,
    input: input ?? model.input,
    reasoning: thinks,
    efforts: thinks ? efforts : [],
    maxOutput: Math.max(1, Math.min(model.maxOutput, Math.floor(model.window / 2))),
  };
}

async function askForList(
  { connection, clock, emit }: LiveRosterParts,
  { id, listDecides }: ProviderDefinition,
  before: Listed | undefined,
): Promise<Listed> {
  try {
    const { list } = await connection(id);
    const models = list ? await list(AbortSignal.timeout(patienceMs)) : [];
    const fresh = listDecides ? decidingFreshMs : freshMs;
    const at = list ? clock.now() : undefined;
    return { at, models, complete: list !== undefined, until: clock.monotonic() + fresh };
  } catch (error) {
    const message = isAppError(error) ? error.message : String(error);
    emit({ type: 'warning', where: `models of ${id}`, message: `The server did not list its models: ${message}` });
    // What it had is the best guess at what it has.
    return { at: before?.at, models: before?.models ?? [], complete: false, until: clock.monotonic() + failedFreshMs };
  }
}

/** A listed model of which little is known: like the one that was configured, else careful guesses. */
function modelFrom(
  definition: ProviderDefinition,
  like: ModelInfo | undefined,
  id: string,
  window: number | undefined,
): ModelInfo {
  const size = window ?? like?.window ?? 32_768;
  return {
    provider: definition.id,
    id,
    name: id,
    aliases: [],
    window: size,
    maxOutput: Math.min(like?.maxOutput ?? 8_192, Math.floor(size / 2)),
    input: like?.input ?? ['text'],
    efforts: [],
    reasoning: false,
    temperature: 'range',
    tools: like?.tools ?? false,
    score: like?.score ?? 5,
    allowCodeGeneration: false,
    status: 'active',
  };
}
