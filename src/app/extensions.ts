import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { ToolDefinition } from '../calls/tool.ts';
import { AppError, asError, configError, isAppError } from '../core/errors.ts';
import { isRecord, jsonOf, recordIn } from '../core/json.ts';
import type { ProviderDefinition } from '../models/provider.ts';
import type { StoreDefinition } from '../storage/store.ts';
import { isProvider, isStore, isTool } from './stores.ts';

/** Additions from outside the package. */
export interface Extensions {
  /** Tools next to the built-in ones; a name that is taken is refused. Default: none. */
  tools?: readonly ToolDefinition[];
  /** Providers next to the built-in ones. Default: none. */
  providers?: readonly ProviderDefinition[];
  /** Stores that POLYLOGUE_STORE may name. Default: none. */
  stores?: readonly StoreDefinition[];
}

/**
 * The modules that POLYLOGUE_EXTENSIONS names: absolute paths, paths from `home` that begin with a dot, or packages below `home`. Each
 * exports definitions, `tools`, `providers` or `stores`, which come after those `given`, and runs with all rights of this process.
 */
export function loadExtensions(names: readonly string[], home: string, given: Extensions): Required<Extensions> {
  const found = names.map(name => {
    const loaded = load(name, home);
    const tools = listIn(name, loaded, 'tools', isTool);
    const providers = listIn(name, loaded, 'providers', isProvider);
    const stores = listIn(name, loaded, 'stores', isStore);
    if (tools.length + providers.length + stores.length === 0)
      throw configError(`The extension "${name}" exports no tools, providers or stores.`, {
        next: 'Export lists under these names, as in: export const tools = [defineTool({ … })].',
      });
    return { tools, providers, stores };
  });
  const all: Extensions[] = [given, ...found];
  return {
    tools: all.flatMap(({ tools = [] }) => tools.map(guarded)),
    providers: all.flatMap(({ providers = [] }) => providers),
    stores: all.flatMap(({ stores = [] }) => stores),
  };
}

/** A tool from outside: where it throws, or brings something else than a reply, that is told as its failure and not as ours. */
function guarded(tool: ToolDefinition): ToolDefinition {
  const { name, mode } = tool;
  if (mode.kind !== 'action') return tool;
  const run: typeof mode.run = async (args, context) => {
    try {
      const document: unknown = await mode.run(args, context);
      if (isRecord(document)) return jsonOf(document);
      throw new TypeError('its "run" has to return an object');
    } catch (cause) {
      if (isAppError(cause)) throw cause;
      const next = 'Fix the tool: it is defined by an extension or by the program that uses Polylogue.';
      const details = { code: 'INTERNAL_SERVER_ERROR', class: 'tool', next, cause } as const;
      throw new AppError('bug', `The tool "${name}" failed: ${asError(cause).message}`, details);
    }
  };
  return { ...tool, mode: { kind: 'action', run } };
}

function load(name: string, home: string): Record<string, unknown> {
  try {
    return recordIn(createRequire(join(home, 'package.json'))(name));
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    throw configError(`The extension "${name}" cannot be loaded: ${reason}`, {
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
      next: `Export a list of what define${key.charAt(0).toUpperCase()}${key.slice(1, -1)} answers as "${key}", each with all that its type wants (docs/reference/library.md).`,
    });
  });
}
