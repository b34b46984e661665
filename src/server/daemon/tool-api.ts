import { isRecord, recordIn } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { ToolReply, ToolRequest } from '../../core/tool-host.ts';
import { refusalFor, refusalResponse } from '../access/caller.ts';
import { eventStream } from '../http/responses.ts';
import type { Exchange, GuardedRequest, RouteServices } from '../http/routes.ts';
import { callerTrace } from '../mcp/messages.ts';

/** `GET /api/tools` and `POST /api/tools/{name}`, for programs that speak no MCP. */
export const createToolApi =
  ({ admission, productOf, clock }: Pick<RouteServices, 'admission' | 'productOf' | 'clock'>) =>
  async ({ request, body, caller, root: declared }: GuardedRequest, tool: string | undefined): Promise<Exchange> => {
    const { host, root } = await productOf(caller, declared);
    if (tool === undefined) return { response: Response.json({ tools: host.list() }) };
    if (!isRecord(body)) return { response: refusalResponse(noObject) };
    const key = request.headers.get('idempotency-key') || null;
    const call: ToolRequest = {
      name: tool,
      arguments: body,
      principal: { owner: caller.owner, root, client: (request.headers.get('user-agent') ?? 'http').slice(0, 100) },
      rateLimited: true,
      ...callerTrace(undefined, request.headers),
      // Whoever names his call comes again for it when the answer does not arrive; else nobody would.
      ...(key !== null && { session: { gone: request.signal, idempotencyKey: key } }),
    };
    const signal = key === null ? request.signal : new AbortController().signal;
    const admitted = admission.before(host, caller.name);
    if (request.headers.get('accept')?.includes('text/event-stream'))
      return streamed(watch => admitted.call({ ...call, ...watch }, signal), clock);
    const reply = await admitted.call(call, signal);
    return { response: jsonOf(reply), onWritten: whole => whole && reply.delivered?.() };
  };

/** One event `progress` after the other, then one event `result` with the reply. */
function streamed(run: (watch: Pick<ToolRequest, 'onProgress'>) => Promise<ToolReply>, clock: Pick<Clock, 'after'>) {
  let reply: ToolReply | undefined;
  const response = eventStream(clock, async write => {
    const send = (event: string, data: unknown) => void write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    reply = await run({ onProgress: update => send('progress', update) });
    send('result', { is_error: reply.isError, reply: reply.document });
  });
  return { response, onWritten: (whole: boolean) => whole && reply?.delivered?.() };
}

const statuses: Readonly<Record<string, number>> = {
  INVALID_INPUT_FORMAT: 400,
  MISSING_PARAMETER: 400,
  TOOL_NOT_FOUND: 404,
  PROVIDER_NOT_FOUND: 404,
  MODEL_NOT_FOUND: 404,
  THREAD_NOT_FOUND: 404,
  THREAD_EXPIRED: 410,
  SECURITY: 403,
  LIMIT: 429,
  API_ERROR: 502,
  // No 5xx: who sends those again by himself would have it asked anew, and pay for it, where it was ended or got lost on its way.
  INTERRUPTED: 409,
  CANCELLED: 409,
};

/** Where the class says more than the code: what is too large stays so, however often it comes. */
const statusesOfClasses: Readonly<Record<string, number>> = {
  over_capacity: 503,
  shutting_down: 503,
  size: 413,
  files: 413,
  tokens: 413,
};

function jsonOf({ isError, document }: ToolReply): Response {
  const { code, class: kind, retry_after_s: wait } = recordIn(document.error);
  const ofClass = code === 'LIMIT' || code === 'INTERRUPTED' ? statusesOfClasses[String(kind)] : undefined;
  const status = isError ? (ofClass ?? statuses[String(code)] ?? 500) : 200;
  const headers: Record<string, string> = typeof wait === 'number' ? { 'Retry-After': String(Math.ceil(wait)) } : {};
  return Response.json(document, { status, headers });
}

const noObject = refusalFor(400, 'json', 'The body is no JSON object.', {
  next: 'Send the arguments of the tool as one JSON object.',
});
