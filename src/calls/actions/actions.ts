import { isThreadId, type ThreadId } from '../../core/ids.ts';
import type { Clock, Emit, Recent } from '../../core/ports.ts';
import type { ThreadHead } from '../../core/thread.ts';
import type { Principal } from '../../core/tool-host.ts';
import type { PaidSearcher } from '../../models/paid-services.ts';
import type { Threads } from '../../threads/threads.ts';
import type { ActionContext, ModelActions, OpsActions, ProductFacts, ThreadActions } from '../action-context.ts';
import type { Jobs } from '../durable/jobs.ts';
import {
  createFileReporter,
  createTransferActions,
  type FileParts,
  type ReportedCall,
  uploadActions,
} from './files.ts';

export interface ActionParts extends FileParts {
  emit: Emit;
  threads: Threads;
  jobs: Jobs;
  /** Milliseconds that a client waits for a call. */
  patience(client: string | undefined): number;
  clock: Clock;
  /** The day that an owner's calls are counted under now. */
  today(owner: string): Promise<string>;
  models: ModelActions &
    Pick<OpsActions, 'capabilities' | 'caches' | 'health'> & { forget(thread: string): Promise<void> };
  /** What the calls of this process did lately. */
  recent: Recent;
  limits: OpsActions['limits'];
  /** Monotonic milliseconds. */
  startedAt: number;
  product: ProductFacts;
  /** Absent: no provider that searches is configured. */
  web?: PaidSearcher;
}

export interface ActionCall extends ReportedCall {
  principal: Principal;
  signal: AbortSignal;
}

/** More jobs than one client lets run. */
const maxJobs = 100;

/** What the handlers of actions may touch, bound to one caller: none of it can reach another owner's threads. */
export function createActionContext(parts: ActionParts, { principal, signal, ...call }: ActionCall): ActionContext {
  const { web, threads, jobs, clock, models } = parts;
  const { owner } = principal;
  const files = createFileReporter(parts.emit, call);
  return {
    principal,
    signal,
    now: clock.now(),
    models,
    uploads: uploadActions(parts, files, principal, signal),
    web: web && { provider: web.provider, search: request => web.search(request, { owner }, signal) },
    product: parts.product,
    replyTokens: parts.replyTokens,
    threads: threadActions(parts, principal, signal),
    jobs: {
      wait: (id, ms) => jobs.wait(id, owner, Math.min(ms, parts.patience(principal.client)), signal),
      cancel: id => jobs.cancel(id, owner),
      stage: job => jobs.workOf(job.id)?.stage(),
    },
    ops: {
      limits: parts.limits,
      uptimeMs: () => clock.monotonic() - parts.startedAt,
      spentToday: async () => threads.store.spend.rows({ owner, from: await parts.today(owner) }),
      runningJobs: async () => (await jobs.list(owner, maxJobs)).filter(({ status }) => status === 'running'),
      recent: query => parts.recent({ ...query, owner }),
      capabilities: models.capabilities,
      health: models.health,
      caches: () => ownCaches(parts, owner),
    },
    transfer: createTransferActions(parts, files, principal, signal),
  };
}

interface ThreadParts {
  threads: Threads;
  models: Pick<ActionParts['models'], 'caches' | 'forget'>;
  clock: Pick<Clock, 'now'>;
}

/** Of these ids, whatever they are, those of an owner's threads, with what is known of each. */
export async function ownHeads({ threads, clock }: Omit<ThreadParts, 'models'>, owner: string, ids: readonly string[]) {
  const heads = await Promise.all(ids.filter(isThreadId).map(id => threads.store.head(id, clock.now())));
  const own = heads.flatMap(head => (head.state === 'live' && head.value.owner === owner ? [head.value] : []));
  return new Map<string, ThreadHead>(own.map(head => [head.id, head]));
}

/** What vendors cache of an owner's threads. */
export async function ownCaches(parts: ThreadParts, owner: string) {
  const all = await parts.models.caches();
  const threads = all.map(({ thread }) => thread);
  const own = await ownHeads(parts, owner, threads);
  return all.filter(({ thread }) => own.has(thread));
}

/** Answers whether it was there. */
export async function removeThread({ threads, models }: Omit<ThreadParts, 'clock'>, id: ThreadId, signal: AbortSignal) {
  const removed = await threads.exclusively(id, { signal }, () => threads.remove(id));
  // It is removed; what a vendor still keeps of it ends by itself within the hour.
  await models.forget(id).catch(() => undefined);
  return removed;
}

function threadActions(parts: ActionParts, { owner, root }: Principal, signal: AbortSignal): ThreadActions {
  const { threads, clock } = parts;
  const { store } = threads;
  const place = { owner, workspace: root };
  const scope = (everywhere: boolean) => ({ ...(everywhere ? { owner } : place), now: clock.now() });
  return {
    find: reference => threads.find(reference, place),
    head: reference => threads.findHead(reference, place),
    list: ({ everywhere, ...page }) => store.list({ ...scope(everywhere), ...page }),
    search: ({ everywhere, limit, text }) => store.search({ ...scope(everywhere), limit, text }),
    fork: (thread, upToSeq) => threads.fork(thread, upToSeq, `${thread.title} (fork at turn ${upToSeq})`),
    remove: ({ id }) => removeThread(parts, id, signal),
  };
}
