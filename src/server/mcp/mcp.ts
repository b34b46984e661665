import type { ServerContext, Transport } from '@modelcontextprotocol/server';
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { gatherText } from '../../core/concurrency.ts';
import { isRecord, parsedJson } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { HostResources, ProgressUpdate, ToolHost, ToolRequest } from '../../core/tool-host.ts';
import type { ListedRoots, Project, ProjectOf } from './clients.ts';
import { canBeAsked, clientOf, followRoots, promptFor } from './clients.ts';
import { type Connection, cancelOf, watchConnection } from './connection.ts';
import { capabilities, type EarlyOffer, serverInfo } from './early-answers.ts';
import { callerTrace } from './messages.ts';
import { resultOf } from './results.ts';
import {
  answersIn,
  askUser,
  createdTask,
  inputRequired,
  knowsTasks,
  requireTasks,
  serveTasks,
  tasksExtension,
} from './tasks.ts';

/** `legacy`: 2025 clients, which say who they are when they connect. `modern`: 2026 ones, which say so with each request. */
export type Era = 'legacy' | 'modern';

const invalidParams = -32_602;

/** With these the protocol's own library answers what does not fit a schema. */
const schemaErrors = [-32_603, invalidParams];

const maxIssues = 3;

/** A request that does not fit its schema is answered as the client's mistake; the protocol's library calls it an internal error. */
function withInvalidParams(server: Server): Server {
  const connect = server.connect.bind(server);
  server.connect = transport => {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      if (!('error' in message) || !schemaErrors.includes(message.error.code)) return send(message, options);
      const [, list = ''] = /^(?:Invalid [\w/]+ request: )?(\[.*)$/s.exec(message.error.message) ?? [];
      const found = issuesInWords(parsedJson(list));
      const error = { code: invalidParams, message: `Invalid params: ${found}` };
      return send(found ? { ...message, error } : message, options);
    };
    return connect(transport);
  };
  return server;
}

/** What a schema found, in words: `params.clientInfo: expected object, …`; undefined for anything else. */
export function issuesInWords(issues: unknown): string | undefined {
  if (!Array.isArray(issues)) return undefined;
  const texts = issues.slice(0, maxIssues).flatMap(issue => {
    if (!isRecord(issue) || !Array.isArray(issue.path) || typeof issue.message !== 'string') return [];
    return [`${issue.path.join('.').slice(0, 100)}: ${issue.message.slice(0, 200)}`];
  });
  return texts.length > 0 ? texts.join('; ') : undefined;
}

/** Slash commands, and what their arguments and the addresses of resources may become while they are typed. */
function servePrompts(server: Server, host: ToolHost, projectOf: ProjectOf): void {
  const { prompts } = host;
  const listed = prompts.list();
  server.setRequestHandler('prompts/list', (_request, context) => {
    return { prompts: listed.map(prompt => promptFor(clientOf(server, context), prompt)) };
  });
  server.setRequestHandler('prompts/get', ({ params }) => {
    const text = prompts.text(params.name, params.arguments ?? {});
    if (text === undefined) {
      const names = listed.map(({ name }) => name).join(', ');
      const message = `Unknown prompt ${JSON.stringify(params.name.slice(0, 60))}; known prompts: ${names}.`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
    }
    const description = listed.find(({ name }) => name === params.name)?.description;
    return { ...(description && { description }), messages: [{ role: 'user', content: { type: 'text', text } }] };
  });
  server.setRequestHandler('completion/complete', async ({ params: { ref, argument } }, context) => {
    const { host, principal } = await projectOf(context);
    const what = ref.type === 'ref/prompt' ? argument.name : idOf(ref.uri, argument.name);
    const values = what === undefined ? [] : await host.complete(what, argument.value, principal);
    return { completion: { values, total: values.length, hasMore: false } };
  });
}

function idOf(template: string, argument: string): string | undefined {
  if (argument !== 'id') return undefined;
  return template.includes('/jobs/') ? 'job' : 'thread';
}

/** The most addresses that one connection may watch. */
const maxWatched = 1_024;

function serveResources(server: Server, resources: HostResources, projectOf: ProjectOf): void {
  const resourceTemplates = resources.templates().map(template => ({ ...template }));
  server.setRequestHandler('resources/list', async (_request, context) => {
    const { host, principal } = await projectOf(context);
    return { resources: await host.resources.list(principal) };
  });
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }, context) => {
    const { host, principal } = await projectOf(context);
    const found = await host.resources.read(uri, principal);
    if (!found) throw new ResourceNotFoundError(uri);
    return { contents: [{ uri, ...found }] };
  });
}

/** Changes of one owner's threads and jobs, looked for only while somebody wants to hear of them. */
export function changesOf(resources: Pick<HostResources, 'watch'>, owner: string, onChange: (uri: string) => void) {
  let stop = new AbortController();
  let watching: Promise<void> | undefined;
  return {
    /** Resolves once nothing is missed any more. */
    watch() {
      watching ??= resources.watch(owner, onChange, stop.signal);
      return watching;
    },
    unwatch() {
      stop.abort();
      stop = new AbortController();
      watching = undefined;
    },
  };
}

/** Tells a client of changes for as long as it wants to hear of any: of those that it named, or of all where its connection drops the rest. */
function serveChanges(server: Server, { host, principal, connection }: McpOptions, era: Era): void {
  const wanted = new Set<string>();
  let closed = false;
  const changes = changesOf(host.resources, principal.owner, uri => {
    // A client that is gone needs no word of changes.
    if (era === 'modern' || wanted.has(uri)) server.sendResourceUpdated({ uri }).catch(() => {});
  });
  const follow = (isWanted: boolean) => (isWanted && !closed ? changes.watch() : changes.unwatch());
  server.onclose = () => {
    closed = true;
    changes.unwatch();
  };
  if (era === 'modern') {
    connection?.watch?.(follow);
    return;
  }
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
    if (wanted.size < maxWatched) wanted.add(uri);
    await follow(true);
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => {
    wanted.delete(uri);
    await follow(wanted.size > 0);
    return {};
  });
}

export interface McpOptions extends Project, Omit<EarlyOffer, 'listings'> {
  clock: Pick<Clock, 'after'>;
  /** Names the client's program, as `CallSession` has it. */
  clientId?: string | undefined;
  /** Where the roots that a 2025 client lists say more of his project. */
  listed?: ListedRoots;
  /** Where one connection lasts from call to call. Absent: a closed stream cancels its request. */
  connection?: Connection;
}

const cached = { ttlMs: 300_000, cacheScope: 'public' } as const;

/** A protocol server over the host. Made once a connection, and once more for a probe, so making it starts nothing. */
export function createMcpServer(options: McpOptions, era: Era): Server {
  const { host, version, instructions, principal, listed } = options;
  const server = new Server(serverInfo(version), {
    capabilities: { ...capabilities, ...(era === 'modern' && { extensions: { [tasksExtension]: {} } }) },
    instructions,
    cacheHints: { 'tools/list': cached, 'prompts/list': cached },
  });
  server.setRequestHandler('tools/list', () => ({ tools: host.list().map(tool => ({ ...tool })) }));
  const fixed = { host, principal };
  const projectOf = era === 'legacy' && listed ? followRoots(server, fixed, listed) : () => fixed;
  serveCalls(server, { ...options, projectOf }, era);
  servePrompts(server, host, projectOf);
  serveResources(server, host.resources, projectOf);
  serveChanges(server, options, era);
  if (era === 'modern') serveTasks(server, host, principal.owner);
  return withInvalidParams(server);
}

/** Serves one client over a connection that lasts, in whichever era it speaks, until one side ends it. */
export function serveConnection(
  transport: Transport,
  options: McpOptions,
  onError: (error: Error) => void,
  watched: Parameters<typeof watchConnection>[1],
) {
  // Assigned below, before a client can have sent anything.
  let connection: Connection | undefined;
  const handle = serveStdio(({ era }) => createMcpServer({ ...options, connection }, era), {
    transport,
    onerror: onError,
  });
  connection = watchConnection(transport, watched);
  return handle;
}

/** More often a call of a 2025 client does not come back with questions. */
const maxRounds = 10;

function serveCalls(server: Server, options: McpOptions & { projectOf: ProjectOf }, era: Era): void {
  const onlyTasks = new Set(options.host.list().flatMap(({ name, execution }) => (execution ? [name] : [])));
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const detach = era === 'modern' && knowsTasks(context) ? 'task' : 'job';
    if (detach !== 'task' && onlyTasks.has(params.name)) requireTasks(context);
    const { host, principal } = await options.projectOf(context);
    const { end, ...progress } = progressOf(context, options.clock);
    const request = {
      name: params.name,
      arguments: params.arguments ?? {},
      principal: { ...principal, client: clientOf(server, context) },
      ...progress,
      detach,
      answers: canBeAsked(server, context) ? answersIn(context.mcpReq.inputResponses) : undefined,
      rateLimited: true,
      paged: true,
      ...callerTrace(context.mcpReq._meta, context.http?.req?.headers),
    } as const;
    let reply = await hostCall(host, request, context, options);
    if (reply.questions && era === 'modern') return inputRequired(reply.questions);
    for (let round = 0; reply.questions && round < maxRounds; round++) {
      const answers = await askUser(server, context, reply.questions);
      reply = await hostCall(host, { ...request, answers }, context, options);
    }
    await end();
    if (reply.job && detach === 'task') return createdTask(reply.job);
    const { client, owner } = request.principal;
    return resultOf(reply, {
      client,
      maxTokens: host.replyTokens?.(),
      keep: whole => host.jobs.keep(params.name, whole, owner),
    });
  });
}

async function hostCall(host: ToolHost, request: ToolRequest, { mcpReq }: ServerContext, options: McpOptions) {
  const { connection, clientId } = options;
  const { id, signal, _meta } = mcpReq;
  if (!connection) return host.call(request, signal);
  const key = _meta?.idempotencyKey;
  const { gone, inputEnded, resumedAt } = connection;
  const cut = connection.cutOf?.(id) ?? inputEnded;
  const idempotencyKey = typeof key === 'string' ? key : undefined;
  const session = { gone, clientId, inputEnded, cut, resumedAt, idempotencyKey };
  const reply = await host.call({ ...request, session }, cancelOf(signal, connection));
  if (reply.delivered) connection.onAnswered(id, signal, reply.delivered);
  return reply;
}

/** In the `_meta` of a call that has a `progressToken`: the messages of its progress are to be the answer, as it is written. */
export const partialTextKey = 'polylogue/partialText';

function progressOf({ mcpReq }: ServerContext, clock: Pick<Clock, 'after'>) {
  const { progressToken, [partialTextKey]: asked } = mcpReq._meta ?? {};
  if (progressToken === undefined) return { end: async () => {} };
  const tell = (progress: number, message?: string) => {
    const params = { progressToken, progress, ...(message !== undefined && { message }) };
    // A client that is gone needs no progress; the call's own signal ends the work.
    return mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
  };
  const onProgress = ({ progress, message }: ProgressUpdate) => void tell(progress, message);
  if (asked !== true) return { onProgress, end: async () => {} };
  let step = 0;
  const gathered = gatherText(clock, text => tell(++step, text));
  return {
    onProgress: () => void tell(++step),
    onText: gathered.write,
    /** Resolves once all of the text was sent. */
    end: () => new Promise<void>(resolve => gathered.end(resolve)),
  };
}
