import type { JSONObject } from '@ai-sdk/provider';
import type { Effort } from '../../core/model.ts';
import { type CallParams, closestEffort } from '../../models/provider.ts';

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
