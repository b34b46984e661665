import type { ModelActions } from '../calls/action-context.ts';
import type { Jobs } from '../calls/durable/jobs.ts';
import { detachLong } from '../calls/durable/long-calls.ts';
import type { Once } from '../calls/durable/once.ts';
import { type ReplyFormat, rendered } from '../calls/format-reply.ts';
import type { Clock, Emit } from '../core/ports.ts';
import type { HostPrompts, Principal, ToolHost, ToolReply, ToolRequest } from '../core/tool-host.ts';
import type { Threads } from '../threads/threads.ts';
import type { Offer } from './exposure.ts';
import { createChanges } from './offer/changes.ts';
import { createResources } from './offer/resources.ts';
import { onceFacts } from './once/once-facts.ts';
import { untilGone } from './once/until-gone.ts';

export interface HostOptions {
  /** The pipeline of a call. */
  engine: Pick<ToolHost, 'list' | 'call'>;
  /** One bill for a call that is sent again. */
  once: Pick<Once, 'call'>;
  offer: Offer;
  prompts: HostPrompts;
  threads: Threads;
  jobs: Jobs;
  models: ModelActions;
  clock: Clock;
  emit: Emit;
  replyFormat: ReplyFormat;
  /** Milliseconds that a client waits for a call. */
  patience(client: string | undefined): number;
}

const mostCompletions = 100;

/** The product as transports know it. */
export function createHost(options: HostOptions): ToolHost {
  const { engine, offer, prompts, threads, jobs, models, clock, emit, replyFormat, once } = options;
  const callable = [...offer.tools, ...offer.unlisted];
  const costly = onceFacts(callable);
  const long = new Set(costly.keys());
  // Without the tool that comes back for it, a job would be lost to a client that knows no tasks.
  const retrievable = callable.some(({ name }) => name === 'job');
  const changes = createChanges({ store: threads.store, clock, emit });
  jobs.watch(changes.look);

  async function watched(request: ToolRequest, signal: AbortSignal): Promise<ToolReply> {
    const reply = await engine.call(request, signal);
    changes.look();
    return reply;
  }

  const takesLong = ({ name, detach }: ToolRequest) => long.has(name) && (retrievable || detach === 'task');
  const way = { run: watched, long: (run: ToolHost['call']) => detachLong({ ...options, takesLong }, run) };
  const plainly = way.long(watched);

  return {
    list: engine.list,
    call(request, signal) {
      if (!request.session) return plainly(request, signal);
      const facts = costly.get(request.name);
      return facts ? once.call(request, signal, facts, way) : untilGone(request, signal, plainly);
    },
    prompts,
    resources: createResources({ threads, jobs, models, clock, changes }),
    jobs: {
      find: (id, owner) => jobs.find(id, owner),
      cancel: (id, owner) => jobs.cancel(id, owner),
      stage: ({ id }) => jobs.workOf(id)?.stage(),
      questions: ({ id }) => jobs.workOf(id)?.questions.pending() ?? [],
      answer: ({ id }, key, answer) => jobs.workOf(id)?.questions.answer(key, answer),
      show: reply => rendered(reply, replyFormat),
    },
    complete: (argument, typed, principal) => complete(options, argument, typed, principal),
  };
}

async function complete(
  { threads, models, jobs, clock }: HostOptions,
  argument: string,
  typed: string,
  { owner, root }: Principal,
): Promise<string[]> {
  const begins = (word: string) => word.toLowerCase().startsWith(typed.toLowerCase());
  const wanted = (words: readonly string[]) => [...new Set(words)].filter(begins).slice(0, mostCompletions);
  switch (argument) {
    case 'model': {
      const ready = (await models.providers()).filter(provider => provider.configured);
      const bestOf = (providers: typeof ready) =>
        providers.flatMap(each => each.models).toSorted((a, b) => b.score - a.score);
      const best = bestOf(ready.filter(({ onlyByPrefix }) => !onlyByPrefix));
      const full = bestOf(ready).map(({ provider, id }) => `${provider}:${id}`);
      return wanted(['auto', ...best.map(({ id }) => id), ...best.flatMap(({ aliases }) => aliases), ...full]);
    }
    case 'continuation_id':
    case 'thread': {
      const query = { owner, workspace: root, limit: mostCompletions, now: clock.now() };
      const ids = (await threads.store.list(query)).map(({ id }) => id);
      return wanted(argument === 'thread' || ids.length === 0 ? ids : ['last', ...ids]);
    }
    case 'job':
      return wanted((await jobs.list(owner, mostCompletions)).map(({ id }) => id));
    default:
      return [];
  }
}
