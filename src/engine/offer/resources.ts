import type { ModelActions } from '../../calls/action-context.ts';
import type { Jobs } from '../../calls/durable/jobs.ts';
import { isAppError } from '../../core/errors.ts';
import { isThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import type { Clock } from '../../core/ports.ts';
import type { Thread, ThreadHead } from '../../core/thread.ts';
import type {
  HostResources,
  Principal,
  ResourceListing,
  ResourceTemplate,
  ResourceText,
} from '../../core/tool-host.ts';
import type { Threads } from '../../threads/threads.ts';
import type { Changes } from './changes.ts';

export interface ResourceParts {
  threads: Threads;
  jobs: Jobs;
  models: ModelActions;
  clock: Clock;
  changes: Changes;
}

const scheme = 'polylogue://';
const mostListed = 50;
const json = 'application/json';

const models: ResourceListing = {
  uri: `${scheme}models`,
  name: 'models',
  title: 'Models',
  description: 'The models that can be asked now.',
  mimeType: json,
};

export const resourceTemplates: readonly ResourceTemplate[] = [
  ['threads/{id}', 'thread', 'Thread', 'A stored conversation, turn by turn.', json],
  ['threads/{id}/turns/{seq}', 'turn', 'Turn', 'One turn of a thread, whole.', 'text/markdown'],
  ['jobs/{id}', 'job', 'Job', 'A call that goes on by itself, and its reply.', json],
].map(([path = '', name = '', title = '', description = '', mimeType = '']) => {
  return { uriTemplate: scheme + path, name, title, description, mimeType };
});

/** What can be read by its address. */
export function createResources(parts: ResourceParts): HostResources {
  const { threads, jobs, clock } = parts;
  return {
    templates: () => resourceTemplates,

    async list({ owner, root }) {
      const now = clock.now();
      const heads = await threads.store.list({ owner, workspace: root, limit: mostListed, now });
      const found = await jobs.list(owner, mostListed);
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

    watch: (owner, listener, signal) => parts.changes.watch(owner, path => listener(scheme + path), signal),
  };
}

async function readPath(parts: ResourceParts, path: string, principal: Principal): Promise<ResourceText | undefined> {
  const [kind, id = '', part, seq, ...more] = path.split('/');
  if (more.length > 0) return undefined;
  if (path === 'models') return document(await modelRows(parts.models));
  if (kind === 'jobs' && part === undefined) {
    const job = await parts.jobs.find(id, principal.owner);
    return document(jobDocument(job));
  }
  if (kind !== 'threads' || !isThreadId(id)) return undefined;
  const thread = await parts.threads.find(id, { owner: principal.owner, workspace: principal.root });
  if (part === undefined) return document(threadDocument(thread));
  const turn = part === 'turns' ? thread.turns.find(candidate => String(candidate.seq) === seq) : undefined;
  return turn && { mimeType: 'text/markdown', text: turn.content };
}

function document(value: object): ResourceText {
  return { mimeType: json, text: JSON.stringify(value) };
}

async function modelRows({ providers, defaultModel }: ModelActions) {
  const rows = (await providers())
    .filter(provider => provider.configured)
    .flatMap(provider => provider.models)
    .map(({ provider, id, name, aliases, window, maxOutput, input, reasoning }) => {
      return { model: `${provider}:${id}`, name, aliases, window, max_output: maxOutput, input, reasoning };
    });
  return { default_model: defaultModel, models: rows };
}

function jobDocument({ id, tool, thread, status, createdAt, updatedAt, expiresAt, reply }: Job) {
  return {
    job_id: id,
    status,
    tool,
    continuation_id: thread,
    created_at: isoTime(createdAt),
    updated_at: isoTime(updatedAt),
    expires_at: isoTime(expiresAt),
    reply: reply?.document,
  };
}

function threadDocument({ id, title, toolName, createdAt, updatedAt, expiresAt, totals, turns }: Thread) {
  return {
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
  };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

function threadListing({ id, title, toolName, updatedAt }: ThreadHead): ResourceListing {
  const description = `Thread begun with ${toolName}, last used ${isoTime(updatedAt)}.`;
  return { uri: `${scheme}threads/${id}`, name: id, title: title || toolName, description, mimeType: json };
}

function jobListing({ id, tool, status, createdAt }: Job): ResourceListing {
  const description = `Call of ${tool} that began ${isoTime(createdAt)}: ${status}.`;
  return { uri: `${scheme}jobs/${id}`, name: id, title: `${tool}: ${status}`, description, mimeType: json };
}
