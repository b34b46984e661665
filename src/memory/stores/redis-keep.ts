import type { ThreadId } from '../../core/ids.ts';
import type { ThreadHead } from '../../core/thread.ts';
import type { RedisWire } from '../../storage/redis/cluster-client.ts';
import type { RedisKeys } from '../../storage/redis/keys.ts';
import { unpackRecord } from '../../storage/redis/records.ts';
import { allTextsOf, textsOf } from '../../storage/redis/script.ts';
import { keepThread, setTexts } from '../../storage/redis/thread-scripts.ts';
import type { RedisBlobs } from './redis-blobs.ts';
import { tombstoneLifeMs } from './thread-change.ts';

/** Sees to it that the server forgets nothing that somebody still needs. */
export interface RedisKeeping {
  /**
   * Keeps the texts of a thread that is to live `lifeMs` from now. They are kept for twice as long, so that it is seldom that
   * all of them have to be touched. Answers until when they are kept.
   */
  texts(id: ThreadId, until: number, lifeMs: number, now: number): Promise<number>;
  /** What a fork begins with lives as long as the fork. */
  ancestors(child: Pick<ThreadHead, 'parent'>, lifeMs: number, now: number): Promise<void>;
}

/** What belongs to a thread stays this long after its end: whoever reads it just then, or forked it, still finds it. */
const graceMs = 7 * 86_400_000;
/** Forks of forks are kept together this far back. */
const mostAncestors = 20;

/** How long the server keeps the head, and the rest, if nobody tidies up earlier: milliseconds. */
export function lives(lifeMs: number): [head: string, rest: string] {
  return [String(Math.ceil(lifeMs + tombstoneLifeMs)), String(Math.ceil(lifeMs + graceMs))];
}

export function textLife(lifeMs: number): number {
  return Math.ceil(2 * lifeMs + graceMs);
}

export function redisKeeping(wire: RedisWire, keys: RedisKeys, blobs: RedisBlobs): RedisKeeping {
  async function texts(id: ThreadId, until: number, lifeMs: number, now: number): Promise<number> {
    if (now + lifeMs + graceMs <= until) return until;
    const name = `${keys.thread(id).head}:blobs`;
    await blobs.keep(allTextsOf(await wire.send(name, ['HKEYS', name])), textLife(lifeMs));
    return now + textLife(lifeMs);
  }

  return {
    texts,
    async ancestors(child, lifeMs, now) {
      let next = child.parent;
      for (let depth = 0; next && depth < mostAncestors; depth++) {
        const { all, head } = keys.thread(next.thread);
        const [body, kept] = textsOf(await wire.run(keepThread, all, lives(lifeMs)));
        if (body === undefined) return;
        const until = await texts(next.thread, Number(kept ?? 0), lifeMs, now);
        if (until !== Number(kept ?? 0)) await wire.run(setTexts, [head], [String(until)]);
        next = unpackRecord(body, 'origin')?.origin.parent;
      }
    },
  };
}
