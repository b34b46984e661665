import type { ModelActions } from '../calls/action-context.ts';
import type { CallWorld } from '../calls/call-record.ts';
import type { IdempotentCalls } from '../calls/durable/idempotent-calls.ts';
import type { Jobs } from '../calls/durable/jobs.ts';
import { abortOnDisconnect, type DetachOptions, detachLong } from '../calls/durable/long-calls.ts';
import { idempotencyTraits } from '../calls/durable/operation-log.ts';
import { renderReply } from '../calls/format-reply.ts';
import { every } from '../core/concurrency.ts';
import { isAppError, warnFrom } from '../core/errors.ts';
import { isThreadId } from '../core/ids.ts';
import type { Job } from '../core/job.ts';
import type { Clock, Emit } from '../core/ports.ts';
import type { Thread, ThreadHead } from '../core/thread.ts';
import type {
  HostPrompts,
  HostResources,
  Principal,
  ResourceListing,
  ResourceTemplate,
  ToolHost,
  ToolReply,
  ToolRequest,
} from '../core/tool-host.ts';
import type { Store } from '../storage/store.ts';
import type { Threads } from '../threads/threads.ts';
import type { ExposedTools } from './exposure.ts';

/** Called with `threads/ID` or `jobs/ID`. */
type ChangeListener = (path: string) => void;

/** Which threads and jobs changed, whichever process changed them. Looks at the store while somebody watches, and only then. */
export type Changes = ReturnType<typeof createChanges>;

/** What another process changed is noticed after this long. */
const pollMs = 1_000;
/** The newest threads and jobs that are looked at: more than change between two looks. */
const window = 200;

export function createChanges({ store, clock, emit }: { store: Store; clock: Clock; emit: Emit }) {
  const warn = warnFrom(emit, 'resources');
  /** `known`: path → a mark of its last change; absent: not looked at yet. */
  const owners = new Map<string, { listeners: Set<ChangeListener>; known?: ReadonlyMap<string, string> }>();
  let last = Promise.resolve();
  let mark: string | undefined;
  let waiting = false;
  let failing = false;
  let stopTimer = () => {};

  /** Looks follow each other, so that no change is told twice. */
  function look(): Promise<void> {
    if (waiting) return last;
    waiting = true;
    last = last.then(lookOnce).then(
      () => {
        failing = false;
      },
      error => {
        // The next look finds what this one could not, and one word about it is enough.
        if (!failing) warn(error);
        failing = true;
        mark = undefined;
      },
    );
    return last;
  }

  async function lookOnce(): Promise<void> {
    waiting = false;
    if (owners.size === 0) return;
    // Taken first: what changes while the lists are read is found by the next look.
    const now = await store.mark();
    const changed = now !== mark;
    mark = now;
    for (const [owner, watched] of owners) {
      if (!changed && watched.known) continue;
      const state = await stateOf(store, owner, clock.now());
      const paths = watched.known ? differences(watched.known, state) : [];
      watched.known = state;
      for (const path of paths) for (const listener of watched.listeners) listener(path);
    }
  }

  return {
    /** Calls `listener` until `signal` is aborted. Resolves once nothing is missed any more; never rejects. */
    watch(owner: string, listener: ChangeListener, signal: AbortSignal) {
      if (signal.aborted) return Promise.resolve();
      if (owners.size === 0) stopTimer = every(clock, pollMs, look);
      const watched = owners.get(owner) ?? { listeners: new Set() };
      owners.set(owner, watched);
      watched.listeners.add(listener);
      const forget = () => {
        watched.listeners.delete(listener);
        if (watched.listeners.size === 0) owners.delete(owner);
        if (owners.size === 0) stopTimer();
      };
      signal.addEventListener('abort', forget, { once: true });
      return watched.known ? Promise.resolve() : look();
    },
    /** Looks now, because this process changed something. */
    look() {
      if (owners.size > 0) void look();
    },
  };
}

async function stateOf(store: Store, owner: string, now: number): Promise<ReadonlyMap<string, string>> {
  const query = { owner, limit: window, now };
  const [heads, jobs] = await Promise.all([store.list(query), store.jobs(query)]);
  return new Map([
    ...heads.map(({ id, seq, updatedAt }) => [`threads/${id}`, `${updatedAt} ${seq}`] as const),
    ...jobs.map(({ id, status, updatedAt }) => [`jobs/${id}`, `${updatedAt} ${status}`] as const),
  ]);
}

/** What is new, changed or gone. One that was only pushed out of the window counts too: who reads it again finds it as it was. */
function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const gone = [...before.keys()].filter(path => !after.has(path));
  return [...[...after].filter(([path, now]) => before.get(path) !== now).map(([path]) => path), ...gone];
}

/** Who may not call the tool that shows threads, or jobs, sees none in other ways either. */
interface Visible {
  threads: boolean;
  jobs: boolean;
}

export type ResourceParts = Pick<HostOptions, 'threads' | 'jobs' | 'models' | 'clock'> & {
  changes: Changes;
  visible: Visible;
};

const scheme = 'polylogue://';
const json = 'application/json';

const resourceTemplates: readonly ResourceTemplate[] = [
  ['threads/{id}', 'thread', 'Thread', 'A stored conversation, turn by turn.', json],
  ['threads/{id}/turns/{seq}', 'turn', 'Turn', 'One turn of a thread, in full.', 'text/markdown'],
  ['jobs/{id}', 'job', 'Job', 'A background call and its reply.', json],
].map(([path = '', name = '', title = '', description = '', mimeType = '']) => {
  return { uriTemplate: scheme + path, name, title, description, mimeType };
});

const maxListed = 50;

const models: ResourceListing = {
  uri: `${scheme}models`,
  name: 'models',
  title: 'Models',
  description: 'Models available now.',
  mimeType: json,
};

export function createResources(parts: ResourceParts): HostResources {
  const { threads, jobs, clock, visible } = parts;
  const isVisible = (path: string) => (path.startsWith('jobs/') ? visible.jobs : visible.threads);
  return {
    templates: () => resourceTemplates.filter(({ uriTemplate }) => isVisible(uriTemplate.slice(scheme.length))),
    async list({ owner, root }) {
      const now = clock.now();
      const query = { owner, workspace: root, limit: maxListed, now };
      const heads = visible.threads ? await threads.store.list(query) : [];
      const found = visible.jobs ? await jobs.list(owner, maxListed) : [];
      return [models, ...heads.map(threadListing), ...found.map(jobListing)];
    },
    async read(uri, principal) {
      if (!uri.startsWith(scheme)) return undefined;
      try {
        return await readPath(parts, uri.slice(scheme.length), principal);
      } catch (error) {
        // An id that names nothing of this owner's is simply not there.
        if (isAppError(error) && error.kind === 'input') return undefined;
        throw error;
      }
    },
    watch: (owner, listener, signal) =>
      parts.changes.watch(owner, path => isVisible(path) && listener(scheme + path), signal),
  };
}

async function readPath(parts: ResourceParts, path: string, principal: Principal) {
  const [kind, id = '', part, seq, ...more] = path.split('/');
  if (more.length > 0) return undefined;
  if (path === 'models') return document(await modelRows(parts.models));
  if (kind === 'jobs' && part === undefined && parts.visible.jobs)
    return document(jobDocument(await parts.jobs.find(id, principal.owner)));
  if (kind !== 'threads' || !isThreadId(id) || !parts.visible.threads) return undefined;
  const thread = await parts.threads.find(id, { owner: principal.owner, workspace: principal.root });
  if (part === undefined) return document(threadDocument(thread));
  const turn = part === 'turns' ? thread.turns.find(candidate => String(candidate.seq) === seq) : undefined;
  return turn && { mimeType: 'text/markdown', text: turn.content };
}

const document = (value: object) => ({ mimeType: json, text: JSON.stringify(value) });

async function modelRows({ providers, defaultModel }: ModelActions) {
  const rows = (await providers())
    .filter(provider => provider.configured)
    .flatMap(provider => provider.models)
    .map(({ provider, id, name, aliases, window, maxOutput, input, reasoning }) => {
      return { model: `${provider}:${id}`, name, aliases, window, max_output: maxOutput, input, reasoning };
    });
  return { default_model: defaultModel, models: rows };
}

const jobDocument = ({ id, tool, thread, status, createdAt, updatedAt, expiresAt, reply }: Job) => ({
  job_id: id,
  status,
  tool,
  continuation_id: thread,
  created_at: isoTime(createdAt),
  updated_at: isoTime(updatedAt),
  expires_at: isoTime(expiresAt),
  reply: reply?.document,
});

const threadDocument = ({ id, title, toolName, createdAt, updatedAt, expiresAt, totals, turns }: Thread) => ({
  continuation_id: id,
  title,
  tool: toolName,
  created_at: isoTime(createdAt),
  updated_at: isoTime(updatedAt),
  expires_at: isoTime(expiresAt),
  tokens: totals.tokens,
  turns: turns.map(turn => ({
    turn: turn.seq,
    role: turn.role,
    tool: turn.toolName,
    model: turn.modelName && `${turn.modelProvider}:${turn.modelName}`,
    at: isoTime(turn.timestamp),
    status: turn.status,
    content: turn.content,
    files: turn.files.map(({ path, form }) => ({ path, form })),
  })),
});

const isoTime = (ms: number): string => new Date(ms).toISOString();

function threadListing({ id, title, toolName, updatedAt }: ThreadHead): ResourceListing {
  const description = `Thread begun with ${toolName}, last used ${isoTime(updatedAt)}.`;
  return { uri: `${scheme}threads/${id}`, name: id, title: title || toolName, description, mimeType: json };
}

function jobListing({ id, tool, status, createdAt }: Job): ResourceListing {
  const description = `Call of ${tool} that began ${isoTime(createdAt)}: ${status}.`;
  return { uri: `${scheme}jobs/${id}`, name: id, title: `${tool}: ${status}`, description, mimeType: json };
}

export interface HostOptions extends Omit<DetachOptions, 'jobs' | 'takesLong'> {
  /** The pipeline of a call. */
  engine: Pick<ToolHost, 'list' | 'call'>;
  /** One bill for a call that is sent again. */
  idempotentCalls: Pick<IdempotentCalls, 'call'>;
  /** What a call that is sent again is compared with. */
  world: CallWorld;
  exposed: ExposedTools;
  prompts: HostPrompts;
  threads: Threads;
  jobs: Jobs;
  models: ModelActions;
}

const maxCompletions = 100;

/** The product as transports know it. */
export function createHost(options: HostOptions): ToolHost {
  const { engine, exposed, prompts, threads, jobs, models, clock, emit, replyFormat, idempotentCalls } = options;
  const callable = [...exposed.tools, ...exposed.unlisted];
  const once = idempotencyTraits(callable);
  const costly = new Set(callable.filter(({ effects }) => effects.network).map(({ name }) => name));
  const mayCall = (tool: string) => callable.some(({ name }) => name === tool);
  const visible = { threads: mayCall('threads'), jobs: mayCall('job') };
  const changes = createChanges({ store: threads.store, clock, emit });
  jobs.watch(changes.look);

  async function watched(request: ToolRequest, signal: AbortSignal): Promise<ToolReply> {
    const reply = await engine.call(request, signal);
    changes.look();
    return reply;
  }

  // Without the tool that comes back for it, a job would be lost to a client that knows no tasks.
  const takesLong = ({ name, detach }: ToolRequest) => costly.has(name) && (visible.jobs || detach === 'task');
  const way = { ...options.world, run: watched, detach: { ...options, takesLong } };
  const plainly = detachLong(way.detach, watched);

  return {
    list: engine.list,
    replyTokens: () => options.world.replyTokens,
    call(request, signal) {
      if (!request.session) return plainly(request, signal);
      const facts = once.get(request.name);
      return facts && !facts.isRead(request.arguments)
        ? idempotentCalls.call(request, signal, facts, way)
        : abortOnDisconnect(request, signal, plainly);
    },
    prompts,
    resources: createResources({ threads, jobs, models, clock, changes, visible }),
    jobs: {
      find: (id, owner) => jobs.find(id, owner),
      cancel: (id, owner) => jobs.cancel(id, owner),
      stage: ({ id }) => jobs.workOf(id)?.stage(),
      questions: ({ id }) => jobs.workOf(id)?.questions.pending() ?? [],
      answer: ({ id }, key, answer) => jobs.workOf(id)?.questions.answer(key, answer),
      show: reply => renderReply(reply, replyFormat),
      keep: (tool, reply, owner) => jobs.keep(tool, reply, owner),
    },
    complete: (argument, typed, principal) => complete({ ...options, visible }, argument, typed, principal),
  };
}

async function complete(options: HostOptions & { visible: Visible }, argument: string, typed: string, by: Principal) {
  const { threads, models, jobs, clock, visible } = options;
  const { owner, root } = by;
  const begins = (word: string) => word.toLowerCase().startsWith(typed.toLowerCase());
  const wanted = (words: readonly string[]) => [...new Set(words)].filter(begins).slice(0, maxCompletions);
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
      if (!visible.threads) return [];
      const query = { owner, workspace: root, limit: maxCompletions, now: clock.now() };
      const ids = (await threads.store.list(query)).map(({ id }) => id);
      return wanted(argument === 'thread' || ids.length === 0 ? ids : ['last', ...ids]);
    }
    case 'job':
      return visible.jobs ? wanted((await jobs.list(owner, maxCompletions)).map(({ id }) => id)) : [];
    default:
      return [];
  }
}
