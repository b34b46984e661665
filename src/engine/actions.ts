import type { Clock } from '../domain/ports.ts';
import type { Principal } from '../domain/request.ts';
import type { Threads } from '../memory/threads.ts';
import type { WebSearcher } from '../models/extras/glm/glm-web-search.ts';
import type { ActionContext, JobActions, ModelActions, ProductFacts, ThreadActions, WebActions } from './define.ts';
import { type UploadParts, uploadActions } from './documents/upload-actions.ts';
import type { Jobs } from './jobs/jobs.ts';

export interface ActionParts {
  threads: Threads;
  jobs: Jobs;
  /** Milliseconds that a client waits for a call. */
  patience(client: string | undefined): number;
  clock: Clock;
  models: ModelActions;
  product: ProductFacts;
  replyTokens: number;
  uploads: UploadParts;
  /** Absent: no provider that searches is configured. */
  web?: WebSearcher;
}

/** What the handlers of actions may touch, bound to one caller: none of it can reach another owner's threads. */
export function createActionContext(parts: ActionParts, principal: Principal, signal: AbortSignal): ActionContext {
  return {
    principal,
    signal,
    now: parts.clock.now(),
    models: parts.models,
    uploads: uploadActions(parts.uploads, principal, signal),
    ...(parts.web && { web: webActions(parts.web, signal) }),
    product: parts.product,
    replyTokens: parts.replyTokens,
    threads: threadActions(parts, principal, signal),
    jobs: jobActions(parts, principal, signal),
  };
}

function webActions({ provider, search }: WebSearcher, signal: AbortSignal): WebActions {
  return { provider, search: request => search(request, signal) };
}

function jobActions({ jobs, patience }: ActionParts, { owner, client }: Principal, signal: AbortSignal): JobActions {
  return {
    wait: (id, ms) => jobs.wait(id, owner, Math.min(ms, patience(client)), signal),
    cancel: id => jobs.cancel(id, owner),
    stage: job => jobs.workOf(job.id)?.stage(),
  };
}

function threadActions(
  { threads, clock }: ActionParts,
  { owner, root }: Principal,
  signal: AbortSignal,
): ThreadActions {
  const { store } = threads;
  const scope = (everywhere: boolean) => ({ owner, ...(everywhere ? {} : { workspace: root }), now: clock.now() });
  return {
    find: reference => threads.find(reference, { owner, workspace: root }),
    list: ({ everywhere, limit, before }) => store.list({ ...scope(everywhere), limit, before }),
    search: ({ everywhere, limit, text }) => store.search({ ...scope(everywhere), limit, text }),
    fork: (thread, upToSeq) => threads.fork(thread, upToSeq, `${thread.title} (fork at turn ${upToSeq})`),
    remove: thread => threads.exclusively(thread.id, { signal }, () => store.remove(thread.id, clock.now())),
  };
}
