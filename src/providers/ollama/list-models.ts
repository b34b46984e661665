import { inParallel } from '../../core/concurrency.ts';
import { recordIn, recordsIn } from '../../core/json.ts';
import type { LiveModel, VendorEndpoint } from '../../models/provider.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import { askJson } from '../shared/http.ts';
import { firstCount, listPage } from '../shared/list-models.ts';

/** Where an Ollama server is, and what it wants to see first. */
export type OllamaServer = Pick<VendorEndpoint, 'baseUrl' | 'headers'>;

interface Facts extends Pick<LiveModel, 'window' | 'input' | 'reasoning'> {
  chats: boolean;
}

const maxConcurrent = 8;

/**
 * Lists what an Ollama server has pulled. What a model is does not change while its digest stays, so that each is looked at once.
 * `cap`: the window that no model passes, in tokens; `cloud`: models count that the server itself forwards to ollama.com.
 */
export function createOllamaList(server: OllamaServer, cap: number, cloud: boolean) {
  const known = new Map<string, Facts>();

  async function liveModel(row: Record<string, unknown>, signal: AbortSignal): Promise<LiveModel[]> {
    const name = row.name ?? row.model;
    if (typeof name !== 'string' || name === '') return [];
    if (!cloud && (isCloudName(name) || row.remote_host)) return [];
    const key = `${name} ${String(row.digest)}`;
    const facts = known.get(key) ?? (await factsOf(server, name, signal));
    if (!facts) return [{ id: plainName(name), window: cap }];
    known.set(key, facts);
    if (!facts.chats) return [];
    const { window = cap, input, reasoning } = facts;
    return [{ id: plainName(name), window: Math.min(window, cap), ...(input && { input, reasoning }) }];
  }

  return async (signal: AbortSignal): Promise<LiveModel[]> => {
    const { models } = await listPage({ ...server, provider: 'ollama' }, '', signal, 'tags');
    if (!Array.isArray(models)) throw badUpstream('ollama answered 200 for its list of models: no list of models');
    return (await inParallel(recordsIn(models), maxConcurrent, row => liveModel(row, signal))).flat();
  };
}

/** Whether a name is one that Ollama's servers answer themselves, wherever the question was sent. */
export const isCloudName = (name: string): boolean => /[:-]cloud$/i.test(name);

/** Ollama takes a name without a tag for its `latest`, and so does the catalogue. */
const plainName = (name: string): string => name.replace(/:latest$/, '');

/** Undefined when the server did not say; then the model is there all the same. */
async function factsOf({ baseUrl, headers }: OllamaServer, model: string, signal: AbortSignal) {
  try {
    const question = { url: `${baseUrl}/show`, headers, body: { model }, provider: 'ollama', model };
    return factsIn(await askJson(question, signal));
  } catch {
    signal.throwIfAborted();
    // One model that can't be looked at does not hide the others.
    return undefined;
  }
}

function factsIn({ capabilities, model_info: info }: Record<string, unknown>): Facts {
  const window = windowIn(recordIn(info));
  // Servers from before there were capabilities say nothing of them.
  if (!Array.isArray(capabilities)) return { chats: true, window };
  return {
    chats: capabilities.includes('completion'),
    window,
    input: capabilities.includes('vision') ? ['text', 'image'] : ['text'],
    reasoning: capabilities.includes('thinking'),
  };
}

/** Stands under the name of the model's architecture: `llama.context_length`. */
function windowIn(info: Record<string, unknown>): number | undefined {
  const own = info[`${String(info['general.architecture'])}.context_length`];
  return firstCount(own ?? Object.entries(info).find(([name]) => name.endsWith('.context_length'))?.[1]);
}
