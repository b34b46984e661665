import { CLIENT_INFO_META_KEY, Server, type ServerContext } from '@modelcontextprotocol/server';
import { isRecord } from '../../core/json.ts';
import type { ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';
import { canBeAsked } from '../capabilities.ts';
import type { Era } from '../era.ts';
import type { Listening } from '../listening.ts';
import { tellInvalidParams } from '../messages/invalid-params.ts';
import { servePrompts } from '../prompts.ts';
import { answersIn, inputRequired } from '../questions.ts';
import { serveResources, serveSubscriptions, updatesOf } from '../resources.ts';
import { resultOf } from '../results.ts';
import { callerTrace } from '../trace-context.ts';
import { followRoots, type ListedRoots, type ProjectOf } from './client-roots.ts';
import { type Connection, cancelOf } from './connection.ts';
import { createdTask, knowsTasks, requireTasks, serveTasks, tasksExtension } from './tasks.ts';

export interface McpOptions {
  host: ToolHost;
  version: string;
  /** At most 2 KB: what a model should know of the tools as a whole. */
  instructions: string;
  /** Whose calls these are, and which project they come from. */
  principal: { owner: string; root: string };
  /** Where the roots that a 2025 client lists say more of his project. */
  listed?: ListedRoots;
  /** Of the connection, where 2026 clients can listen for changes. */
  listening?: Listening;
  /** Where one connection lasts from call to call. Absent: a closed stream cancels its request. */
  connection?: Connection;
}

/** A protocol server over the host. Made once a connection, and once more for a probe, so making it starts nothing. */
export function createMcpServer(options: McpOptions, era: Era): Server {
  const { host, version, instructions, principal, listening, listed } = options;
  const server = new Server(
    { name: 'polylogue', title: 'Polylogue', version },
    {
      capabilities: {
        tools: {},
        prompts: {},
        resources: { subscribe: true },
        completions: {},
        ...(era === 'modern' && { extensions: { [tasksExtension]: {} } }),
      },
      instructions,
      cacheHints: {
        'tools/list': { ttlMs: 300_000, cacheScope: 'public' },
        'prompts/list': { ttlMs: 300_000, cacheScope: 'public' },
      },
    },
  );
  server.setRequestHandler('tools/list', () => ({ tools: host.list().map(tool => ({ ...tool })) }));
  const fixed = { host, principal };
  const projectOf = era === 'legacy' && listed ? followRoots(server, fixed, listed) : () => fixed;
  serveCalls(server, { ...options, projectOf }, era);
  servePrompts(server, host, projectOf);
  serveResources(server, host.resources, projectOf);
  const updates = updatesOf(server, host.resources, principal.owner);
  if (era === 'modern') listening?.watch(updates.all);
  else serveSubscriptions(server, updates);
  if (era === 'modern') serveTasks(server, host.jobs, principal.owner);
  return tellInvalidParams(server);
}

function serveCalls(server: Server, options: McpOptions & { projectOf: ProjectOf }, era: Era): void {
  const { connection, projectOf } = options;
  const onlyTasks = new Set(options.host.list().flatMap(({ name, execution }) => (execution ? [name] : [])));
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const detach = era === 'modern' && knowsTasks(context) ? 'task' : 'job';
    if (detach !== 'task' && onlyTasks.has(params.name)) requireTasks(context);
    const { host, principal } = await projectOf(context);
    const request = {
      name: params.name,
      arguments: params.arguments ?? {},
      principal: { ...principal, client: clientOf(server, context) },
      onProgress: progressOf(context),
      detach,
      answers: canBeAsked(server, context) ? answersIn(context.mcpReq.inputResponses) : undefined,
      rateLimited: true,
      ...callerTrace(context.mcpReq._meta, context.http?.req?.headers),
    } as const;
    const reply = await hostCall(host, request, context, connection);
    if (reply.questions) return inputRequired(reply.questions);
    return reply.job && detach === 'task' ? createdTask(reply.job) : resultOf(reply);
  });
}

async function hostCall(
  host: ToolHost,
  request: ToolRequest,
  { mcpReq: { id, signal, _meta } }: ServerContext,
  connection: Connection | undefined,
): Promise<ToolReply> {
  if (!connection) return host.call(request, signal);
  const key = _meta?.idempotencyKey;
  const session = { gone: connection.gone, ...(typeof key === 'string' && { idempotencyKey: key }) };
  const reply = await host.call({ ...request, session }, cancelOf(signal, connection));
  if (reply.delivered) connection.onAnswered(id, signal, reply.delivered);
  return reply;
}

/** 2026 clients say who they are with each request, 2025 ones when they connect. */
function clientOf(server: Server, { mcpReq }: ServerContext): string | undefined {
  const envelope: unknown = mcpReq.envelope;
  const told = isRecord(envelope) ? envelope[CLIENT_INFO_META_KEY] : undefined;
  return isRecord(told) && typeof told.name === 'string' ? told.name : server.getClientVersion()?.name;
}

function progressOf({ mcpReq }: ServerContext) {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return ({ progress, message }: { progress: number; message: string }) => {
    // A client that is gone needs no progress; the call's own signal ends the work.
    mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message } }).catch(() => {});
  };
}
