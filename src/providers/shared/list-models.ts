import { isAppError } from '../../core/errors.ts';
import { isRecord, parsedJson, recordsIn } from '../../core/json.ts';
import type { LiveModel } from '../../models/provider.ts';
import { toModelError } from '../../models/resilience/errors.ts';
import { type Fetch, vendorFetch } from './http.ts';

/** Where a vendor lists its models: `GET {baseUrl}/models`. */
export interface LiveListSource {
  /** Id of the provider, for errors. */
  provider: string;
  baseUrl: string;
  headers: Readonly<Record<string, string>>;
  /** Absent: `vendorFetch`. */
  fetch?: Fetch;
}

/** Against a server that pages in a circle. */
const maxPages = 20;

/** All models of a listing in OpenAI's or Anthropic's form. Throws an `AppError` of kind `model`, or the signal's reason. */
export async function liveList(source: LiveListSource, signal: AbortSignal): Promise<LiveModel[]> {
  const models = new Map<string, LiveModel>();
  let after: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const query = after === undefined ? '' : `?after_id=${encodeURIComponent(after)}`;
    const body = await listPage(source, query, signal);
    for (const model of recordsIn(body.data).flatMap(modelOf)) models.set(model.id, model);
    if (body.has_more !== true || typeof body.last_id !== 'string' || body.last_id === after) break;
    after = body.last_id;
  }
  return [...models.values()];
}

/** One page of a listing, whatever its form: the object that `GET {baseUrl}/models` answers, or a bare list as its `data`. Throws like `liveList`. */
export async function listPage(
  { provider, baseUrl, headers, fetch = vendorFetch }: LiveListSource,
  query: string,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  try {
    const response = await fetch(`${baseUrl}/models${query}`, { headers: { ...headers }, signal });
    const text = await response.text();
    const body = parsedJson(text);
    if (response.ok && Array.isArray(body)) return { data: body };
    if (response.ok && isRecord(body)) return body;
    throw Object.assign(new Error('no list of models'), { statusCode: response.status, responseBody: text });
  } catch (error) {
    signal.throwIfAborted();
    throw toModelError(error, { provider, model: 'its list of models', now: 0 });
  }
}

/** The names under which servers tell the window. */
const windowFields = [
  'context_window',
  'context_length',
  'max_context_length',
  'max_model_len',
  'max_input_tokens',
] as const;

function modelOf(row: Record<string, unknown>): LiveModel[] {
  if (typeof row.id !== 'string' || row.id === '') return [];
  const window = windowFields.map(field => row[field]).find(value => typeof value === 'number' && value > 0);
  return [typeof window === 'number' ? { id: row.id, window } : { id: row.id }];
}

/**
 * The models of a server of one's own. vLLM and most others tell the window in the listing itself; LM Studio tells it in a
 * listing beside the dialect's, which is asked for only where the first says nothing. Undefined: it answered, and with no list.
 * Throws like `liveList`.
 */
export async function serverList(source: LiveListSource, signal: AbortSignal): Promise<LiveModel[] | undefined> {
  const models = await liveList(source, signal).catch(error => {
    if (isAppError(error) && String(error.details.status).startsWith('2')) return undefined;
    throw error;
  });
  if (!models || models.length === 0 || models.some(({ window }) => window !== undefined)) return models;
  const listed = await lmStudioModels(source, signal);
  return models.flatMap(model => {
    const more = listed.get(model.id);
    if (more === 'no chat') return [];
    return [{ ...model, ...more }];
  });
}

/** By id; empty where the server is no LM Studio. */
async function lmStudioModels({ baseUrl, ...source }: LiveListSource, signal: AbortSignal) {
  const found = new Map<string, ReturnType<typeof factsOf>>();
  const root = /^(.*)\/v1$/.exec(baseUrl)?.[1];
  if (root === undefined) return found;
  try {
    const body = await listPage({ ...source, baseUrl: `${root}/api/v0` }, '', signal);
    for (const row of recordsIn(body.data)) if (typeof row.id === 'string') found.set(row.id, factsOf(row));
  } catch {
    signal.throwIfAborted();
    // Other servers have nothing there, each with an error of its own; what the dialect's listing told is all there is.
  }
  return found;
}

/** What is loaded has the window that it was loaded with, which may be smaller than what the model could hold. */
function factsOf(row: Record<string, unknown>): Omit<LiveModel, 'id'> | 'no chat' {
  if (row.type === 'embeddings') return 'no chat';
  const window = [row.loaded_context_length, row.max_context_length].find(
    value => typeof value === 'number' && Number.isInteger(value) && value > 0,
  );
  return {
    ...(typeof window === 'number' ? { window } : {}),
    ...(row.type === 'vlm' ? { input: ['text', 'image'] } : {}),
  };
}
