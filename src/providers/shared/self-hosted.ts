import type { ModelInfo } from '../../core/model.ts';
import type { EndpointSettings } from '../../core/option.ts';
import type { overlay } from '../../models/catalogue/overlay.ts';
import type { Connection, ProviderDefinition, ProviderSettings } from '../../models/provider.ts';
import { assumed, checkedBaseUrl, isLocalUrl, plainModel } from '../../models/provider.ts';
import { serverList } from './list-models.ts';
import { connectChatServer } from './openai-dialect.ts';

/** Connects to a server of the operator's own; `setting`: what its address was set by, for errors. */
export function connectOwnServer(
  provider: string,
  setting: string,
  { apiUrl = '', apiKey, headers }: Partial<Pick<EndpointSettings, 'apiUrl' | 'apiKey' | 'headers'>>,
): Promise<Connection> {
  const bearer = apiKey !== undefined && { Authorization: `Bearer ${apiKey}` };
  const server = { provider, baseUrl: checkedBaseUrl(apiUrl, setting), headers: { ...bearer, ...headers } };
  return connectChatServer(server, serverList);
}

/** Nothing is known of it but its name; half of the window is the most it may answer. The server may tell the window. */
export const ownModel = (provider: string, id: string): ModelInfo =>
  plainModel({ ...assumed, provider, id, windowAssumed: true, maxOutput: assumed.window / 2 });

/** What is taken for the window of its models, as somebody set it. */
export const fallbackWindow = (window: number | undefined) => ({
  tokens: window ?? assumed.window,
  assumed: window === undefined,
});

/**
 * The servers that the configuration file names, as providers. `window` is taken where neither they nor an entry tell one. What reads
 * entries of models is too large to be loaded with every provider.
 */
export function ownEndpoints(
  endpoints: readonly EndpointSettings[],
  providers: readonly ProviderDefinition[],
  window: number | undefined,
  readModels: typeof overlay,
) {
  const taken = new Set(providers.flatMap(({ id, names }) => [id, ...names]));
  const definitions: ProviderDefinition[] = [];
  /** By id; tells lists of one server from those of another. */
  const settings: Record<string, ProviderSettings> = {};
  /** One sentence for each server or model that was left out. */
  const warnings: string[] = [];
  for (const endpoint of endpoints) {
    const { id, names, apiUrl, apiKey, contextWindow = window } = endpoint;
    const clash = [id, ...names].find(name => taken.has(name));
    if (clash !== undefined) {
      warnings.push(`The endpoint "${id}" is disabled: "${clash}" is the name of a provider.`);
      continue;
    }
    const entries = endpoint.models.map(entry => (typeof entry === 'string' ? { model_name: entry } : entry));
    const named = new Set(entries.flatMap(({ model_name: name }) => (typeof name === 'string' ? [name] : [])));
    const own = Array.from(named, name => ownModel(id, name));
    const { models, warnings: problems } = readModels(own, id, { models: entries });
    warnings.push(...problems);
    settings[id] = { apiUrl, apiKey };
    definitions.push({
      ...{ id, names, title: `${id}, a custom endpoint`, options: {}, openEnded: true },
      configured: () => true,
      connect: () => connectOwnServer(id, `api_url of ${id}`, endpoint),
      models: () => models,
      fallbackWindow: () => fallbackWindow(contextWindow),
      local: () => isLocalUrl(apiUrl),
    });
  }
  return { definitions, settings, warnings };
}
