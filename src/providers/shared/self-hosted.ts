import type { ModelInfo } from '../../core/model.ts';
import type { EndpointSettings } from '../../core/option.ts';
import type { overlay } from '../../models/catalogue/overlay.ts';
import type { Connection, ProviderDefinition, ProviderSettings } from '../../models/provider.ts';
import { checkedBaseUrl, isLocalUrl, plainModel, usualWindow } from '../../models/provider.ts';
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
export function ownModel(provider: string, id: string): ModelInfo {
  const maxOutput = usualWindow / 2;
  return plainModel({ provider, id, window: usualWindow, windowAssumed: true, maxOutput, score: 5 });
}

/** What is taken for the window of its models, as somebody set it. */
export const fallbackWindow = (window: number | undefined) => ({
  tokens: window ?? usualWindow,
  assumed: window === undefined,
});

export interface OwnEndpoints {
  definitions: ProviderDefinition[];
  /** By id; tells lists of one server from those of another. */
  settings: Record<string, ProviderSettings>;
  /** One sentence for each server or model that was left out. */
  warnings: string[];
}

/**
 * The servers that the configuration file names, as providers. `window` is taken where neither they nor an entry tell one. What reads
 * entries of models is too large to be loaded with every provider.
 */
export function ownEndpoints(
  endpoints: readonly EndpointSettings[],
  providers: readonly ProviderDefinition[],
  window: number | undefined,
  readModels: typeof overlay,
): OwnEndpoints {
  const taken = new Set(providers.flatMap(({ id, names }) => [id, ...names]));
  const found: OwnEndpoints = { definitions: [], settings: {}, warnings: [] };
  for (const endpoint of endpoints) {
    const { id, names, apiUrl, apiKey } = endpoint;
    const clash = [id, ...names].find(name => taken.has(name));
    if (clash !== undefined) {
      found.warnings.push(`The endpoint "${id}" is disabled: "${clash}" is the name of a provider.`);
      continue;
    }
    const { definition, warnings } = ownEndpoint(endpoint, window, readModels);
    found.definitions.push(definition);
    found.settings[id] = { apiUrl, apiKey };
    found.warnings.push(...warnings);
  }
  return found;
}

function ownEndpoint(endpoint: EndpointSettings, fallback: number | undefined, readModels: typeof overlay) {
  const { id, names, apiUrl, contextWindow } = endpoint;
  const { models, warnings } = modelsOf(endpoint, readModels);
  const window = contextWindow ?? fallback;
  return {
    warnings,
    definition: {
      id,
      names,
      title: `${id}, a custom endpoint`,
      options: {},
      openEnded: true,
      configured: () => true,
      connect: () => connectOwnServer(id, `api_url of ${id}`, endpoint),
      models: () => models,
      fallbackWindow: () => fallbackWindow(window),
      local: () => isLocalUrl(apiUrl),
    },
  };
}

function modelsOf({ id, models: entries }: EndpointSettings, readModels: typeof overlay) {
  const models = entries.map(entry => (typeof entry === 'string' ? { model_name: entry } : entry));
  const start = models.flatMap(({ model_name: name }) => (typeof name === 'string' ? [ownModel(id, name)] : []));
  const unique = start.filter((model, at) => start.findIndex(other => other.id === model.id) === at);
  return readModels(unique, id, { models });
}
