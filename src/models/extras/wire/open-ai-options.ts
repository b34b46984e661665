import type { JSONObject } from '@ai-sdk/provider';
import { closestEffort } from '../../effort.ts';
import type { CallParams } from '../../provider.ts';

/** What OpenAI's Responses interface is told for these parameters, in the words of the AI SDK's package. */
export function responsesOptions(params: CallParams): JSONObject {
  return {
    ...sharedOptions(params, params.model.efforts),
    systemMessageMode: 'developer',
    // Summaries of reasoning are refused to organisations that did not verify themselves, and nobody reads them here.
    reasoningSummary: null,
  };
}

/** The same for Chat Completions. */
export function chatOptions(params: CallParams): JSONObject {
  const known = params.model.efforts.filter(effort => effort !== 'max');
  // `system` is what every server knows; OpenAI reads it as its developer role.
  return { ...sharedOptions(params, known), systemMessageMode: 'system' };
}

function sharedOptions({ model, effort, cacheKey }: CallParams, known: CallParams['model']['efforts']): JSONObject {
  const sent = effort === undefined ? undefined : closestEffort(effort, known);
  return {
    store: false,
    ...(cacheKey === undefined ? {} : { promptCacheKey: cacheKey }),
    ...(sent === undefined ? {} : { reasoningEffort: sent }),
    // The package guesses from the id; the catalogue knows.
    ...(model.reasoning ? { forceReasoning: true } : {}),
  };
}
