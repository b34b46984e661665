import type { ToolDefinition } from '../calls/tool.ts';
import { type StorePlace, storePlace } from '../config/derived-settings.ts';
import { homeProblem, requireHome } from '../config/home.ts';
import type { Config } from '../config/load.ts';
import type { OptionTable } from '../config/option-values.ts';
import { options } from '../config/options.ts';
import { isRecord } from '../core/json.ts';
import type { ProviderDefinition } from '../models/provider.ts';
import type { Store, StoreContext, StoreDefinition } from '../storage/store.ts';

/** The stores of the package in addition to `sqlite`, `redis` and `memory`: one entry each, whose `open` imports the store. */
export const stores: readonly StoreDefinition[] = [];

/** A store may have the name of a provider. */
const tableOf = (store: string) => `store.${store}`;

/** The options of stores, by table. */
export const storeTables = (definitions: readonly StoreDefinition[]): Record<string, OptionTable> =>
  Object.fromEntries(definitions.map(({ name, options: table = {} }) => [tableOf(name), table]));

/** The options of the product, with stores as further choices of POLYLOGUE_STORE. */
export function withStores(app: typeof options, definitions: readonly StoreDefinition[]): typeof options {
  const choices = [...app.store.choices, ...definitions.map(({ name }) => name)];
  // The words are checked as texts; only the type of the option knows the first ones alone.
  return Object.assign({ ...app }, { store: { ...app.store, choices } });
}

/** All options but those of providers. */
export const ownTables = { ...storeTables(stores), app: withStores(options, stores) };

/** Where threads live, and what opens that where it is neither a file, nor Redis, nor memory. */
export type OpenableStorePlace = StorePlace & { own?: (context: StoreContext) => Store | Promise<Store> };

/** The store that the operator chose, among those of the package and of extensions. */
export function placeOf(
  config: Pick<Config<{ app: typeof options }>, 'home' | 'values' | 'textsOf'>,
  extra: readonly StoreDefinition[] = [],
): OpenableStorePlace {
  const chosen: string = config.values.app.store;
  const own = config.values.app.private ? undefined : [...stores, ...extra].find(({ name }) => name === chosen);
  if (!own) {
    const place = storePlace(config.values.app, config.home);
    // Whoever keeps threads in a file needs a place for it.
    if (place.file !== undefined) requireHome(config.home);
    return place;
  }
  const { name } = own;
  const isPrivate = homeProblem(config.home) !== undefined;
  return { name, isPrivate, own: context => own.open(config.textsOf(tableOf(name)), context) };
}

const texts = { name: 'text', title: 'text', description: 'text', toolset: 'text' } as const;

export const isTool = shapedLike<ToolDefinition>({ ...texts, fields: 'record', mode: 'record', effects: 'record' });

export const isProvider = shapedLike<ProviderDefinition>({
  id: 'text',
  names: 'list',
  options: 'record',
  connect: 'function',
  configured: 'function',
});

export const isStore = shapedLike<StoreDefinition>({ name: 'text', open: 'function' });

/** Looks no deeper than at what each definition has. */
function shapedLike<Definition>(shape: { [Key in keyof Definition]?: 'text' | 'list' | 'record' | 'function' }) {
  const kindOf = (value: unknown) =>
    isRecord(value) ? 'record' : Array.isArray(value) ? 'list' : typeof value === 'string' ? 'text' : typeof value;
  return (item: unknown): item is Definition =>
    isRecord(item) && Object.entries(shape).every(([key, kind]) => kindOf(item[key]) === kind);
}
