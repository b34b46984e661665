import { inParallel } from '../../../core/concurrency.ts';
import { askingFor, askSlot } from '../../fanout/ask-slot.ts';
import type { Fan, Outcome, Response, Slot } from '../../fanout/fan.ts';
import { atOnce } from '../../panel/revise.ts';
import { modelName } from './seats.ts';

/** Puts the text to every model, a few at a time; responses come in the order of the slots. */
export async function askAll(fan: Fan, slots: readonly Slot[]): Promise<Response[]> {
  const { call, text } = fan;
  // Only one answer can be shown while it comes.
  const onText = slots.length === 1 ? call.request.onText : undefined;
  const asking = { ...askingFor(fan, text), onText };
  const [only] = slots;
  call.progress.stage(slots.length === 1 && only ? `asking ${nameOf(only)}` : `asking ${slots.length} models`);
  let ready = 0;
  let sharers = slots.length;
  return inParallel(slots, atOnce, async slot => {
    const outcome = await askSlot(fan, slot, { ...asking, sharers: sharers-- });
    call.progress.stage(`${told(slot, outcome)} (${++ready} of ${slots.length})`);
    return { slot, outcome };
  });
}

function told(slot: Slot, outcome: Outcome): string {
  if ('error' in outcome) return `${nameOf(slot, outcome)} failed`;
  return `${nameOf(slot, outcome)} answered in ${(outcome.answer.latencyMs / 1_000).toFixed(1)} s`;
}

/** The model that answered, or that would have: as it is served, else as it was named. */
export function nameOf({ who, requested }: Slot, outcome?: Outcome): string {
  if (outcome && 'answer' in outcome) return modelName(outcome.answer.candidate);
  return 'candidates' in who ? modelName(who.candidates[0]) : requested;
}
