import type { JSONObject, LanguageModelV4 } from '@ai-sdk/provider';
import type { Effort } from '../../core/model.ts';
import { type CallParams, closestEffort, forcedChoice } from '../../models/provider.ts';
import { adjustedModel, type CallOptions, mappedParts, streamingModel } from './stream-transforms.ts';

/** What must be left for the answer beside the thinking, in tokens. */
export const smallestAnswer = 1_000;

/** For vendors that switch thinking off by `thinking`: `on` tells what is sent for an effort; nothing where none is wanted or known. */
export function switchedThinking({ model, effort }: CallParams, on: (sent: Effort) => JSONObject): JSONObject {
  const sent = closestEffort(effort, model.efforts);
  if (sent === undefined) return {};
  return sent === 'none' ? { thinking: { type: 'disabled' } } : on(sent);
}

/** The budget nearest to `wanted` that leaves an answer its part of `room`; undefined where no budget does. In tokens. */
export function fittedBudget(wanted: number, range: { min: number; max: number }, room: number): number | undefined {
  const max = Math.min(range.max, room - smallestAnswer);
  return max < range.min ? undefined : Math.floor(Math.min(max, Math.max(range.min, wanted)));
}

/** The same model, free to call no tool, with a warning, where its vendor refuses to force it: most do while a model thinks. */
export function withoutForcedChoice(model: LanguageModelV4, isRefused: (call: CallOptions) => boolean) {
  const details = 'The forced tool choice was left out: the vendor takes none here.';
  const warning = { type: 'unsupported', feature: 'toolChoice', details } as const;
  const unforced = adjustedModel(model, call => ({ ...call, toolChoice: undefined }));
  const free = mappedParts(unforced, () => part => [
    part.type === 'stream-start' ? { ...part, warnings: [...part.warnings, warning] } : part,
  ]);
  const isForced = (call: CallOptions) => forcedChoice(call.toolChoice) !== undefined && isRefused(call);
  return streamingModel(model, call => (isForced(call) ? free : model).doStream(call));
}
