import type { Config } from '../config/load.ts';
import { options } from '../config/options.ts';
import { usableSettings } from '../models/catalogue/connections.ts';
import type { ProviderDefinition, ProviderSettings } from '../models/provider.ts';
import { providers } from '../providers/index.gen.ts';

/** All options there are: the product's own and each provider's, by its id. */
export const tables = { ...Object.fromEntries(providers.map(({ id, options: table }) => [id, table])), app: options };
export type AppConfig = Config<typeof tables>;

/** The providers as the operator set them up. */
export interface ProviderSetup {
  /** What a provider of this id is set to; empty for one that there isn't. */
  settingsOf(id: string): ProviderSettings;
  /** Whether it may be asked at all: where nothing may leave this machine, only what runs on it. */
  usable(id: string): boolean;
  /** Ids of those that can be asked. */
  configured: readonly string[];
}

export function providerSetup(config: AppConfig, extraProviders: readonly ProviderDefinition[] = []): ProviderSetup {
  const definitions: readonly ProviderDefinition[] = [...providers, ...extraProviders];
  const { localOnly, offline } = config.values.app;
  const settingsOf = (id: string) => usableSettings(definitions.some(each => each.id === id) ? config.textsOf(id) : {});
  const stays = (id: string) => definitions.find(each => each.id === id)?.local?.(settingsOf(id)) === true;
  const usable = (id: string) => !(localOnly || offline) || stays(id);
  const configured = definitions
    .filter(({ id, configured: isConfigured }) => usable(id) && isConfigured(settingsOf(id)))
    .map(({ id }) => id);
  return { settingsOf, usable, configured };
}
