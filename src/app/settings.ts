import { type StorePlace, storePlace } from '../config/derived-settings.ts';
import { homeProblem, requireHome } from '../config/home.ts';
import { type Config, type ConfigSources, loadConfig } from '../config/load.ts';
import { options } from '../config/options.ts';
import { configError } from '../core/errors.ts';
import { usableSettings } from '../models/catalogue/connections.ts';
import type { ProviderDefinition, ProviderSettings } from '../models/provider.ts';
import { providers } from '../providers/index.gen.ts';
import type { Store, StoreContext } from '../storage/store.ts';
import { tools } from '../tools/index.gen.ts';
import type { Extensions } from './extensions.ts';

/** All options there are: the product's own and each provider's, by its id. */
export const tables = { ...Object.fromEntries(providers.map(({ id, options: table }) => [id, table])), app: options };

export type AppConfig = Config<typeof tables>;

/** The same configuration, but for some of the product's own values. */
export function withValues(config: AppConfig, changed: Partial<AppConfig['values']['app']>): AppConfig {
  return { ...config, values: { ...config.values, app: { ...config.values.app, ...changed } } };
}

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

const idForm = /^[a-z][a-z0-9-]{0,39}$/;

const toolForm = /^[a-z][a-z0-9_]{0,63}$/;

/** All options there are, those of what comes from outside included. Throws where that is named like something else. */
function tablesWith(extensions: Extensions): typeof tables {
  const { providers = [], stores = [] } = extensions;
  refuseTaken(extensions);
  const { app } = tables;
  const choices = [...app.store.choices, ...stores.map(({ name }) => name)];
  return {
    ...tables,
    ...Object.fromEntries(providers.map(({ id, options }) => [id, options])),
    ...Object.fromEntries(stores.map(({ name, options = {} }) => [tableOf(name), options])),
    // The words are checked as texts; only the type of the option knows those of the product alone.
    app: Object.assign({ ...app }, { store: { ...app.store, choices } }),
  };
}

export type AppSources = Omit<ConfigSources<typeof tables>, 'tables'>;

/**
 * Settings, with the modules loaded that POLYLOGUE_EXTENSIONS names: they bring settings of their own. `given` are extensions
 * that the program has at hand.
 */
export async function loadAppConfig(
  sources: AppSources,
  given: Extensions = {},
): Promise<{ config: AppConfig; extensions: Extensions }> {
  const plain = () => loadConfig({ ...sources, tables: tablesWith(given) });
  const names = namesOf(sources);
  if (names.length === 0) return { config: plain(), extensions: given };
  const { home } = loadConfig({ ...sources, tables: { app: { home: tables.app.home } } });
  const { loadExtensions } = await import('./extensions.ts');
  const loaded = loadExtensions(names, home);
  const extensions = {
    tools: [...(given.tools ?? []), ...loaded.tools],
    providers: [...(given.providers ?? []), ...loaded.providers],
    stores: [...(given.stores ?? []), ...loaded.stores],
  };
  return { config: loadConfig({ ...sources, tables: tablesWith(extensions) }), extensions };
}

/** Read by itself: the other settings may be words that only an extension knows. */
function namesOf(sources: AppSources): readonly string[] {
  const { extensions, home, forceEnvOverride } = tables.app;
  return (
    loadConfig({ ...sources, tables: { app: { extensions, home, forceEnvOverride } } }).values.app.extensions ?? []
  );
}

/** A store is no provider, and may be named like one. */
function tableOf(store: string): string {
  return `store.${store}`;
}

function refuseTaken({ tools: extraTools = [], providers = [], stores = [] }: Extensions): void {
  const { app, ...known } = tables;
  const nameOf = ({ name }: { name: string }) => name;
  const idOf = ({ id }: { id: string }) => id;
  refuse('tool', toolForm, extraTools.map(nameOf), tools.map(nameOf));
  refuse('provider', idForm, providers.map(idOf), ['app', ...Object.keys(known)]);
  refuse('store', idForm, stores.map(nameOf), app.store.choices);
}

function refuse(what: string, form: RegExp, names: readonly string[], taken: readonly string[]): void {
  const seen = new Set(taken);
  for (const name of names) {
    if (typeof name !== 'string' || !form.test(name)) {
      throw configError(`A ${what} from outside can't be named "${String(name)}".`, {
        next: `Name it with small letters and digits, beginning with a letter: ${form.source}.`,
      });
    }
    if (seen.has(name)) {
      throw configError(`There is a ${what} "${name}" already.`, { next: `Give the ${what} another name.` });
    }
    seen.add(name);
  }
}

/** Where threads live: in a file, on a server, in a store from outside, or, with none of them, in memory. */
export type OpenableStorePlace = StorePlace & { own?: (context: StoreContext) => Store | Promise<Store> };

export function placeOf(config: AppConfig, { stores = [] }: Extensions = {}): OpenableStorePlace {
  const chosen: string = config.values.app.store;
  const own = config.values.app.private ? undefined : stores.find(({ name }) => name === chosen);
  if (!own) return ownPlace(config);
  const { name } = own;
  return {
    name,
    isPrivate: homeProblem(config.home) !== undefined,
    own: context => own.open(config.textsOf(tableOf(name)), context),
  };
}

/** Whoever keeps threads in a file needs a place for it. */
function ownPlace({ values, home }: AppConfig): StorePlace {
  const place = storePlace(values.app, home);
  if (place.file !== undefined) requireHome(home);
  return place;
}
