import { sleepUntil } from '../../core/concurrency.ts';
import { cancelledError, inputError, throwIfAborted, warnFrom } from '../../core/errors.ts';
import { isJobId, isThreadId, type JobId, jobId, normalizeId } from '../../core/ids.ts';
import type { Job, JobReply } from '../../core/job.ts';
import { isRecord, textIn } from '../../core/json.ts';
import type { Random } from '../../core/ports.ts';
import type { ToolRequest, UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import type { JobEnd } from '../../storage/store.ts';
import type { LeaseOptions } from '../../threads/locks.ts';
import type { ProcessLease } from './process-lease.ts';

export interface JobsOptions extends Omit<LeaseOptions, 'holder'> {
  lease: ProcessLease;
  random: Random;
}

export interface DetachedCall {
  request: ToolRequest;
  /** Resolves with the reply; never rejects. */
  reply: Promise<JobReply>;
  /** Ends the work, down to the vendor's socket. */
  abort(reason: Error): void;
  stage(): string | undefined;
  /** That it works on, where its arguments may not name it. */
  thread?: Job['thread'];
  /** What it has to ask its caller; an answer to what was not asked, or was answered before, changes nothing. */
  questions: { pending(): readonly UserQuestion[]; answer(key: string, answer: UserAnswer): void };
}

interface RunningJob {
  job: Job;
  work: DetachedCall;
  /** Resolves once it ended. */
  ended: Promise<void>;
  /** What it came to, until the store has that. */
  end?: JobEnd;
}

/** A job and its reply are kept for this long after its last change. */
const lifeMs = 24 * 3_600_000;

/** How often a job of another process is looked at. */
const pollMs = 500;

/** Calls that go on without their callers. Every one of them belongs to the owner that started it. */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #warn: (error: unknown) => void;
  readonly #running = new Map<JobId, RunningJob>();
  readonly #listeners = new Set<(job: Job) => void>();

  constructor(options: JobsOptions) {
    this.#options = options;
    this.#warn = warnFrom(options.emit, 'jobs');
  }

  /** Throws when there is no such job of this owner. One whose process died reads as `interrupted`. */
  async find(id: string, owner: string): Promise<Job> {
    const job = this.#asEnded(await this.#owned(id, owner));
    if (job.status !== 'running' || this.#running.has(job.id)) return job;
    const { lease } = this.#options;
    if (job.holder !== lease.holder && !(await lease.isDead(job.holder))) return job;
    // Where it ended since it was read, and its process with it, this changes nothing.
    await this.#end(job, this.#endAs('interrupted'));
    return this.#owned(id, owner);
  }

  /** Makes a job of work; resolves once the job is durable, so that whoever is told of it finds it. */
  async adopt(work: DetachedCall): Promise<Job> {
    const { store, lease } = this.#options;
    const { name, principal, arguments: args } = work.request;
    const job = this.#new(name, principal.owner, work.thread ?? threadNamed(args.continuation_id));
    const { id } = job;
    try {
      await lease.begin();
      await store.createJob(job);
    } catch (error) {
      lease.end();
      throw error;
    }
    this.#running.set(id, { job, work, ended: work.reply.then(reply => this.#finish(id, reply)) });
    lease.atBeat(this.#heedOthers);
    for (const listener of this.#listeners) listener(job);
    return job;
  }

  /** Makes a job of a reply that is there; resolves with its id, or undefined where the store failed. */
  async keep(tool: string, { isError, document }: JobReply, owner: string): Promise<JobId | undefined> {
    const reply = { isError, document };
    const job = this.#new(tool, owner, threadIn(reply));
    try {
      await this.#options.store.createJob({ ...job, status: isError ? 'failed' : 'done', reply });
      return job.id;
    } catch (error) {
      this.#warn(error);
      return undefined;
    }
  }

  #new(tool: string, owner: string, thread: Job['thread']): Job {
    const { clock, random, lease } = this.#options;
    const now = clock.now();
    const times = { createdAt: now, updatedAt: now, expiresAt: now + lifeMs };
    return { id: jobId(random.uuid()), owner, tool, thread, status: 'running', ...times, holder: lease.holder };
  }

  /** As `find`, once it ended or after `ms`. */
  async wait(id: string, owner: string, ms: number, signal: AbortSignal): Promise<Job> {
    const { clock } = this.#options;
    const until = clock.monotonic() + ms;
    for (;;) {
      const job = await this.find(id, owner);
      const left = until - clock.monotonic();
      if (job.status !== 'running' || left <= 0) return job;
      throwIfAborted(signal);
      const mine = this.#running.get(job.id);
      await sleepUntil(clock, mine ? left : Math.min(left, pollMs), mine?.ended, signal);
    }
  }

  /** Ends a job that runs; one that ended stays as it is. Answers how it stands then. */
  async cancel(id: string, owner: string): Promise<Job> {
    const job = await this.find(id, owner);
    if (job.status === 'running') {
      await this.#end(job, this.#endAs('cancelled'));
      const mine = this.#running.get(job.id);
      mine?.work.abort(cancelledError('The job was cancelled.'));
      await mine?.ended;
    }
    return this.find(id, owner);
  }

  /** The owner's jobs, the newest first. */
  async list(owner: string, limit: number): Promise<Job[]> {
    const jobs = await this.#options.store.jobs({ owner, limit, now: this.#options.clock.now() });
    return jobs.map(job => this.#asEnded(job));
  }

  /** How many run in this process. */
  count(): number {
    return this.#running.size;
  }

  /** The work of a job that runs in this process. */
  workOf(id: JobId): DetachedCall | undefined {
    return this.#running.get(id)?.work;
  }

  /** Calls `listener` with each job of this process that begins or ends; the result ends that. */
  watch(listener: (job: Job) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Gives the jobs that run `graceMs` to end, or until `hurry` is aborted; then they are interrupted. */
  async close(graceMs: number, hurry?: AbortSignal): Promise<void> {
    const all = () => Promise.all([...this.#running.values()].map(({ ended }) => ended));
    await sleepUntil(this.#options.clock, graceMs, all(), hurry);
    for (const { job, work, end = this.#endAs('interrupted') } of this.#running.values()) {
      await this.#end(job, end).catch(this.#warn);
      work.abort(cancelledError('The server ended.'));
    }
    await all();
    for (const id of this.#running.keys()) this.#forget(id);
  }

  async #owned(id: string, owner: string): Promise<Job> {
    const { store, clock } = this.#options;
    const job = isJobId(id) ? await store.job(id, clock.now()) : undefined;
    if (!job || job.owner !== owner)
      throw inputError(`Unknown job ${JSON.stringify(id.slice(0, 60))}.`, {
        class: 'job_not_found',
        next: 'Use the job_id exactly as returned. Jobs are kept for a day after they end; the thread keeps the answer longer.',
        validationErrors: [{ field: 'job_id', error: 'unknown' }],
      });
    return job;
  }

  /** A job as the store has it, with its end where the store does not have that yet. */
  #asEnded(job: Job): Job {
    const { thread = job.thread, ...end } = this.#running.get(job.id)?.end ?? {};
    return job.status === 'cancelled' ? job : { ...job, ...end, thread };
  }

  async #heed(id: JobId, work: DetachedCall): Promise<void> {
    const job = await this.#options.store.job(id, this.#options.clock.now());
    if (job?.status === 'cancelled') work.abort(cancelledError('The job was ended.'));
  }

  async #finish(id: JobId, { isError, document }: JobReply): Promise<void> {
    // Its rendered text and its cause are for the caller alone.
    const reply = { isError, document };
    const end = { ...this.#endAs(isError ? 'failed' : 'done'), reply, thread: threadIn(reply) };
    const mine = this.#running.get(id);
    if (!mine) return;
    mine.end = end;
    // Where the store fails, the next beat tries again.
    await this.#settle(mine.job, end).catch(this.#warn);
  }

  async #settle(job: Job, end: JobEnd): Promise<void> {
    await this.#end(job, end);
    this.#forget(job.id);
  }

  #forget(id: JobId): void {
    if (this.#running.delete(id)) this.#options.lease.end();
  }

  #endAs(status: JobEnd['status']): JobEnd {
    const now = this.#options.clock.now();
    return { status, updatedAt: now, expiresAt: now + lifeMs };
  }

  async #end(job: Job, { thread = job.thread, ...end }: JobEnd): Promise<void> {
    if (!(await this.#options.store.endJob(job.id, { ...end, thread }))) return;
    for (const listener of this.#listeners) listener({ ...job, ...end, thread });
  }

  /** Stores ends that are not stored yet, and ends the work of jobs that were cancelled by way of another process. What others merely gave up, as this one was stopped for long, goes on. */
  readonly #heedOthers = () => {
    if (this.#running.size > 0) this.#options.lease.atBeat(this.#heedOthers);
    for (const [id, { job, work, end }] of this.#running) {
      // Why not is told once.
      if (end) void this.#settle(job, end).catch(() => undefined);
      else void this.#heed(id, work).catch(this.#warn);
    }
  };
}

/** The thread that a reply offers to go on with. */
function threadIn({ document }: JobReply): Job['thread'] {
  const offer = document.continuation_offer;
  return threadNamed(document.continuation_id ?? (isRecord(offer) ? offer.continuation_id : undefined));
}

const threadNamed = (id: unknown): Job['thread'] => [normalizeId(textIn(id))].find(isThreadId);
