import { cancelledError, inputError, isAppError, throwIfAborted } from '../../core/errors.ts';
import { isJobId, isThreadId, type JobId, jobId } from '../../core/ids.ts';
import type { Job, JobReply } from '../../core/job.ts';
import { isRecord } from '../../core/json.ts';
import type { Clock, Emit, Random } from '../../core/ports.ts';
import type { ToolRequest, UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import type { Store } from '../../storage/store.ts';

export interface ProcessLeaseOptions {
  store: Store;
  clock: Clock;
  emit: Emit;
  /** Names this process. */
  holder: string;
  /** Called each time the lease was renewed. */
  onBeat(): void;
}

/** Tells the other processes of the store that this one lives, for as long as it has jobs, and a beat longer. */
export interface ProcessLease {
  /** Resolves when the others can see it. Where it rejects, the job began all the same, and is to end. */
  begin(): Promise<void>;
  end(): void;
  /** Whether a process is dead: nobody renews its lease any more. */
  isDead(holder: string): Promise<boolean>;
  /** Lets the others see at once that it has no jobs; one that still has some says so on. */
  close(): Promise<void>;
}

/** A job whose process died is found out after this long. */
const leaseMs = 6_000;

const beatMs = 2_000;

export function createProcessLease({ store, clock, emit, holder, onBeat }: ProcessLeaseOptions): ProcessLease {
  let jobs = 0;
  let stop: (() => void) | undefined;
  /** The lease as it was taken; jobs that begin before the next beat need not take it again. */
  let taken: Promise<unknown> | undefined;

  /** Until when the others see it, as far as is known here (epoch milliseconds). */
  let heldUntil = 0;

  async function lease(): Promise<void> {
    const before = heldUntil;
    const until = clock.now() + leaseMs;
    heldUntil = until;
    let isMine = false;
    try {
      isMine = await store.lease(holder, holder, leaseMs, clock.now());
    } finally {
      if (!isMine && heldUntil === until) heldUntil = before;
    }
  }

  function beatLater(): void {
    stop = clock.after(beatMs, () => {
      if (jobs === 0) return void release();
      // The work goes on: when the store comes back in time nobody has noticed, else its end says what became of it.
      lease().then(onBeat, warn);
      beatLater();
    });
  }

  async function release(): Promise<void> {
    stop?.();
    stop = undefined;
    if (!taken) return;
    taken = undefined;
    heldUntil = 0;
    await store.release(holder, holder).catch(warn);
  }

  function warn(error: unknown): void {
    emit({ type: 'warning', where: 'jobs', message: isAppError(error) ? error.message : String(error) });
  }

  return {
    async begin() {
      jobs++;
      if (!stop) beatLater();
      // Less is left of it only where the last beats failed: it may lapse, or have lapsed, before the next one.
      const isFresh = heldUntil - clock.now() > beatMs;
      taken = taken && isFresh ? taken : lease();
      const mine = taken;
      try {
        await mine;
      } catch (error) {
        if (taken === mine) taken = undefined;
        throw error;
      }
    },
    end() {
      jobs--;
    },
    async close() {
      if (jobs === 0) await release();
    },
    async isDead(other) {
      // Whoever can take the lease of another finds that he let it lapse.
      if (other === holder || !(await store.lease(other, holder, leaseMs, clock.now()))) return false;
      await store.release(other, holder);
      return true;
    },
  };
}

/** The questions that a piece of work has for its caller, until they are answered. */
export interface Questions {
  /** Resolves with the caller's answer; rejects when the work is ended before. */
  ask(question: UserQuestion, signal: AbortSignal): Promise<UserAnswer>;
  pending(): readonly UserQuestion[];
  /** An answer to what was not asked, or was answered before, changes nothing. */
  answer(key: string, answer: UserAnswer): void;
}

export function createQuestions(): Questions {
  const open = new Map<string, { question: UserQuestion; resolve: (answer: UserAnswer) => void }>();
  return {
    ask(question, signal) {
      return new Promise((resolve, reject) => {
        const { key } = question;
        const onAbort = () => {
          open.delete(key);
          try {
            throwIfAborted(signal);
          } catch (error) {
            reject(error);
          }
        };
        if (signal.aborted) return onAbort();
        signal.addEventListener('abort', onAbort, { once: true });
        open.set(key, {
          question,
          resolve(answer) {
            signal.removeEventListener('abort', onAbort);
            resolve(answer);
          },
        });
      });
    },
    pending: () => [...open.values()].map(({ question }) => question),
    answer(key, answer) {
      const asked = open.get(key);
      open.delete(key);
      asked?.resolve(answer);
    },
  };
}

export interface JobsOptions {
  store: Store;
  clock: Clock;
  random: Random;
  emit: Emit;
}

/** Work that is under way. */
export interface DetachedCall {
  request: ToolRequest;
  /** Resolves with the reply; never rejects. */
  reply: Promise<JobReply>;
  /** Ends the work, down to the vendor's socket. */
  abort(reason: Error): void;
  /** What it is at. */
  stage(): string | undefined;
  questions: Questions;
}

/** Calls that go on without their callers. Every one of them belongs to the owner that started it. */
export interface Jobs {
  /** Makes a job of work; resolves once the job is durable, so that whoever is told of it finds it. */
  adopt(work: DetachedCall): Promise<Job>;
  /** Makes a job of a reply that is there; resolves with its id, or undefined where the store failed. */
  keep(tool: string, reply: JobReply, owner: string): Promise<JobId | undefined>;
  /** Throws when there is no such job of this owner. One whose process died reads as `interrupted`. */
  find(id: string, owner: string): Promise<Job>;
  /** The same, once it ended or after `ms`. */
  wait(id: string, owner: string, ms: number, signal: AbortSignal): Promise<Job>;
  /** Ends a job that runs; one that ended stays as it is. Answers how it stands then. */
  cancel(id: string, owner: string): Promise<Job>;
  /** The owner's jobs, the newest first. */
  list(owner: string, limit: number): Promise<Job[]>;
  /** The work of a job that runs in this process. */
  workOf(id: JobId): DetachedCall | undefined;
  /** Calls `listener` with each job of this process that begins or ends; the result ends that. */
  watch(listener: (job: Job) => void): () => void;
  /** Gives the jobs that run `graceMs` to end, or until `hurry` is aborted; then they are interrupted. */
  close(graceMs: number, hurry?: AbortSignal): Promise<void>;
}

/** A job and its reply are kept for this long after its last change. */
const lifeMs = 24 * 3_600_000;

/** How often a job of another process is looked at. */
const pollMs = 500;

interface Running {
  work: DetachedCall;
  ended: Promise<void>;
}

export function createJobs(options: JobsOptions): Jobs {
  return new JobService(options);
}

class JobService implements Jobs {
  readonly #options: JobsOptions;
  readonly #holder: string;
  readonly #holding: ProcessLease;
  readonly #running = new Map<JobId, Running>();
  readonly #listeners = new Set<(job: Job) => void>();

  constructor(options: JobsOptions) {
    this.#options = options;
    this.#holder = options.random.uuid();
    this.#holding = createProcessLease({ ...options, holder: this.#holder, onBeat: () => void this.#heedOthers() });
  }

  async find(id: string, owner: string): Promise<Job> {
    const job = await this.#owned(id, owner);
    if (job.status !== 'running' || this.#running.has(job.id)) return job;
    if (job.holder !== this.#holder && !(await this.#holding.isDead(job.holder))) return job;
    // Where it ended since it was read, and its process with it, this changes nothing.
    await this.#end(job.id, 'interrupted');
    return this.#owned(id, owner);
  }

  async adopt(work: DetachedCall): Promise<Job> {
    const { store } = this.#options;
    const { name, principal, arguments: args } = work.request;
    const job = this.#new(name, principal.owner, threadNamed(args.continuation_id));
    const { id } = job;
    try {
      await this.#holding.begin();
      await store.createJob(job);
    } catch (error) {
      this.#holding.end();
      throw error;
    }
    this.#running.set(id, { work, ended: work.reply.then(reply => this.#finish(id, reply)) });
    for (const listener of this.#listeners) listener(job);
    return job;
  }

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
    const { clock, random } = this.#options;
    const now = clock.now();
    const times = { createdAt: now, updatedAt: now, expiresAt: now + lifeMs };
    return { id: jobId(random.uuid()), owner, tool, thread, status: 'running', ...times, holder: this.#holder };
  }

  async wait(id: string, owner: string, ms: number, signal: AbortSignal): Promise<Job> {
    const { clock } = this.#options;
    const until = clock.monotonic() + ms;
    for (;;) {
      const job = await this.find(id, owner);
      const left = until - clock.monotonic();
      if (job.status !== 'running' || left <= 0) return job;
      throwIfAborted(signal);
      const mine = this.#running.get(job.id);
      const woken = new AbortController();
      const pause = clock.sleep(mine ? left : Math.min(left, pollMs), AbortSignal.any([signal, woken.signal]));
      // Whoever it was that ended the pause is found out by looking again.
      const over = pause.catch(() => {});
      await Promise.race(mine ? [over, mine.ended] : [over]);
      woken.abort();
    }
  }

  async cancel(id: string, owner: string): Promise<Job> {
    const job = await this.find(id, owner);
    if (job.status === 'running') {
      await this.#end(job.id, 'cancelled');
      const mine = this.#running.get(job.id);
      mine?.work.abort(cancelledError('The job was cancelled.'));
      await mine?.ended;
    }
    return this.#owned(id, owner);
  }

  list(owner: string, limit: number): Promise<Job[]> {
    return this.#options.store.jobs({ owner, limit, now: this.#options.clock.now() });
  }

  workOf(id: JobId): DetachedCall | undefined {
    return this.#running.get(id)?.work;
  }

  watch(listener: (job: Job) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(graceMs: number, hurry?: AbortSignal): Promise<void> {
    const all = () => Promise.all([...this.#running.values()].map(({ ended }) => ended));
    if (this.#running.size === 0) return this.#holding.close();
    const enough = new AbortController();
    const pause = this.#options.clock.sleep(graceMs, AbortSignal.any([enough.signal, ...(hurry ? [hurry] : [])]));
    // However the pause ends, what still runs then is interrupted.
    await Promise.race([all(), pause.catch(() => {})]);
    enough.abort();
    for (const [id, { work }] of this.#running) {
      await this.#end(id, 'interrupted').catch(error => this.#warn(error));
      work.abort(cancelledError('The server ended.'));
    }
    await all();
    await this.#holding.close();
  }

  async #owned(id: string, owner: string): Promise<Job> {
    const { store, clock } = this.#options;
    const job = isJobId(id) ? await store.job(id, clock.now()) : undefined;
    if (!job || job.owner !== owner) throw noSuchJob(id);
    return job;
  }

  async #finish(id: JobId, reply: JobReply): Promise<void> {
    const now = this.#options.clock.now();
    const end = { reply, thread: threadIn(reply), updatedAt: now, expiresAt: now + lifeMs };
    try {
      const ended = await this.#options.store.endJob(id, { ...end, status: reply.isError ? 'failed' : 'done' });
      if (ended) await this.#tell(id);
    } catch (error) {
      // The thread has the answer, if the store took that; the job will read as interrupted.
      this.#warn(error);
    }
    this.#running.delete(id);
    this.#holding.end();
  }

  async #end(id: JobId, status: 'cancelled' | 'interrupted'): Promise<void> {
    const now = this.#options.clock.now();
    const end = { status, updatedAt: now, expiresAt: now + lifeMs };
    if (await this.#options.store.endJob(id, end)) await this.#tell(id);
  }

  async #tell(id: JobId): Promise<void> {
    const job = await this.#options.store.job(id, this.#options.clock.now());
    if (job) for (const listener of this.#listeners) listener(job);
  }

  /** Ends the work of jobs that another process ended in the store. */
  async #heedOthers(): Promise<void> {
    for (const [id, { work }] of this.#running) {
      try {
        const job = await this.#options.store.job(id, this.#options.clock.now());
        if (job?.status !== 'running') work.abort(cancelledError('The job was ended.'));
      } catch (error) {
        this.#warn(error);
      }
    }
  }

  #warn(error: unknown): void {
    this.#options.emit({ type: 'warning', where: 'jobs', message: isAppError(error) ? error.message : String(error) });
  }
}

/** The thread that a reply offers to go on with. */
function threadIn({ document }: JobReply): Job['thread'] {
  const offer = document.continuation_offer;
  return threadNamed(document.continuation_id ?? (isRecord(offer) ? offer.continuation_id : undefined));
}

function threadNamed(id: unknown): Job['thread'] {
  return typeof id === 'string' && isThreadId(id) ? id : undefined;
}

function noSuchJob(id: string): Error {
  return inputError(`There is no job ${JSON.stringify(id.slice(0, 60))}.`, {
    class: 'job_not_found',
    next: 'Send job_id exactly as the reply gave it. A job is kept for a day after it ended; its thread has the answer for longer.',
    validationErrors: [{ field: 'job_id', error: 'unknown' }],
  });
}
