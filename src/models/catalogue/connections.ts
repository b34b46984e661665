import { asError, configError, isAppError, unknownProvider } from '../../core/errors.ts';
import type { ModelInfo } from '../../core/model.ts';
import { didYouMean, isPlaceholder, withoutKeys } from '../../core/text.ts';
import type { ConnectContext, Connection, ProviderDefinition, ProviderSettings } from '../provider.ts';

/** A provider with its usable settings and what follows from them. Settings are read once, so this is computed once. */
export type ConfiguredProvider = ReturnType<typeof configureProviders>[number];

export const configureProviders = (
  definitions: readonly ProviderDefinition[],
  settingsById: Readonly<Record<string, ProviderSettings>>,
) =>
  definitions.map(definition => {
    const settings = usableSettings(settingsById[definition.id] ?? {});
    const secrets = Object.entries(definition.options).filter(([, { secret }]) => secret);
    return {
      definition,
      settings,
      configured: definition.configured(settings),
      /** It runs on this machine or network. */
      local: definition.local?.(settings) ?? false,
      /** Its models run on this very machine: what they are asked does not leave it. */
      runsHere: definition.runsHere?.(settings) ?? false,
      /** A prompt may be paid twice there in one call: to be kept, and to be read. */
      cachesApart: definition.cachesApart?.(settings) ?? false,
      searches: (model: ModelInfo) => definition.searches?.(model, settings) ?? false,
      /** The environment variable of its key, for advice in errors. */
      keyName: secrets[0]?.[1].env[0],
      /** The values of its secret settings. */
      keys: secrets.flatMap(([name]) => settings[name] ?? []),
    };
  });

/** Whether it can be asked for a list of its models. */
export const isListed = ({ configured, definition: { onlyByName, unlisted } }: ConfiguredProvider): boolean =>
  configured && !onlyByName && !unlisted;

/** Settings without what counts as unset: blanks and placeholders. */
export function usableSettings(settings: ProviderSettings): ProviderSettings {
  const usable = Object.entries(settings).filter(([, value]) => value?.trim() && !isPlaceholder(value));
  return Object.fromEntries(usable.map(([name, value]) => [name, value?.trim()]));
}

/** Opens the connection of a provider, or answers the one that is open. */
export type Connections = ReturnType<typeof createConnections>;

/** Opens a provider's connection on first use and keeps it. Calls share one attempt; after a failed one, the next call tries again. */
export function createConnections(providers: readonly ConfiguredProvider[], context?: ConnectContext) {
  const byId = new Map(providers.map(provider => [provider.definition.id, provider]));
  const open = new Map<string, Promise<Connection>>();
  const connection = async (providerId: string): Promise<Connection> => {
    const known = open.get(providerId);
    if (known) return known;
    const provider = byId.get(providerId);
    if (!provider) {
      const ids = [...byId.keys()];
      throw unknownProvider(providerId, `${didYouMean(providerId, ids)}Name one of ${ids.join(', ')}.`);
    }
    const { definition, settings, configured } = provider;
    if (!configured) {
      const missing = missingNames(definition, settings);
      const next = `Set ${missing}, or choose a model from another provider.`;
      const message = `${definition.title} is not configured: ${missing} is not set.`;
      throw configError(message, { provider: providerId, next });
    }
    checkKeys(definition, settings);
    const connecting = connect(definition, settings, context);
    open.set(providerId, connecting);
    connecting.catch(() => open.delete(providerId));
    return connecting;
  };
  return Object.assign(connection, {
    /** Gives back what the open ones hold at their vendors. */
    async close() {
      const opened = await Promise.allSettled(open.values());
      await Promise.all(opened.map(async each => (each.status === 'fulfilled' ? each.value.close?.() : undefined)));
    },
  });
}

async function connect(definition: ProviderDefinition, settings: ProviderSettings, context?: ConnectContext) {
  try {
    return await definition.connect(settings, context);
  } catch (error) {
    if (isAppError(error)) throw error;
    const { id: provider, title, options } = definition;
    const reason = withoutKeys(asError(error).message);
    const variables = Object.values(options).flatMap(({ env }) => env.slice(0, 1));
    const next = `Check the settings of ${title}: ${variables.join(', ')}.`;
    throw configError(`${title} could not be set up: ${reason}`, { provider, next, cause: error });
  }
}

/** Headers carry no other characters. */
function checkKeys({ options, title, id }: ProviderDefinition, settings: ProviderSettings): void {
  const odd = Object.keys(options).find(name => options[name]?.secret && /[^ -ÿ]/.test(settings[name] ?? ''));
  if (odd === undefined) return;
  throw configError(
    `${options[odd]?.env[0] ?? odd} holds a character that no key of ${title} has, such as a curly quote.`,
    { provider: id, next: 'Copy the key once more from the vendor, without quotes, and restart.' },
  );
}

/** Found out by asking the provider: what it can't do without, else what alone would be enough. */
export function missingNames({ options, configured }: ProviderDefinition, settings: ProviderSettings): string {
  const unset = Object.keys(options).filter(name => settings[name] === undefined);
  const filled = (names: string[]) => ({ ...settings, ...Object.fromEntries(names.map(name => [name, 'set'])) });
  const needed = unset.filter(name => !configured(filled(unset.filter(other => other !== name))));
  const enough = unset.filter(name => configured(filled([name])));
  const envOf = (name: string) => options[name]?.env[0] ?? name;
  if (needed.length > 0) return needed.map(envOf).join(' and ');
  return (enough.length > 0 ? enough : unset).map(envOf).join(' or ');
}
