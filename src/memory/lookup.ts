import { AppError, inputError } from '../core/errors.ts';
import { isThreadId, type ThreadId } from '../core/ids.ts';
import { safeCut } from '../core/text.ts';
import type { Compaction, StoredTurn, Thread, ThreadHead } from '../core/thread.ts';
import type { Lookup, Store } from '../storage/store.ts';

/** Whose thread, and where it lives. */
export interface Place {
  owner: string;
  workspace: string;
}

const longestId = 36;

/** Forks of forks are followed this far back. */
const mostAncestors = 20;

/** The id that a caller means: a UUID, or `last` for the newest thread of the workspace. */
export async function idFor(store: Store, reference: string, place: Place, now: number): Promise<ThreadId> {
  if (isThreadId(reference)) return reference;
  if (reference === 'last') return newest(store, place, now);
  // Half of a secret is not known as one any more: of what is too long for an id, only the beginning is shown.
  const shown = reference.length > longestId ? `${safeCut(reference, 12)}…` : reference;
  throw inputError(
    `"${shown}" is not a continuation_id: it is a UUID, as a reply's continuation_offer gives it, or "last".`,
    {
      next: 'Send the id exactly as it was given, or "last" for the newest thread of this project; a question without one begins a new thread.',
      validationErrors: [{ field: 'continuation_id', error: 'not a UUID', allowed: ['a UUID', 'last'] }],
    },
  );
}

async function newest(store: Store, place: Place, now: number): Promise<ThreadId> {
  const [head] = await store.list({ ...place, limit: 1, now });
  if (head) return head.id;
  throw new AppError('input', 'There is no thread in this project yet, so "last" names nothing.', {
    code: 'THREAD_NOT_FOUND',
    class: 'validation',
    next: 'Ask something first: a question without continuation_id begins one.',
  });
}

/** A thread's head, refused like the thread itself: the same work whatever its length. */
export async function loadHead(store: Store, id: ThreadId, owner: string, now: number): Promise<ThreadHead> {
  return ownedBy(owner, orRefuse(await store.head(id, now), id));
}

/** A thread with what it shares with those it was forked off: turns, and summaries. Another owner's thread is not found. */
export async function loadThread(store: Store, id: ThreadId, owner: string, now: number): Promise<Thread> {
  const thread = ownedBy(owner, orRefuse(await store.read(id, now), id));
  if (!thread.parent) return thread;
  const shared = await ancestry(store, thread);
  const turns = [...shared.flatMap(part => part.turns), ...thread.turns];
  const compactions = [...shared.flatMap(part => part.compactions), ...thread.compactions];
  return { ...thread, turns, compactions };
}

/** The ids that texts of a thread may have been masked under: its own, and those of the threads that it begins with. */
export async function scopesOf(store: Store, thread: Pick<ThreadHead, 'id' | 'owner' | 'parent'>): Promise<ThreadId[]> {
  const ids: ThreadId[] = [thread.id];
  for (let next = thread.parent?.thread; next && !ids.includes(next) && ids.length <= mostAncestors; ) {
    const found: Lookup<ThreadHead> = await store.head(next, 0);
    if (found.state !== 'live' || found.value.owner !== thread.owner) break;
    ids.push(next);
    next = found.value.parent?.thread;
  }
  return ids;
}

/** What stood before the fork point, oldest first. An original that is gone leaves the fork with its own turns. */
async function ancestry(store: Store, thread: Thread): Promise<Pick<Thread, 'turns' | 'compactions'>[]> {
  const chain: Pick<Thread, 'turns' | 'compactions'>[] = [];
  const seen = new Set<ThreadId>([thread.id]);
  let next = thread.parent;
  let upTo = Number.POSITIVE_INFINITY;
  while (next && !seen.has(next.thread) && chain.length < mostAncestors) {
    const { thread: parentId, seq } = next;
    seen.add(parentId);
    // A fork may begin before the point where its own original was forked off.
    upTo = Math.min(upTo, seq);
    // An expired original is still there until it is pruned.
    const parent: Lookup<Thread> = await store.read(parentId, 0);
    if (parent.state !== 'live' || parent.value.owner !== thread.owner) break;
    const { turns, compactions } = parent.value;
    const shared = turns.filter(turn => turn.seq <= upTo);
    chain.unshift({ turns: shared, compactions: compactions.filter(madeBy(shared)) });
    next = parent.value.parent;
  }
  return chain;
}

/** A fork's prompts begin as those did that led to the fork point: with the summary that stood in them, not with a later one. */
function madeBy(turns: readonly StoredTurn[]): (compaction: Compaction) => boolean {
  const last = turns.at(-1);
  return ({ upToSeq, createdAt }) => last !== undefined && upToSeq < last.seq && createdAt <= last.timestamp;
}

function ownedBy<Head extends ThreadHead>(owner: string, head: Head): Head {
  if (head.owner !== owner) throw notFound(head.id);
  return head;
}

function orRefuse<Found>(found: Lookup<Found>, id: ThreadId): Found {
  switch (found.state) {
    case 'live':
      return found.value;
    case 'expired':
      throw new AppError('input', `Thread ${id} expired at ${new Date(found.expiredAt).toISOString()}.`, {
        code: 'THREAD_EXPIRED',
        class: 'validation',
        next: 'Begin a new thread by leaving continuation_id out. CONVERSATION_TIMEOUT_HOURS sets how long threads live.',
      });
    case 'deleted':
      throw notFound(id, ` It was deleted at ${new Date(found.deletedAt).toISOString()}.`);
    case 'unknown':
      throw notFound(id);
  }
}

function notFound(id: ThreadId, why = ''): AppError {
  return new AppError('input', `There is no thread ${id}.${why}`, {
    code: 'THREAD_NOT_FOUND',
    class: 'validation',
    next: 'List the threads of this project with "threads", or use "last"; a question without continuation_id begins a new thread.',
  });
}
