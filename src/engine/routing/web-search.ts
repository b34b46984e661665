import type { CommonArguments } from '../../calls/call-record.ts';
import type { Thread } from '../../core/thread.ts';
import type { WebSearch } from '../../models/ask-model.ts';
import type { Resolution } from '../../models/routing/resolve.ts';

export interface SearchSettings extends WebSearch {
  when: 'auto' | 'asked' | 'off';
}

/** For calls whose models are chosen one by one: only where the caller says so. */
export function askedSearch(
  { when, ...search }: SearchSettings,
  { webSearch: asked }: Pick<CommonArguments, 'webSearch'>,
): WebSearch | undefined {
  return asked && when !== 'off' ? search : undefined;
}

/**
 * Whether the model of a call may search the web. Once it could in a thread, it can in the thread's later turns too: vendors
 * key their caches on the tools of a request, and one that comes and goes would cost the whole thread each time. Only the
 * caller's own no, or the operator's, takes it away.
 */
export function searchFor(
  { when, ...search }: SearchSettings,
  { webSearch: asked }: Pick<CommonArguments, 'webSearch'>,
  thread: Thread,
  { plan, candidates, searches }: Resolution,
): WebSearch | undefined {
  if (when === 'off' || asked === false) return undefined;
  if (asked) return search;
  if (!searches) return undefined;
  const [first] = candidates;
  const before = thread.turns.findLast(
    ({ status, modelProvider, modelName }) =>
      status === 'done' && modelProvider === first?.model.provider && modelName === first?.model.id,
  );
  return plan?.tools.webSearch || before?.modelMetadata?.webSearch ? search : undefined;
}
