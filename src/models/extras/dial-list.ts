import { isRecord } from '../../core/json.ts';
import type { InputKind } from '../../core/model.ts';
import { type LiveListSource, listPage } from '../../providers/shared/list-models.ts';
import type { LiveModel } from '../provider.ts';

/** The deployments of `GET {baseUrl}/models` in DIAL's form that can be conversed with. Throws like `liveList`. */
export async function dialList(source: LiveListSource, signal: AbortSignal): Promise<LiveModel[]> {
  const body = await listPage(source, '', signal);
  const rows = Array.isArray(body.data) ? body.data.filter(isRecord) : [];
  return rows.flatMap(row => {
    const { id, capabilities } = row;
    if (typeof id !== 'string' || id === '') return [];
    if (isRecord(capabilities) && capabilities.chat_completion === false) return [];
    return [{ id, ...windowOf(row.limits), ...inputOf(row.input_attachment_types) }];
  });
}

function windowOf(limits: unknown): { window?: number } {
  if (!isRecord(limits)) return {};
  const window = [limits.max_total_tokens, limits.max_prompt_tokens].find(
    value => typeof value === 'number' && Number.isInteger(value) && value > 0,
  );
  return typeof window === 'number' ? { window } : {};
}

/** Said only where the operator of the server wrote it down. */
function inputOf(types: unknown): { input?: readonly InputKind[] } {
  if (!Array.isArray(types)) return {};
  return { input: types.some(type => /^(image\/|\*\/)/.test(String(type))) ? ['text', 'image'] : ['text'] };
}
