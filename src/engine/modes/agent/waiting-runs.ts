import type { CallServices } from '../../../calls/ask/services.ts';
import type { PendingExchange, PreparedCall, ThreadedCall } from '../../../calls/call-record.ts';
import { AppError, configError, inputError, limitError, storageError } from '../../../core/errors.ts';
import { hashOf, type ThreadId } from '../../../core/ids.ts';
import { isRecord, type JsonObject, mapTexts, textIn } from '../../../core/json.ts';
import type { Mask, SharedState } from '../../../core/ports.ts';
import { runPrefixes, type Threads } from '../../../threads/threads.ts';
import type { KnownFile } from '../../../workspace/read-file.ts';
import type { OpenServers } from './mcp-servers.ts';
import type { ApprovalState, OpenQuestion, RunRecord } from './plan-run.ts';
import type { StoppedRun } from './run-agent.ts';

/**
 * Brings a question back to the end of its thread, which was let go of while somebody was asked. Where others came between, it
 * was closed by them and stands again behind what they said: a thread only ever grows at its end. Under the thread's lease.
 */
export async function restoreRun(threads: Threads, { thread, turn, sent }: PendingExchange): Promise<PendingExchange> {
  const { id, owner, workspace } = thread;
  const found = await threads.find(id, { owner, workspace });
  const own = found.turns.find(({ exchange }) => exchange === turn.exchange);
  if (own?.status === 'pending' && found.seq === turn.seq) return { thread: found, turn, sent };
  const now = await threads.refresh(found);
  const again = { ...turn, seq: now.seq + 1, exchange: threads.newExchange() };
  return { thread: await threads.add(now, again.exchange, { turns: [again], status: 'pending' }), turn: again, sent };
}

/** A run over all of its calls. */
export interface Run {
  id: string;
  gate: ApprovalState;
  record: RunRecord;
  /** Borne by the blocks that are really ours. */
  mark: string;
  /** US dollars, and what the first call said that all of it may cost. */
  spentUsd: number;
  maxCostUsd: unknown;
  /** Milliseconds that it worked. */
  elapsedMs: number;
}

/** What belongs to one call, or to the process. */
type Live = Exclude<keyof ThreadedCall, 'args' | 'common' | 'warnings'> | 'plan' | 'messages' | 'blobs';

/** A run as it waits: all that it needs to go on in another process. */
export interface StoredRun {
  run: Run;
  call: Omit<PreparedCall, Live | 'compaction'>;
  /** Turns of the thread that were sent. */
  sent: number;
  /** Names of the tools that its model may call. */
  tools: string[];
  watched: KnownFile[];
  stopped: StoppedRun;
}

/** What others may know of a run without what was said in it. */
export interface WaitingRun {
  id: string;
  owner: string;
  thread: ThreadId;
  /** `running`: an answer was used. */
  state: 'waiting' | 'running' | 'ended';
  /** Of the question that it asked last, and of the call that this was about. */
  key: string;
  call: string;
  /** Of its task in the thread. */
  exchange: string;
  /** Epoch milliseconds by the store's time of its question. */
  since: number;
}

const patienceMs = 600_000;
/** No run takes longer. */
const runningMs = 24 * 3_600_000;
const maxWaiting = 20;
const idPattern = /^[0-9a-f-]{36}-[0-9a-f]{8}$/;
const [headPrefix, bodyPrefix] = runPrefixes;

export type WaitingRuns = ReturnType<typeof createWaitingRuns>;

/**
 * The runs that wait for an answer, in the store: any process on it may take one, once. Nobody finds another owner's. A process
 * has to itself the servers that it started, and what the model of a run made up that looks like a secret: the store keeps none.
 */
export function createWaitingRuns(parts: Pick<CallServices, 'threads' | 'clock' | 'mask'> & { state: SharedState }) {
  const { threads, clock, mask, state } = parts;
  const here = new Map<string, { key: string; body: string; servers: OpenServers; stopTimer: () => void }>();

  const read = async (id: string): Promise<WaitingRun | undefined> => headIn(await state.get(headPrefix + id));

  const change = (id: string, ttlMs: number, next: (head: WaitingRun | undefined) => WaitingRun | undefined) =>
    state.change(headPrefix + id, ttlMs, value => {
      const head = next(headIn(value));
      return head && { head: JSON.stringify(head) };
    });

  /** Ends what this process has of a run that nobody answered, and the question in its thread. */
  async function expire(run: WaitingRun): Promise<void> {
    const head = await read(run.id);
    // It was shown once more, or timers are not exact.
    if (head?.state === 'waiting' && head.key === run.key) return expireIn(run, 5_000);
    await here.get(run.id)?.servers.close();
    here.delete(run.id);
    if (head) return;
    const { signal } = new AbortController();
    await threads.exclusively(run.thread, { signal }, () => threads.refresh({ id: run.thread, owner: run.owner }));
  }

  function expireIn(run: WaitingRun, ms: number): void {
    const own = here.get(run.id);
    // A thread that went has no question any more, and one that can't be written now is closed by its next use.
    if (own) own.stopTimer = clock.after(ms, () => void expire(run).catch(() => undefined));
  }

  return {
    /** A run by its id, or by the question that one of the answers is to. */
    async find(owner: string, id: string | undefined, keys: Iterable<string>): Promise<WaitingRun | undefined> {
      const ids = id === undefined ? [...keys].map(key => key.slice(0, key.lastIndexOf(':'))) : [id];
      for (const each of ids.filter(text => idPattern.test(text))) {
        const found = await read(each);
        if (found?.owner === owner) return found;
      }
      if (id === undefined) return undefined;
      throw noSuchRun(id);
    },
    /** All of a run that waits, for ten more minutes. */
    async open({ id, key }: WaitingRun): Promise<StoredRun> {
      await change(id, patienceMs, head => waitingAs(head ?? { id, key }, head));
      const own = here.get(id);
      const stored = await state.change(bodyPrefix + id, patienceMs, value => value);
      const body = own?.key === key ? own.body : bodyOf(stored);
      if (body === undefined) throw cannotContinue(id, unstored);
      return JSON.parse(body, (_key, value) => (isBytes(value) ? Buffer.from(value.data, 'base64') : value));
    },
    /** Runs `work` unless a process works for the run already. */
    alone<Result>(run: WaitingRun, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
      const taken = new AbortController();
      const options = { signal: AbortSignal.any([signal, taken.signal]), onWait: () => taken.abort(answered(run)) };
      return threads.exclusively(run.id, options, async () => {
        const head = await read(run.id);
        if (head?.state === 'running') throw interrupted(head);
        waitingAs(run, head);
        return work();
      });
    },
    /** Uses the answer up, before anything is done for it. */
    async claim(run: WaitingRun): Promise<void> {
      const { id } = run;
      await change(id, runningMs, head => ({ ...waitingAs(run, head), state: 'running' }));
      here.get(id)?.stopTimer();
      here.delete(id);
      await state.change(bodyPrefix + id, 0, () => undefined);
    },
    serversOf: (id: string) => here.get(id)?.servers,
    /** Until it is taken, or nobody came for ten minutes. */
    async keep(
      run: Pick<WaitingRun, 'id' | 'owner' | 'thread'>,
      stored: StoredRun,
      { question, call }: OpenQuestion,
      servers: OpenServers,
    ): Promise<void> {
      if ((await listWaiting(state, run.owner)).length >= maxWaiting) throw tooManyWait();
      const body = textOf(stored);
      if (!(await holdsSecrets(mask, body, run.thread)))
        await state.change(bodyPrefix + run.id, patienceMs, () => ({ body, seal: hashOf(body) }));
      const { exchange } = stored.call.turn;
      const since = clock.storeTime();
      const head: WaitingRun = { ...run, state: 'waiting', key: question.key, call, exchange, since };
      await change(run.id, patienceMs, () => head);
      here.set(run.id, { key: head.key, body, servers, stopTimer: () => {} });
      expireIn(head, patienceMs);
    },
    /** Its answers are used up; who sends one is told so for ten minutes. */
    end: (id: string) => change(id, patienceMs, head => head && { ...head, state: 'ended' }),
    /** Lets go of what this process has; the runs wait on. */
    async close(): Promise<void> {
      const all = [...here.values()];
      here.clear();
      for (const { stopTimer } of all) stopTimer();
      await Promise.all(all.map(({ servers }) => servers.close()));
    },
  };
}

/** An owner's runs that wait, in whichever process they began. */
export async function listWaiting(state: SharedState, owner: string): Promise<WaitingRun[]> {
  const all = [...(await state.list(headPrefix)).values()].flatMap(value => headIn(value) ?? []);
  return all.filter(head => head.owner === owner && head.state === 'waiting');
}

const headIn = (value: JsonObject | undefined): WaitingRun | undefined => value && JSON.parse(textIn(value.head));

const textOf = (stored: StoredRun): string =>
  JSON.stringify(stored, (_key, value) =>
    value?.type === 'Buffer' && Array.isArray(value.data)
      ? { bytes: true, data: Buffer.from(value.data).toString('base64') }
      : value,
  );

async function holdsSecrets(mask: Mask, body: string, scope: string): Promise<boolean> {
  // What vendors sealed, and images, can't be told from random bytes.
  const texts: unknown = JSON.parse(body, (key, value) => (key === 'vendor' || isBytes(value) ? undefined : value));
  let found = false;
  await mapTexts(texts, async text => {
    const whole = text.toWellFormed();
    if ((await mask(whole, scope, 'model')).text !== whole) found = true;
    return text;
  });
  return found;
}

function bodyOf(value: JsonObject | undefined): string | undefined {
  const body = textIn(value?.body);
  if (!value || hashOf(body) === value.seal) return value && body;
  throw storageError('corrupt', 'The stored state of the run is damaged, and it is not continued.', {
    next: 'Start a new run with "task".',
  });
}

const isBytes = (value: unknown): value is { bytes: true; data: string } =>
  isRecord(value) && value.bytes === true && typeof value.data === 'string';

/** What is stored of a run that waits for an answer to this very question; throws where it does not any more. */
function waitingAs({ id, key }: Pick<WaitingRun, 'id' | 'key'>, head: WaitingRun | undefined): WaitingRun {
  if (head?.state === 'waiting' && head.key === key) return head;
  throw head ? answered(head) : noSuchRun(id);
}

const tooManyWait = (): AppError =>
  limitError('over_capacity', `${maxWaiting} runs wait for an answer already.`, {
    next: 'Answer one of them, or wait until they end by themselves.',
  });

const noSuchRun = (id: string): AppError =>
  inputError(`No run ${id} waits for an answer.`, {
    next: 'It may have ended, or waited for longer than ten minutes: start a new run with "task".',
    validationErrors: [{ field: 'run_id', error: 'no such run' }],
  });

const answered = ({ id, thread }: WaitingRun): AppError =>
  inputError(`The question of run ${id} was answered already: one answer is used once.`, {
    class: 'answered',
    next: 'Do not answer it again: the result goes to the caller that did, and into the thread (continuation_id). To see what the run asks now, call "agent" with the run_id alone.',
    validationErrors: [{ field: 'run_id', error: 'answered already' }],
    data: { run_id: id, continuation_id: thread },
  });

function interrupted({ id, thread, call }: WaitingRun): AppError {
  const message = `The server ended after ${call} of run ${id} was answered: whether it took effect, and what came after it, is unknown. Nothing is repeated.`;
  return new AppError('cancelled', message, {
    code: 'INTERRUPTED',
    class: 'interrupted',
    next: 'Check the files, then start a new run with "task" for what is left to do.',
    replyStatus: 'interrupted',
    data: { run_id: id, continuation_id: thread },
  });
}

const unstored =
  'it holds what looks like a secret, which the store does not keep, so that only the server that asked can continue it';

/** Why this process can't take a run that goes on waiting. */
export const cannotContinue = (id: string, what: string): AppError =>
  configError(`Cannot continue run ${id} here: ${what}. The run still waits.`, {
    class: 'run_elsewhere',
    next: 'Answer it at a server with the configuration that it began with, or start a new run with "task".',
  });
