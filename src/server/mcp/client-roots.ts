import type { RequestId, Server, ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Clock } from '../../core/ports.ts';
import type { ToolHost } from '../../core/tool-host.ts';

/** What the calls of a connection use, and where they come from. */
export interface Project {
  host: ToolHost;
  principal: { owner: string; root: string };
}

/** How the directories that a 2025 client lists choose his project. */
export interface ListedRoots {
  /** What he may use of the product then; `addresses` are as he wrote them. */
  productOf(addresses: readonly string[]): Promise<{ host: ToolHost; root: string }>;
  clock: Pick<Clock, 'after'>;
}

/** The project of the client's call. Rejects for a client that is gone before it is known: nothing was begun for him. */
export type ProjectOf = (context: ServerContext) => Project | Promise<Project>;

/** A call waits for so long for the answer; one that comes later is for the calls after it. */
const patienceMs = 2_000;

/** Roots that are no directories of a machine may stand among them. */
const answerSchema = z.looseObject({ roots: z.array(z.looseObject({ uri: z.string() })) });

/**
 * Asks a client that has roots which they are: at his first call, for there has to be a stream over which to ask, and again
 * when they changed. `fixed` is his project until he tells, and when he does not.
 */
export function followRoots(server: Server, fixed: Project, { productOf, clock }: ListedRoots): ProjectOf {
  let current = fixed;
  let ready = false;
  let asked: Promise<void> | undefined;
  // Answers to earlier questions count for nothing once a later one is asked.
  let round = 0;

  async function ask(relatedRequestId: RequestId): Promise<void> {
    round += 1;
    const mine = round;
    try {
      const { roots } = await server.request({ method: 'roots/list' }, answerSchema, { relatedRequestId });
      const { host, root } = await productOf(roots.map(({ uri }) => uri));
      if (mine === round) current = { host, principal: { ...fixed.principal, root } };
    } catch {
      // A client that says nothing, or refuses, stays where he is.
    }
  }

  function forget(): void {
    asked = undefined;
  }

  server.oninitialized = () => {
    ready = true;
    // Whoever begins anew may be in another project.
    round += 1;
    current = fixed;
    forget();
  };
  server.setNotificationHandler('notifications/roots/list_changed', forget);
  return async ({ mcpReq }) => {
    if (!ready || server.getClientCapabilities()?.roots === undefined) return current;
    asked ??= within(ask(mcpReq.id), clock);
    await asked;
    mcpReq.signal.throwIfAborted();
    return current;
  };
}

function within(work: Promise<void>, clock: Pick<Clock, 'after'>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = clock.after(patienceMs, resolve);
  work.then(stop);
  return Promise.race([work, promise]);
}
