import { type Config, type ConfigSources, loadConfig } from '../config/load.ts';
import { configError } from '../core/errors.ts';
import { usableSettings } from '../models/catalogue/connections.ts';
import type { ProviderDefinition, ProviderSettings } from '../models/provider.ts';
import { providers } from '../providers/index.gen.ts';
import { offered } from '../tools/offered.gen.ts';
import type { Extensions } from './extensions.ts';
import { ownTables, storeTables, withStores } from './stores.ts';

/** All options there are: the product's own, each provider's, by its id, and those of stores. */
export const tables = { ...Object.fromEntries(providers.map(({ id, options }) => [id, options])), ...ownTables };

export type AppConfig = Config<typeof tables>;

/** The same configuration, but for some of the product's own values. */
export function withValues(config: AppConfig, changed: Partial<AppConfig['values']['app']>): AppConfig {
  return { ...config, values: { ...config.values, app: { ...config.values.app, ...changed } } };
}

/** The providers as the operator set them up. */
export function providerSetup(config: AppConfig, extraProviders: readonly ProviderDefinition[] = []) {
  const definitions: readonly ProviderDefinition[] = [...providers, ...extraProviders];
  const { localOnly, offline } = config.values.app;
  /** What a provider of this id is set to; empty for one that there isn't. */
  const settingsOf = (id: string): ProviderSettings =>
    usableSettings(definitions.some(each => each.id === id) ? config.textsOf(id) : {});
  const stays = (id: string) => definitions.find(each => each.id === id)?.local?.(settingsOf(id)) === true;
  /** Whether it may be asked at all: where nothing may leave this machine, only what runs on it. */
  const usable = (id: string) => !(localOnly || offline) || stays(id);
  const configured = definitions
    .filter(({ id, configured: isConfigured }) => usable(id) && isConfigured(settingsOf(id)))
    .map(({ id }) => id);
  return { settingsOf, usable, configured };
}

const idForm = /^[a-z][a-z0-9-]{0,39}$/;

const toolForm = /^[a-z][a-z0-9_]{0,63}$/;

/** All options there are, those of what comes from outside included. Throws where that is named like something else. */
function tablesWith(extensions: Extensions): typeof tables {
  const { providers = [], stores = [] } = extensions;
  refuseTaken(extensions);
  return {
    ...tables,
    ...Object.fromEntries(providers.map(({ id, options }) => [id, options])),
    ...storeTables(stores),
    app: withStores(tables.app, stores),
  };
}

/** Settings, with those of the modules that POLYLOGUE_EXTENSIONS names; `given`: extensions that the program has at hand. */
export async function loadAppConfig(sources: Omit<ConfigSources<typeof tables>, 'tables'>, given: Extensions = {}) {
  const { extensions, home, forceEnvOverride } = tables.app;
  // Read by itself: the other settings may be words that only an extension knows.
  const first = loadConfig({ ...sources, tables: { app: { extensions, home, forceEnvOverride } } });
  const readEndpoints = first.namesEndpoints ? (await import('../config/endpoints.ts')).readOwnEndpoints : undefined;
  const load = (known: Extensions) => loadConfig({ ...sources, readEndpoints, tables: tablesWith(known) });
  const names = first.values.app.extensions ?? [];
  if (names.length === 0 && !given.tools) return { config: load(given), extensions: given };
  const { loadExtensions } = await import('./extensions.ts');
  const all = loadExtensions(names, first.home, given);
  return { config: load(all), extensions: all };
}

function refuseTaken({ tools: extraTools = [], providers = [], stores = [] }: Extensions): void {
  const { app, ...known } = tables;
  const nameOf = ({ name }: { name: string }) => name;
  refuse('tool', toolForm, extraTools.map(nameOf), offered.map(nameOf));
  const providerIds = providers.map(({ id }) => id);
  refuse('provider', idForm, providerIds, ['app', ...Object.keys(known)]);
  refuse('store', idForm, stores.map(nameOf), app.store.choices);
}

function refuse(what: string, form: RegExp, names: readonly string[], taken: readonly string[]): void {
  const seen = new Set(taken);
  for (const name of names) {
    if (typeof name !== 'string' || !form.test(name))
      throw configError(`A ${what} from outside cannot be named "${String(name)}".`, {
        next: `Name it with small letters and digits, beginning with a letter: ${form.source}.`,
      });
    if (seen.has(name))
      throw configError(`There is a ${what} "${name}" already.`, { next: `Give the ${what} another name.` });
    seen.add(name);
  }
}
