import { isRecord } from '../../core/json.ts';
import { type LiveListSource, listPage, liveList } from '../../providers/shared/list-models.ts';
import type { LiveModel } from '../provider.ts';

/**
 * The models of a server of one's own. vLLM and most others tell the window in the listing itself; LM Studio tells it in a
 * listing beside the dialect's, which is asked for only where the first says nothing. Throws like `liveList`.
 */
export async function serverList(source: LiveListSource, signal: AbortSignal): Promise<LiveModel[]> {
  const models = await liveList(source, signal);
  if (models.length === 0 || models.some(({ window }) => window !== undefined)) return models;
  const told = await lmStudioModels(source, signal);
  return models.flatMap(model => {
    const more = told.get(model.id);
    if (more === 'no chat') return [];
    return [{ ...model, ...more }];
  });
}

/** By id; empty where the server is no LM Studio. */
async function lmStudioModels(
  { baseUrl, ...source }: LiveListSource,
  signal: AbortSignal,
): Promise<Map<string, Omit<LiveModel, 'id'> | 'no chat'>> {
  const root = /^(.*)\/v1$/.exec(baseUrl)?.[1];
  if (root === undefined) return new Map();
  try {
    const body = await listPage({ ...source, baseUrl: `${root}/api/v0` }, '', signal);
    const rows = Array.isArray(body.data) ? body.data.filter(isRecord) : [];
    return new Map(rows.flatMap(row => (typeof row.id === 'string' ? [[row.id, factsOf(row)]] : [])));
  } catch {
    signal.throwIfAborted();
    // Other servers have nothing there, each with an error of its own; what the dialect's listing told is all there is.
    return new Map();
  }
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
