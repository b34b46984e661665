import type { ParsedCall, PendingExchange } from '../../../calls/call-record.ts';
import type { Reply } from '../../../calls/reply.ts';
import { cancelledError, inputError, isAppError, limitError } from '../../../core/errors.ts';
import type { RequestId } from '../../../core/ids.ts';
import type { Clock } from '../../../core/ports.ts';
import type { UserAnswer, UserQuestion } from '../../../core/tool-host.ts';
import type { Threads } from '../../../threads/threads.ts';

/**
 * Brings a question back to the end of its thread, which was let go of while somebody was asked. Where others came between, it
 * was closed by them and stands again behind what they said: a thread only ever grows at its end. Under the thread's lease.
 */
export async function restoreRun(threads: Threads, pending: PendingExchange): Promise<void> {
  const { id, owner, workspace } = pending.thread;
  try {
    const found = await threads.find(id, { owner, workspace });
    const own = found.turns.find(({ exchange }) => exchange === pending.turn.exchange);
    if (own?.status === 'pending' && found.seq === pending.turn.seq) {
      pending.thread = found;
      return;
    }
    const now = await threads.refresh(found);
    const turn = { ...pending.turn, seq: now.seq + 1, exchange: threads.newExchange() };
    pending.thread = await threads.add(now, turn.exchange, { turns: [turn], status: 'pending' });
    pending.turn = turn;
  } catch (error) {
    // Whoever deleted the thread did not end the work: it is answered, with the word that no thread has it.
    if (!isAppError(error) || error.kind !== 'input') throw error;
  }
}

/**
 * A run that may have to wait for a person between two calls of its tool: its client is answered with the question, and comes
 * again with the answer. The call that is here just now stands for it: events are that call's, and its cancelling ends the run.
 */
export class WaitingRun {
  readonly id: string;
  readonly owner: string;
  readonly signal: AbortSignal;
  /** What the first call said that all of it may cost. */
  readonly maxCostUsd: unknown;
  /** US dollars, by all of its calls. */
  spentUsd = 0;
  /** Once its question is in a thread. */
  pending: PendingExchange | undefined;
  readonly #stop = new AbortController();
  #call: ParsedCall;
  #leave: () => void = () => {};
  #asked = 0;
  #question: { question: UserQuestion; resolve: (answer: UserAnswer | undefined) => void } | undefined;
  #turn = Promise.withResolvers<void>();
  #reply: Promise<Reply> | undefined;

  constructor(id: string, call: ParsedCall) {
    this.id = id;
    this.owner = call.request.principal.owner;
    this.signal = this.#stop.signal;
    this.maxCostUsd = call.args.max_cost_usd;
    this.#call = call;
    this.attach(call);
  }

  /** The call that the run works for at this moment. */
  get call(): ParsedCall {
    return this.#call;
  }

  get reqId(): RequestId {
    return this.#call.reqId;
  }

  get question(): UserQuestion | undefined {
    return this.#question?.question;
  }

  attach(call: ParsedCall): void {
    this.#leave();
    this.#call = call;
    const onAbort = () => this.abort(call.signal.reason);
    call.signal.addEventListener('abort', onAbort, { once: true });
    this.#leave = () => call.signal.removeEventListener('abort', onAbort);
    if (call.signal.aborted) onAbort();
  }

  start(work: Promise<Reply>): void {
    this.#reply = work;
    const over = () => this.#turn.resolve();
    work.then(over, over);
  }

  abort(reason: unknown): void {
    this.#stop.abort(reason);
    this.#question?.resolve(undefined);
  }

  /** Undefined where nobody can be asked, or was asked too often in one call. */
  async ask(question: UserQuestion): Promise<UserAnswer | undefined> {
    const { request } = this.#call;
    if (request.ask) return request.ask(question);
    if (!request.answers || this.#asked >= maxQuestions) return undefined;
    this.#asked++;
    return new Promise(resolve => {
      this.#question = { question, resolve };
      this.#turn.resolve();
    });
  }

  /** False: it was not asked this. */
  answer(key: string, answer: UserAnswer): boolean {
    if (this.#question?.question.key !== key) return false;
    const { resolve } = this.#question;
    this.#question = undefined;
    this.#turn = Promise.withResolvers<void>();
    resolve(answer);
    return true;
  }

  /** Resolves when the work is over, and what became of it is stored. */
  async ended(): Promise<void> {
    // Who waits for the reply gets the error.
    await this.#reply?.catch(() => undefined);
  }

  /** What the call that is here is to be answered: the end of the run, or a question. */
  async next(): Promise<Reply | 'asks'> {
    await this.#turn.promise;
    if (this.#question && !this.signal.aborted) {
      this.#leave();
      return 'asks';
    }
    if (!this.#reply) throw new TypeError('the run was not started');
    const reply = await this.#reply;
    this.#leave();
    return reply;
  }
}

/** Clients give up after eight such answers to one call. */
const maxQuestions = 7;

const patienceMs = 600_000;

const maxWaiting = 20;

export type WaitingRuns = ReturnType<typeof createWaitingRuns>;

/** The runs of one process that wait for an answer. Nobody finds another owner's. */
export function createWaitingRuns({ clock }: { clock: Clock }) {
  const waiting = new Map<string, { run: WaitingRun; stopTimer: () => void }>();
  const end = (run: WaitingRun, message: string) => {
    waiting.delete(run.id);
    run.abort(cancelledError(message));
  };
  return {
    /** A run by its id, or by the question that one of the answers is to. */
    find(owner: string, id: string | undefined, keys: Iterable<string>): WaitingRun | undefined {
      const wanted = new Set(keys);
      const all = [...waiting.values()].map(({ run }) => run).filter(run => run.owner === owner);
      const found = all.find(run => run.id === id || (run.question && wanted.has(run.question.key)));
      if (!found) {
        if (id === undefined) return undefined;
        throw inputError(`No run ${id} waits for an answer.`, {
          next: 'It may have ended, or waited for longer than ten minutes: start it anew with "task".',
          validationErrors: [{ field: 'run_id', error: 'no such run' }],
        });
      }
      waiting.get(found.id)?.stopTimer();
      waiting.delete(found.id);
      return found;
    },
    /** Until it is found, or nobody came for ten minutes: then it is ended. */
    keep(run: WaitingRun): void {
      const own = [...waiting.values()].filter(each => each.run.owner === run.owner);
      if (own.length >= maxWaiting) {
        end(run, 'Too many runs wait for an answer.');
        throw limitError('over_capacity', `${maxWaiting} runs wait for an answer already.`, {
          next: 'Answer one of them, or wait until they end by themselves.',
        });
      }
      const stopTimer = clock.after(patienceMs, () => end(run, 'Nobody answered within ten minutes.'));
      waiting.set(run.id, { run, stopTimer });
    },
    /** Ends them all; resolves when they have come to their end. */
    async close(): Promise<void> {
      const all = [...waiting.values()];
      for (const { run, stopTimer } of all) {
        stopTimer();
        end(run, 'The server was stopped.');
      }
      await Promise.all(all.map(({ run }) => run.ended()));
    },
  };
}
