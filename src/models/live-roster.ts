import { isAppError } from '../domain/error.ts';
import type { ModelInfo } from '../domain/model.ts';
import type { Clock, Emit } from '../domain/ports.ts';
import { usableSettings } from './connections.ts';
import type { Connection, ProviderDefinition, ProviderSettings } from './provider.ts';
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
/** A listing that failed is asked for again sooner. */
const failedFreshMs = 60_000;
/** A server that does not list its models in this time is used by name alone. */
const patienceMs = 3_000;

interface Listed {
  models: ModelInfo[];
  complete: boolean;
  until: number;
}

/** Everything there is to choose from now: the catalogue, what settings bring along, and what servers of one's own list. */
export function createLiveRoster(parts: LiveRosterParts): () => Promise<Roster> {
  const lists = new Map<string, Promise<Listed>>();

  function listed(definition: ProviderDefinition, settings: ProviderSettings): Promise<Listed> {
    const known = lists.get(definition.id);
    const asking = (known ?? Promise.resolve(undefined)).then(before =>
      before && before.until > parts.clock.monotonic() ? before : askForList(parts, definition, settings),
    );
    lists.set(definition.id, asking);
    return asking;
  }

  return async () => {
    const models: ModelInfo[] = [...parts.catalogue()];
    const providers = await Promise.all(
      parts.definitions.map(async (definition): Promise<RosterProvider> => {
        const settings = usableSettings(parts.settings[definition.id] ?? {});
        const configured = definition.configured(settings);
        const { id, names } = definition;
        const facts = {
          id,
          names,
          configured,
          local: definition.local?.(settings) ?? false,
          onlyByName: definition.onlyByName ?? false,
        };
        if (!configured || !definition.models) return { ...facts, listComplete: true };
        const own = definition.models(settings);
        const live = facts.onlyByName ? { models: [], complete: true } : await listed(definition, settings);
        models.push(...own, ...live.models.filter(model => !own.some(known => known.id === model.id)));
        return { ...facts, listComplete: live.complete };
      }),
    );
    return { providers, models };
  };
}

async function askForList(
  parts: LiveRosterParts,
  definition: ProviderDefinition,
  settings: ProviderSettings,
): Promise<Listed> {
  const { clock, emit } = parts;
  try {
    const { list } = await parts.connection(definition.id);
    const found = list ? await list(AbortSignal.timeout(patienceMs)) : [];
    const named = definition.models?.(settings) ?? [];
    const models = found.map(({ id, window }) => modelFrom(definition, named[0], id, window));
    return { models, complete: list !== undefined, until: clock.monotonic() + freshMs };
  } catch (error) {
    const message = isAppError(error) ? error.message : String(error);
    emit({
      type: 'warning',
      where: `models of ${definition.id}`,
      message: `The server did not list its models: ${message}`,
    });
    return { models: [], complete: false, until: clock.monotonic() + failedFreshMs };
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
