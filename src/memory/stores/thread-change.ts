import { bugError, storageError } from '../../core/errors.ts';
import type { Sha256, ThreadId } from '../../core/ids.ts';
import type { ThreadHead, Turn } from '../../core/thread.ts';
import type { ThreadChange } from '../../storage/store.ts';

/** How long an id is remembered after its thread went. */
export const tombstoneLifeMs = 90 * 86_400_000;

const notLiveNext = 'Begin a new thread: this one takes no more turns.';

export function refuseExisting(id: ThreadId): never {
  throw storageError('conflict', `Thread ${id} exists already, or did and was removed.`, {
    next: 'Give the new thread an id of its own.',
  });
}

export function refuseNotLive(id: ThreadId): never {
  throw storageError('conflict', `Thread ${id} is not there any more, or never was.`, { next: notLiveNext });
}

/** Answers what the head becomes; throws when the change does not fit the thread as it is. */
export function changedHead<Head extends Omit<ThreadHead, 'initialContext'>>(head: Head, change: ThreadChange): Head {
  const { id, seq, expiresAt, totals } = head;
  if (expiresAt <= change.updatedAt) {
    throw storageError('conflict', `Thread ${id} expired at ${new Date(expiresAt).toISOString()}.`, {
      next: notLiveNext,
    });
  }
  if (change.baseSeq !== seq) {
    throw storageError(
      'conflict',
      `Thread ${id} stands at turn ${seq}, not ${change.baseSeq}: another call changed it.`,
      {
        next: 'Read the thread again and repeat the call.',
        data: { seq },
      },
    );
  }
  const turns = change.turns ?? [];
  const misplaced = turns.find((turn, index) => turn.seq !== seq + 1 + index);
  if (misplaced) throw bugError(`Turn ${misplaced.seq} does not follow turn ${seq} of thread ${id} without a gap.`);
  return {
    ...head,
    title: change.title ?? head.title,
    updatedAt: change.updatedAt,
    expiresAt: change.expiresAt,
    totals: { tokens: totals.tokens + (change.tokens ?? 0), costUsd: totals.costUsd + (change.costUsd ?? 0) },
    seq: seq + turns.length,
  };
}

/** The blobs without which the turns cannot be shown again. */
export function blobsOfTurns(turns: readonly Turn[]): Set<Sha256> {
  const found = new Set<Sha256>();
  for (const { files, images } of turns) {
    for (const { base, shown } of files) {
      if (base) found.add(base);
      if (shown) found.add(shown);
    }
    for (const { blob } of images) found.add(blob);
  }
  return found;
}
