import type { Compaction, Thread } from '../../core/thread.ts';
import { windowClass } from '../../memory/budget.ts';
import { compact, outgrown, selectionTokens } from '../../threads/compaction.ts';
import { type Selection, selectTurns } from '../../threads/transcript.ts';

export interface HistoryRequest {
  thread: Thread;
  /** The model's window in tokens. */
  window: number;
  /** Tokens (o200k) that history may take. */
  budget: number;
  /** Turns that may stand in a prompt. */
  maxTurns: number;
  now: number;
}

export interface History {
  selection: Selection;
  /** Made just now; to be stored with the new turn. */
  compaction?: Compaction;
}

/** The turns that go into a prompt. A thread that outgrew its share is compacted, to less and less until it fits. */
export function selectHistory({ thread, window, budget, maxTurns, now }: HistoryRequest): History {
  const forModel = windowClass(window);
  const selection = selectTurns(thread, forModel);
  if (!outgrown(selection, budget, maxTurns)) return { selection };
  // Too many turns are too many for every window; too many tokens are so for this class and smaller ones.
  const forClass = selectionTokens(selection) > budget ? forModel : Number.MAX_SAFE_INTEGER;
  for (let target = budget; ; target /= 2) {
    const compaction = compact({ thread, selection, windowClass: forClass, historyBudget: target, maxTurns, now });
    const after = selectTurns({ ...thread, compactions: [...thread.compactions, compaction] }, forModel);
    if (selectionTokens(after) <= budget || target < 50) return { selection: after, compaction };
  }
}
