import type { ThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import { markedHolder, stateOfHolder } from '../process-mark.ts';
import { damagedJob, endedJob, refuseExistingJob } from '../records.ts';
import type { Store } from '../store.ts';
import { ownerHash } from './keys.ts';
import { inBatches, packRecord, unlessDamaged, unpackRecord } from './records.ts';
import { allTextsOf, frees, raiseLife, writes } from './script.ts';
import type { RedisParts } from './threads.ts';

/** The server forgets a lease this much later than its holder: their clocks need not agree. */
const marginMs = 2_000;

/** KEYS: lease. ARGV: holder, end, now, life, whom it may be taken from. Answers whose it is. */
const takeScript = writes(`
local seen = redis.call('HMGET', KEYS[1], 'holder', 'end')
if seen[1] and seen[1] ~= ARGV[1] and seen[1] ~= ARGV[5] and tonumber(seen[2]) > tonumber(ARGV[3]) then return seen[1] end
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'end', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return ARGV[1]
`);

/** KEYS: lease. ARGV: holder. */
const giveScript = frees(`
if redis.call('HGET', KEYS[1], 'holder') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`);

/** A lease falls with its time, by the asker's clock or the server's, and at once where its process is known to be killed. */
export const redisLeases = ({ client, keys, marks }: RedisParts): Pick<Store, 'lease' | 'release'> => ({
  async lease(id, holder, ttlMs, now) {
    const name = keys.lease(id);
    const mine = markedHolder(marks, holder);
    const facts = [mine, now + ttlMs, now, Math.ceil(ttlMs + marginMs)];
    const current = String(await client.run(takeScript, [name], [...facts, '']));
    if (current === mine) return true;
    if (stateOfHolder(marks, current) !== 'gone') return false;
    return String(await client.run(takeScript, [name], [...facts, current])) === mine;
  },
  async release(id, holder) {
    await client.run(giveScript, [keys.lease(id)], [markedHolder(marks, holder)]);
  },
});

export interface RedisJobs extends Pick<Store, 'createJob' | 'job' | 'jobs' | 'endJob'> {
  dropOfThread(owner: string, thread: ThreadId): Promise<void>;
  dropExpired(ownerHash: string, now: number): Promise<void>;
}

/** A job that expired is forgotten by the server this much later, if nobody tidies up earlier. */
const graceMs = 86_400_000;

const page = 50;

/** KEYS: job. ARGV: nonce, body, life, state, the state before or '' where there is none. Answers 1 where it took effect. */
const writeScript = writes(`
local seen = redis.call('HMGET', KEYS[1], 's', 'n')
if seen[1] == ARGV[4] and seen[2] == ARGV[1] then return 1 end
if (seen[1] or '') ~= ARGV[5] then return 0 end
redis.call('HSET', KEYS[1], 'n', ARGV[1], 's', ARGV[4], 'body', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`);

/** KEYS: index. ARGV: id, time, life. */
const indexScript = writes(`${raiseLife}
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
raise(KEYS[1], ARGV[3])
return 1
`);

export function redisJobs({ client, keys, random }: RedisParts): RedisJobs {
  const indexOf = (owner: string) => keys.owner(owner).jobs;
  const life = ({ expiresAt, updatedAt }: Job) => Math.ceil(Math.max(0, expiresAt - updatedAt) + graceMs);

  /** Undefined when the server has none, or none any more. */
  async function read(id: string): Promise<Job | undefined> {
    const body = await client.fetch('HGET', keys.job(id), 'body');
    if (typeof body !== 'string') return undefined;
    const job = unpackRecord(body, 'job')?.job;
    if (job?.id === id) return job;
    throw damagedJob(id, 'in Redis');
  }

  /** True where it took effect. */
  async function write(job: Job, before: string): Promise<boolean> {
    const args = [random.uuid(), packRecord({ kind: 'job', job }), life(job), job.status, before];
    return Number(await client.run(writeScript, [keys.job(job.id)], args)) === 1;
  }

  async function indexed(job: Job): Promise<void> {
    const index = indexOf(ownerHash(job.owner));
    await Promise.all([
      client.run(indexScript, [index], [job.id, job.createdAt, life(job)]),
      client.send('INCR', keys.mark),
    ]);
  }

  async function* walk(owner: string) {
    const name = indexOf(owner);
    for (let at = 0; ; at += page) {
      const ids = allTextsOf(await client.send('ZRANGE', name, at, at + page - 1, 'REV'));
      // One that is damaged is refused to whoever asks for it; it does not hide the others.
      const found = await inBatches(ids, id => unlessDamaged(read(id).then(job => ({ id, job }))));
      yield* found.filter(each => each !== undefined);
      if (ids.length < page) return;
    }
  }

  async function dropWhere(owner: string, goes: (job: Job | undefined) => boolean): Promise<void> {
    const ids: string[] = [];
    for await (const { id, job } of walk(owner)) if (goes(job)) ids.push(id);
    if (ids.length === 0) return;
    await inBatches(ids, id => client.send('UNLINK', keys.job(id)));
    await client.send('ZREM', indexOf(owner), ...ids);
  }

  return {
    async createJob(job) {
      if (!(await write(job, ''))) refuseExistingJob(job.id);
      await Promise.all([indexed(job), client.send('SADD', keys.owners, ownerHash(job.owner))]);
    },
    async job(id, now) {
      const job = await read(id);
      return job && job.expiresAt > now ? job : undefined;
    },
    async jobs({ owner, limit, now }) {
      const jobs: Job[] = [];
      if (limit < 1) return jobs;
      for await (const { job } of walk(ownerHash(owner))) {
        if (job?.owner === owner && job.expiresAt > now) jobs.push(job);
        if (jobs.length >= limit) break;
      }
      return jobs;
    },
    async endJob(id, end) {
      const before = await read(id);
      const job = before && endedJob(before, end);
      if (!before || !job || !(await write(job, before.status))) return false;
      await indexed(job);
      return true;
    },
    dropOfThread: (owner, thread) => dropWhere(ownerHash(owner), job => job?.thread === thread),
    dropExpired: (owner, now) => dropWhere(owner, job => !job || job.expiresAt <= now),
  };
}
