import { isThreadId } from '../../core/ids.ts';
import type { Clock, Emit, Recent } from '../../core/ports.ts';
import type { Principal } from '../../core/tool-host.ts';
import { dayOf } from '../../core/usage.ts';
import type { PaidSearcher } from '../../models/paid-services.ts';
import type { Threads } from '../../threads/threads.ts';
import type { ActionContext, ModelActions, OpsActions, ProductFacts, ThreadActions } from '../action-context.ts';
import type { Jobs } from '../durable/jobs.ts';
import { createTransferActions, type TransferParts } from './transfers.ts';
import { createFileReporter, type ReportedCall, type UploadParts, uploadActions } from './uploads.ts';

export interface ActionParts {
  emit: Emit;
  threads: Threads;
  jobs: Jobs;
  /** Milliseconds that a client waits for a call. */
  patience(client: string | undefined): number;
  clock: Clock;
  models: ModelActions &
    Pick<OpsActions, 'capabilities' | 'caches' | 'health'> & { forget(thread: string): Promise<void> };
  /** What the calls of this process did lately. */
  recent: Recent;
  limits: OpsActions['limits'];
  /** Monotonic milliseconds. */
  startedAt: number;
  product: ProductFacts;
  replyTokens: number;
  files: Omit<TransferParts, 'replyTokens' | 'files'>;
  uploads: Omit<UploadParts, 'files'>;
  /** Absent: no provider that searches is configured. */
  web?: PaidSearcher;
}

export interface ActionCall extends ReportedCall {
  principal: Principal;
  signal: AbortSignal;
}

/** What the handlers of actions may touch, bound to one caller: none of it can reach another owner's threads. */
export function createActionContext(parts: ActionParts, { principal, signal, ...call }: ActionCall): ActionContext {
  const { web } = parts;
  const files = createFileReporter(parts.emit, call);
  return {
    principal,
    signal,
    now: parts.clock.now(),
    models: parts.models,
    uploads: uploadActions({ ...parts.uploads, files }, principal, signal),
    web: web && { provider: web.provider, search: request => web.search(request, { owner: principal.owner }, signal) },
    product: parts.product,
    replyTokens: parts.replyTokens,
    threads: threadActions(parts, principal, signal),
    jobs: {
      wait: (id, ms) => parts.jobs.wait(id, principal.owner, Math.min(ms, parts.patience(principal.client)), signal),
      cancel: id => parts.jobs.cancel(id, principal.owner),
      stage: job => parts.jobs.workOf(job.id)?.stage(),
    },
    ops: opsActions(parts, principal),
    transfer: createTransferActions({ ...parts.files, replyTokens: parts.replyTokens, files }, principal, signal),
  };
}

/** More jobs than one client lets run. */
const maxJobs = 100;

function opsActions(parts: ActionParts, { owner }: Principal): OpsActions {
  const { threads, jobs, clock, recent, limits, models } = parts;
  return {
    limits,
    uptimeMs: () => clock.monotonic() - parts.startedAt,
    spentToday: () => threads.store.spend.rows({ owner, from: dayOf(clock.now()) }),
    runningJobs: async () => (await jobs.list(owner, maxJobs)).filter(({ status }) => status === 'running'),
    recent: query => recent({ ...query, owner }),
    capabilities: models.capabilities,
    health: models.health,
    async caches() {
      const all = await models.caches();
      const ids = all.map(({ thread }) => thread).filter(isThreadId);
      const heads = await Promise.all(ids.map(id => threads.store.head(id, clock.now())));
      const own = new Set(
        heads.flatMap(head => (head.state === 'live' && head.value.owner === owner ? head.value.id : [])),
      );
      return all.filter(({ thread }) => isThreadId(thread) && own.has(thread));
    },
  };
}

function threadActions(
  { threads, clock, models }: ActionParts,
  { owner, root }: Principal,
  signal: AbortSignal,
): ThreadActions {
  const { store } = threads;
  const scope = (everywhere: boolean) => ({ owner, ...(everywhere ? {} : { workspace: root }), now: clock.now() });
  return {
    find: reference => threads.find(reference, { owner, workspace: root }),
    list: ({ everywhere, ...page }) => store.list({ ...scope(everywhere), ...page }),
    search: ({ everywhere, limit, text }) => store.search({ ...scope(everywhere), limit, text }),
    fork: (thread, upToSeq) => threads.fork(thread, upToSeq, `${thread.title} (fork at turn ${upToSeq})`),
    async remove(thread) {
      const removed = await threads.exclusively(thread.id, { signal }, () => threads.remove(thread.id));
      // It is removed; what a vendor still keeps of it ends by itself within the hour.
      await models.forget(thread.id).catch(() => undefined);
      return removed;
    },
  };
}
