import { inParallel } from '../../core/concurrency.ts';
import { isRecord, recordIn, recordsIn } from '../../core/json.ts';
import type { LiveModel } from '../../models/provider.ts';
import { toModelError } from '../../models/resilience/errors.ts';
import { postJson, type VendorEndpoint, vendorFetch } from '../shared/http.ts';
import { firstCount } from '../shared/list-models.ts';

/** Reads a refusal of an Ollama server into the shape that our errors are made from. */
export async function ollamaFailure(response: Response): Promise<Error> {
  const text = await response.text();
  return Object.assign(new Error(text), {
    statusCode: response.status,
    responseHeaders: Object.fromEntries(response.headers),
    responseBody: text,
  });
}

/** Where an Ollama server is, and what it wants to see first. */
export type OllamaServer = Pick<VendorEndpoint, 'baseUrl' | 'headers'>;

export interface OllamaListing {
  server: OllamaServer;
  /** The window that no model passes, in tokens. */
  cap: number;
  /** Whether models count that the server itself forwards to ollama.com. */
  cloud: boolean;
}

interface Facts extends Pick<LiveModel, 'window' | 'input' | 'reasoning'> {
  chats: boolean;
}

const maxConcurrent = 8;

/**
 * Lists what an Ollama server has pulled, with the window that each is asked with. What a model is does not change while
 * its digest stays, so that each is looked at once.
 */
export function createOllamaList({ server, cap, cloud }: OllamaListing): (signal: AbortSignal) => Promise<LiveModel[]> {
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

  return async signal => {
    const rows = recordsIn((await get(server, signal)).models);
    return (await inParallel(rows, maxConcurrent, row => liveModel(row, signal))).flat();
  };
}

/** Whether a name is one that Ollama's servers answer themselves, wherever the question was sent. */
export const isCloudName = (name: string): boolean => /[:-]cloud$/i.test(name);

/** Ollama takes a name without a tag for its `latest`, and so does the catalogue. */
const plainName = (name: string): string => name.replace(/:latest$/, '');

async function get({ baseUrl, headers }: OllamaServer, signal: AbortSignal): Promise<Record<string, unknown>> {
  try {
    const response = await vendorFetch(`${baseUrl}/tags`, { headers: { ...headers }, signal });
    if (!response.ok) throw await ollamaFailure(response);
    const body: unknown = JSON.parse(await response.text());
    if (isRecord(body) && Array.isArray(body.models)) return body;
    throw Object.assign(new Error('no list of models'), { statusCode: response.status });
  } catch (error) {
    signal.throwIfAborted();
    throw toModelError(error, { provider: 'ollama', model: 'its list of models', now: 0 });
  }
}

/** Undefined when the server did not say; then the model is there all the same. */
async function factsOf({ baseUrl, headers }: OllamaServer, model: string, signal: AbortSignal) {
  try {
    const question = { url: `${baseUrl}/show`, headers, body: { model }, provider: 'ollama', model };
    return factsIn(await postJson(question, signal));
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
