import { isAppError } from '../../core/errors.ts';
import { recordIn, recordsIn } from '../../core/json.ts';
import type { LiveModel, VendorEndpoint } from '../../models/provider.ts';
import { askJson, type JsonQuestion } from './http.ts';

/** Where a vendor lists its models: `GET {baseUrl}/models`. */
export type LiveListSource = Pick<VendorEndpoint, 'baseUrl' | 'provider' | 'headers'> & Pick<JsonQuestion, 'fetch'>;

/** Against a server that pages in a circle, or never stops naming a next page. */
const maxPages = 20;

/** All entries of a listing in pages. `next`: by which mark the next page is asked for; what is no text: there is none. */
export async function allPages<Entry extends { id: string }>(
  read: (mark: string | undefined) => Promise<{ entries: readonly Entry[]; next: unknown }>,
): Promise<Entry[]> {
  const found = new Map<string, Entry>();
  let mark: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const { entries, next } = await read(mark);
    for (const entry of entries) found.set(entry.id, entry);
    if (typeof next !== 'string' || next === '' || next === mark) break;
    mark = next;
  }
  return [...found.values()];
}

/** What a row of a listing tells of its model; undefined for one that can't be conversed with. */
type FactsOf = (row: Record<string, unknown>) => Omit<LiveModel, 'id'> | undefined;

/** All models of a listing in OpenAI's or Anthropic's form. Throws an `AppError` of kind `model`, or the signal's reason. */
export const liveList = (source: LiveListSource, signal: AbortSignal, factsOf: FactsOf = limitsOf) =>
  allPages<LiveModel>(async after => {
    const query = after === undefined ? '' : `?after_id=${encodeURIComponent(after)}`;
    const { data, has_more: more, last_id: last } = await listPage(source, query, signal);
    const entries = recordsIn(data).flatMap(row => {
      // Groq also lists what it does not serve now.
      const isServed = typeof row.id === 'string' && row.id !== '' && row.active !== false;
      const facts = isServed ? factsOf(row) : undefined;
      return facts ? [{ id: String(row.id), ...facts }] : [];
    });
    return { entries, next: more === true && last };
  });

/** One page of a listing, whatever its form: what `askJson` makes of `GET {baseUrl}/models`. Throws like `liveList`. */
export function listPage({ baseUrl, ...source }: LiveListSource, query: string, signal: AbortSignal, path = 'models') {
  const question = { ...source, url: `${baseUrl}/${path}${query}`, model: 'its list of models' };
  return askJson(question, signal, 'list of models');
}

/** The names under which servers tell the window, and how long an answer may be. */
const windowFields = ['context_window', 'context_length', 'max_context_length', 'max_model_len', 'max_input_tokens'];
const outputFields = ['max_completion_tokens', 'max_output_tokens', 'max_tokens'];

/** The first that can be a count of tokens. */
export const firstCount = (...values: readonly unknown[]): number | undefined =>
  values.find((value): value is number => Number.isInteger(value) && Number(value) > 0);

function limitsOf(row: Record<string, unknown>): Omit<LiveModel, 'id'> {
  // llama.cpp tells the window that it was started with beside the one that the model was trained with.
  const window = firstCount(...windowFields.map(field => row[field]), recordIn(row.meta).n_ctx);
  return { window, maxOutput: firstCount(...outputFields.map(field => row[field])) };
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
    return more === 'no chat' ? [] : [{ ...model, ...more }];
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
  const window = firstCount(row.loaded_context_length, row.max_context_length);
  return { ...(window && { window }), ...(row.type === 'vlm' && { input: ['text', 'image'] }) };
}
