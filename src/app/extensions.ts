import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { ToolDefinition } from '../calls/tool.ts';
import { configError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import type { ProviderDefinition } from '../models/provider.ts';
import type { StoreDefinition } from '../storage/store.ts';

/** What comes from outside the package and stands beside what is in it. */
export interface Extensions {
  tools?: readonly ToolDefinition[];
  providers?: readonly ProviderDefinition[];
  stores?: readonly StoreDefinition[];
}

/**
 * The modules that POLYLOGUE_EXTENSIONS names: absolute paths, paths from `home` that begin with a dot, or packages installed
 * below `home`. Each exports `tools`, `providers` or `stores`: lists of definitions. They run with all rights of this process.
 */
export function loadExtensions(names: readonly string[], home: string): Required<Extensions> {
  const all: Required<Extensions> = { tools: [], providers: [], stores: [] };
  for (const name of names) {
    const loaded = load(name, home);
    const tools = listIn(name, loaded, 'tools', isTool);
    const providers = listIn(name, loaded, 'providers', isProvider);
    const stores = listIn(name, loaded, 'stores', isStore);
    if (tools.length + providers.length + stores.length === 0) throw empty(name);
    all.tools = [...all.tools, ...tools];
    all.providers = [...all.providers, ...providers];
    all.stores = [...all.stores, ...stores];
  }
  return all;
}

function load(name: string, home: string): Record<string, unknown> {
  try {
    const loaded: unknown = createRequire(join(home, 'package.json'))(name);
    return isRecord(loaded) ? loaded : {};
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    throw configError(`The extension "${name}" can't be loaded: ${reason}`, {
      next: `Name a file by its absolute path or from ${home} (./mine.js), or install the package in ${home}; or remove it from POLYLOGUE_EXTENSIONS.`,
      cause: error,
    });
  }
}

function listIn<Definition>(
  name: string,
  loaded: Record<string, unknown>,
  key: string,
  is: (item: unknown) => item is Definition,
): Definition[] {
  const list = loaded[key];
  if (list === undefined) return [];
  const items: unknown[] = Array.isArray(list) ? list : [undefined];
  return items.map((item, index) => {
    if (is(item)) return item;
    throw configError(`"${key}" of the extension "${name}" holds something else at place ${index + 1}.`, {
      next: `Export a list of what define${key.charAt(0).toUpperCase()}${key.slice(1, -1)} answers as "${key}".`,
    });
  });
}

function isTool(item: unknown): item is ToolDefinition {
  return (
    isRecord(item) &&
    typeof item.name === 'string' &&
    isRecord(item.fields) &&
    isRecord(item.mode) &&
    isRecord(item.effects)
  );
}

function isProvider(item: unknown): item is ProviderDefinition {
  return (
    isRecord(item) &&
    typeof item.id === 'string' &&
    Array.isArray(item.names) &&
    isRecord(item.options) &&
    typeof item.connect === 'function' &&
    typeof item.configured === 'function'
  );
}

function isStore(item: unknown): item is StoreDefinition {
  return isRecord(item) && typeof item.name === 'string' && typeof item.open === 'function';
}

function empty(name: string): Error {
  return configError(`The extension "${name}" exports no tools, providers or stores.`, {
    next: 'Export lists under these names, as in: export const tools = [defineTool({ … })].',
  });
}
