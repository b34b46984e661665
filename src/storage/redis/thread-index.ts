import { isThreadId } from '../../core/ids.ts';
import type { ThreadHead } from '../../core/thread.ts';
import { type HeadState, isListed, tombstoneLifeMs } from '../records.ts';
import { bestMatch, queryWords } from '../search-words.ts';
import type { ListQuery, SearchHit, SearchQuery } from '../store.ts';
import type { RedisClient } from './cluster-client.ts';
import { ownerHash, type RedisKeys } from './keys.ts';
import type { FoundHead, StoredHead } from './records.ts';
import { findHead, inBatches, publicHead, unlessDamaged, unpackRecord } from './records.ts';
import { allTextsOf, frees, raiseLife, writes } from './script.ts';
import { searchThread } from './thread-scripts.ts';

export type RedisIndex = ReturnType<typeof redisIndex>;

/** The newest threads that a search looks into, and how many turns of each it weighs against each other. */
const searchedThreads = 1_000;
const weighedTurns = 8;
const page = 50;

/** KEYS: by last use, by end, of the workspace. ARGV: id, last use, end, life. */
const putScript = writes(`${raiseLife}
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
for index = 1, 3 do raise(KEYS[index], ARGV[4]) end
return 1
`);

/** KEYS: by last use, by end, of the workspace, gone. ARGV: id, time, life. */
const buryScript = frees(`${raiseLife}
for index = 1, 3 do redis.call('ZREM', KEYS[index], ARGV[1]) end
redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])
raise(KEYS[4], ARGV[3])
return 1
`);

/** Where to look for an owner's threads; their heads alone count. `onSkip` is told of damaged ones, which lists and searches leave out. */
export function redisIndex(client: RedisClient, keys: RedisKeys, onSkip: (thread: string) => void) {
  const namesOf = ({ owner, workspace }: Pick<ThreadHead, 'owner' | 'workspace'>) => {
    const names = keys.owner(ownerHash(owner));
    return [names.threads, names.ends, names.workspace(workspace)];
  };

  async function headOf(id: string): Promise<FoundHead | undefined> {
    if (!isThreadId(id)) return undefined;
    const found = await unlessDamaged(findHead(client, keys, id));
    if (!found) onSkip(id);
    return found;
  }

  /** Live threads of a list, page by page, the newest first. */
  async function* walk(query: Omit<ListQuery, 'limit'>, size: number) {
    const { owner, workspace, before = '+inf' } = query;
    const names = keys.owner(ownerHash(owner));
    const name = workspace === undefined ? names.threads : names.workspace(workspace);
    for (let at = 0; ; at += size) {
      const range = [before, '-inf', 'BYSCORE', 'REV', 'LIMIT', at, size];
      const ids = allTextsOf(await client.send('ZRANGE', name, ...range));
      const found = await inBatches(ids, headOf);
      yield found.flatMap(each => (each?.state === 'stored' && isListed(query, each.value.head) ? [each.value] : []));
      if (ids.length < size) return;
    }
  }

  return {
    /** Never rejects: the change it follows is made, and the next one puts the index right. */
    async put(head: HeadState): Promise<void> {
      const life = Math.ceil(Math.max(0, head.expiresAt - head.updatedAt) + tombstoneLifeMs);
      const args = [head.id, head.updatedAt, head.expiresAt, life];
      try {
        await Promise.all([
          client.run(putScript, namesOf(head), args),
          client.send('SADD', keys.owners, ownerHash(head.owner)),
          client.send('INCR', keys.mark),
        ]);
      } catch {
        // The connection's own log has the reason.
      }
    },
    async end(head: HeadState, at: number): Promise<void> {
      const { gone } = keys.owner(ownerHash(head.owner));
      await Promise.all([
        client.run(buryScript, [...namesOf(head), gone], [head.id, at, tombstoneLifeMs]),
        client.send('INCR', keys.mark),
      ]);
    },
    /** Takes a thread out of those that are gone. */
    async revive({ id, owner }: HeadState): Promise<void> {
      await client.send('ZREM', keys.owner(ownerHash(owner)).gone, id);
    },
    async list({ limit, ...query }: ListQuery): Promise<ThreadHead[]> {
      const heads: ThreadHead[] = [];
      if (limit < 1) return heads;
      for await (const live of walk(query, Math.min(page, limit))) {
        heads.push(...live.map(publicHead));
        if (heads.length >= limit) break;
      }
      return heads.sort((a, b) => b.updatedAt - a.updatedAt).slice(0, limit);
    },
    async search({ text, limit, ...query }: SearchQuery): Promise<SearchHit[]> {
      const words = queryWords(text);
      const hits: SearchHit[] = [];
      if (words.length === 0 || limit < 1) return hits;
      let searched = 0;
      for await (const live of walk(query, page)) {
        const found = await inBatches(live, stored => bestTurn(client, keys, stored, words));
        hits.push(...found.filter(hit => hit !== undefined));
        searched += page;
        if (hits.length >= limit || searched >= searchedThreads) break;
      }
      return hits.sort((a, b) => b.thread.updatedAt - a.thread.updatedAt).slice(0, limit);
    },
  };
}

/** The turn that holds the words most often. */
async function bestTurn(client: RedisClient, keys: RedisKeys, stored: StoredHead, words: readonly string[]) {
  const { head } = stored;
  const { all } = keys.thread(head.id);
  const [, turns = '', exchanges = '', , , , indexed = ''] = all;
  const wanted = words.map(word => ` ${word}`);
  const seqs = allTextsOf(await client.run(searchThread, [indexed, exchanges], [weighedTurns, ...wanted]));
  const texts = await inBatches(seqs, seq => client.fetch('LINDEX', turns, Number(seq) - head.startSeq - 1));
  const found = bestMatch(
    allTextsOf(texts).map(text => unpackRecord(text, 'turn')?.turn),
    words,
  );
  return found && { thread: publicHead(stored), ...found };
}
