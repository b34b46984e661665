import { z } from 'zod';
import { isRecord, numberIn, recordIn, textIn } from '../../core/json.ts';
import type { ToolReply } from '../../core/tool-host.ts';

export interface FrameRules {
  /** Milliseconds that a client has for its first message. */
  helloMs: number;
  /** Milliseconds between two signs that a call goes on. */
  progressMs: number;
  /** Milliseconds that a result is kept, and a session without a connection. */
  resultMs: number;
  /** Characters of one session's results; the oldest go first. */
  maxCharacters: number;
  /** Characters of all messages of one session whose calls run or wait. */
  maxAsked: number;
  /** Adds all outputs as one `text`. */
  compatText: boolean;
  /** Tools whose identical calls are not joined. */
  notJoined: readonly string[];
}

/** A client's own name for one of its requests; unique within its session while it runs, and ten minutes longer. */
const requestId = z.string().min(1).max(128);

const maybeRequestId = requestId.optional();

/** What a client may send. Keys that are not named here are passed over. */
export const clientFrame = z.discriminatedUnion('op', [
  z.object({
    op: z.literal('hello'),
    token: z.string().nullish(),
    /** The session to go on with; another one is minted when this is no id. */
    session_id: z.string().nullish(),
    /** The project that relative paths start from, within what the token allows. */
    root: z.string().min(1).max(4_096).nullish(),
  }),
  z.object({ op: z.literal('list_tools'), request_id: maybeRequestId }),
  z.object({
    op: z.literal('call_tool'),
    name: z.string().min(1).max(200),
    arguments: z.record(z.string(), z.unknown()).nullish(),
    request_id: maybeRequestId,
    /** The answer is wanted as it is written. */
    stream: z.boolean().nullish(),
    /** Seconds; takes the place of the ceiling. */
    timeout: z.number().positive().max(86_400).nullish(),
  }),
  z.object({ op: z.literal('cancel'), request_id: requestId }),
  z.object({ op: z.literal('ping'), request_id: maybeRequestId }),
  z.object({ op: z.literal('health'), request_id: maybeRequestId }),
  z.object({
    op: z.literal('rotate_token'),
    old: z.string().optional(),
    new: z.string().optional(),
    request_id: maybeRequestId,
  }),
]);

export type ClientFrame = z.output<typeof clientFrame>;

export type CallFrame = Extract<ClientFrame, { op: 'call_tool' }>;

export const ops: ReadonlySet<string> = new Set(clientFrame.options.map(({ shape }) => shape.op.value));

export interface FrameError {
  code:
    | 'TOOL_NOT_FOUND'
    | 'INVALID_REQUEST'
    | 'OVER_CAPACITY'
    | 'DUPLICATE'
    | 'TIMEOUT'
    | 'CANCELLED'
    | 'PROVIDER_ERROR'
    | 'EXEC_ERROR';
  /** Finer than the code: one word a program can switch on. */
  error_class: string;
  message: string;
  /** Null where the error is about no tool. */
  tool: string | null;
  /** The error as other endpoints write it, and at least `next`: what to do now. */
  detail: { [field: string]: unknown; next?: string | null };
  /** Seconds. */
  retry_after?: number;
}

/** How something went that is no call of a tool. */
type Outcome<Problem> = { ok: boolean; error?: Problem; message?: string; retry_after_s?: number };

/** What the server sends; tests hold each message against a schema of the same shape. `t`: seconds since the epoch. */
export type ServerFrame =
  | ({
      op: 'hello_ack';
      session_id?: string;
      /** The session was there already, with what it has kept. */
      resumed?: boolean;
    } & Outcome<'invalid_hello' | 'missing_hello' | 'unauthorized' | 'over_capacity'>)
  | {
      op: 'list_tools_res';
      request_id?: string;
      tools: { name: string; description: string; inputSchema: Record<string, unknown> }[];
    }
  /** `timeout`: seconds from now until the call is ended with TIMEOUT. */
  | { op: 'call_tool_ack'; request_id: string; accepted: true; timeout: number; name: string }
  | { op: 'progress'; request_id: string; name: string; t: number; note?: string }
  | { op: 'stream_chunk'; request_id: string; chunk: string; t: number }
  | { op: 'stream_complete'; request_id: string; t: number }
  | {
      op: 'call_tool_res';
      request_id: string;
      outputs: { type: 'text'; text: string }[];
      /** All outputs as one text; left out when EXAI_WS_COMPAT_TEXT is off. */
      text?: string;
      error?: FrameError;
      /** Milliseconds from a request to its result, and of it, waiting for a place in this server, and in front of the provider. */
      metadata?: { latency_metrics: ReturnType<typeof latencyOf> };
      /** The result of an earlier request, which this one is once more. */
      from_cache?: true;
      /** The result of a call that ran already for this other request. */
      from_inflight?: string;
    }
  | { op: 'cancelled'; request_id: string; running: boolean; t: number }
  | { op: 'pong'; request_id?: string; t: number }
  /** The sessions, open WebSockets, and the calls that may run at once, that do, and that wait for their turn. */
  | {
      op: 'health_res';
      request_id?: string;
      ok: true;
      health: Record<'t' | 'sessions' | 'connections' | `global_${'capacity' | 'inflight' | 'waiting'}`, number> & {
        /** No new calls are taken. */
        draining: boolean;
      };
    }
  | ({ op: 'rotate_token_res'; request_id?: string } & Outcome<'missing_params' | 'unauthorized' | 'invalid_token'>)
  | { op: 'error'; request_id?: string; message: string; error: FrameError };

export type ResultFrame = Extract<ServerFrame, { op: 'call_tool_res' }>;

export function latencyOf(receivedAt: number, heldAt: number, endedAt: number, reply?: ToolReply) {
  const { provider_used: provider, queue_ms: queueMs } = recordIn(reply?.document.metadata);
  // A reply says so only where there was a wait.
  const queued = numberIn(queueMs);
  return {
    latency_ms: Math.round(endedAt - receivedAt),
    global_sem_wait_ms: Math.round(heldAt - receivedAt),
    processing_ms: Math.max(0, Math.round(endedAt - heldAt - queued)),
    ...(typeof provider === 'string' && { provider_sem_wait_ms: Math.round(queued), provider_name: provider }),
  };
}

/** The end of a call, with its text once more where old clients read it. */
export const resultFrame = (requestId: string, text: string, compatText: boolean): ResultFrame => {
  return { op: 'call_tool_res', request_id: requestId, outputs: [{ type: 'text', text }], ...(compatText && { text }) };
};

/** Why the server closes a connection of this protocol, beside the codes that every WebSocket has. */
export const closeCodes = { invalidHello: 4000, helloMissing: 4001, helloLate: 4002, unauthorized: 4003 } as const;

/** Our codes for what is wrong with the call itself. */
const invalid = new Set([
  'INVALID_INPUT_FORMAT',
  'MISSING_PARAMETER',
  'PROVIDER_NOT_FOUND',
  'MODEL_NOT_FOUND',
  'THREAD_NOT_FOUND',
  'THREAD_EXPIRED',
]);

export function errorOfReply({ document }: ToolReply, tool: string): FrameError {
  const details = isRecord(document.error) ? document.error : {};
  const retryAfter = details.retry_after_s;
  return {
    code: codeOf(textIn(details.code), textIn(details.class)),
    error_class: textIn(details.class) || 'unknown',
    message: textIn(details.message) || textIn(document.content) || 'The call failed.',
    tool,
    detail: { ...details, next: textIn(details.next) },
    ...(typeof retryAfter === 'number' && { retry_after: retryAfter }),
  };
}

function codeOf(code: string, kind: string): FrameError['code'] {
  if (code === 'TOOL_NOT_FOUND' || code === 'CANCELLED') return code;
  if (invalid.has(code)) return 'INVALID_REQUEST';
  // Too much at once, too often, or by a server that ends: the same call succeeds later.
  if (kind === 'shutting_down') return 'OVER_CAPACITY';
  if (code === 'LIMIT' && (kind === 'over_capacity' || kind === 'rate')) return 'OVER_CAPACITY';
  return code === 'API_ERROR' ? 'PROVIDER_ERROR' : 'EXEC_ERROR';
}

type OwnError = Pick<FrameError, 'code' | 'error_class' | 'message' | 'retry_after'> & { tool?: string | undefined };

/** An error that this endpoint itself has to report. */
export function ownError({ tool, ...error }: OwnError, next: string): FrameError {
  return { ...error, tool: tool || null, detail: { next } };
}

export interface RefusedText {
  class: string;
  message: string;
  id?: string;
  tool?: string | undefined;
  /** A call ends by it. */
  isCall?: boolean;
}

/** The answer to a message that is none of the protocol's. */
export function refusedFrame({ class: kind, message, id, tool, isCall }: RefusedText): ServerFrame {
  const next = 'Correct the message and resend it; docs/frame-protocol.md has an example of each.';
  const error = ownError({ code: 'INVALID_REQUEST', error_class: kind, message, tool }, next);
  if (id && isCall) return { ...resultFrame(id, '', true), error };
  return { op: 'error', ...(id && { request_id: id }), message, error };
}

/** What is wrong with a message, in the schema's words; none of it is quoted. */
export function issueIn(error: z.ZodError | undefined): string {
  const [issue] = error?.issues ?? [];
  return issue ? `${issue.path.join('.') || 'the message'}: ${issue.message}` : 'This is no message of the protocol.';
}
