import { isRecord } from '../../core/json.ts';
import { type LiveListSource, listPage } from '../../providers/shared/list-models.ts';
import type { LiveModel } from '../provider.ts';

/** Against a server that never stops naming a next page. */
const mostPages = 20;
/** The vendor's own limit; its list fits into one page of this size. */
const pageSize = 1000;

/**
 * The models of `GET {baseUrl}/models` in Gemini's form that write text on request: its listing names embedding and
 * drawing models too. Throws an `AppError` of kind `model`, or the signal's reason.
 */
export async function googleList(source: LiveListSource, signal: AbortSignal): Promise<LiveModel[]> {
  const models = new Map<string, LiveModel>();
  let token = '';
  for (let page = 0; page < mostPages; page++) {
    const query = new URLSearchParams({ pageSize: String(pageSize), ...(token !== '' && { pageToken: token }) });
    const body = await listPage(source, `?${query}`, signal);
    const rows = Array.isArray(body.models) ? body.models.filter(isRecord) : [];
    for (const model of rows.flatMap(modelOf)) models.set(model.id, model);
    const next = body.nextPageToken;
    if (typeof next !== 'string' || next === '' || next === token) break;
    token = next;
  }
  return [...models.values()];
}

/** The window is what the vendor calls the input limit; its own documents give no other. */
function modelOf({ name, inputTokenLimit, supportedGenerationMethods }: Record<string, unknown>): LiveModel[] {
  if (typeof name !== 'string') return [];
  const id = name.replace(/^models\//, '');
  const methods = supportedGenerationMethods;
  // Servers that merely speak like Gemini may leave the methods out.
  if (id === '' || (Array.isArray(methods) && !methods.includes('generateContent'))) return [];
  const told = typeof inputTokenLimit === 'number' && inputTokenLimit > 0;
  return [told ? { id, window: inputTokenLimit } : { id }];
}
