import { z } from 'zod';
import { isRecord, textIn } from '../../core/json.ts';
import type { ToolReply } from '../../core/tool-host.ts';

/** Times and limits of the frame protocol. */
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

export type HelloFrame = Extract<ClientFrame, { op: 'hello' }>;

export const ops: ReadonlySet<string> = new Set(clientFrame.options.map(({ shape }) => shape.op.value));

export const frameError = z.strictObject({
  code: z.enum([
    'TOOL_NOT_FOUND',
    'INVALID_REQUEST',
    'OVER_CAPACITY',
    'DUPLICATE',
    'TIMEOUT',
    'CANCELLED',
    'PROVIDER_ERROR',
    'EXEC_ERROR',
  ]),
  /** Finer than the code: one word a program can switch on. */
  error_class: z.string(),
  message: z.string(),
  /** Null where the error is about no tool. */
  tool: z.string().nullable(),
  /** The error as other endpoints write it, and at least `next`: what to do now. */
  detail: z.looseObject({ next: z.string().nullish() }),
  /** Seconds. */
  retry_after: z.number().optional(),
});

export type FrameError = z.output<typeof frameError>;

/** Seconds since the epoch. */
const t = z.number();

/** What the server sends. */
export const serverFrame = z.discriminatedUnion('op', [
  z.strictObject({
    op: z.literal('hello_ack'),
    ok: z.boolean(),
    session_id: z.string().optional(),
    /** The session was there already, with what it has kept. */
    resumed: z.boolean().optional(),
    error: z.enum(['invalid_hello', 'missing_hello', 'unauthorized', 'over_capacity']).optional(),
    message: z.string().optional(),
    retry_after_s: z.number().optional(),
  }),
  z.strictObject({
    op: z.literal('list_tools_res'),
    request_id: maybeRequestId,
    tools: z.array(
      z.strictObject({ name: z.string(), description: z.string(), inputSchema: z.record(z.string(), z.unknown()) }),
    ),
  }),
  z.strictObject({
    op: z.literal('call_tool_ack'),
    request_id: requestId,
    accepted: z.literal(true),
    /** Seconds from now until the call is ended with TIMEOUT. */
    timeout: z.number(),
    name: z.string(),
  }),
  z.strictObject({
    op: z.literal('progress'),
    request_id: requestId,
    name: z.string(),
    t,
    note: z.string().optional(),
  }),
  z.strictObject({ op: z.literal('stream_chunk'), request_id: requestId, chunk: z.string(), t }),
  z.strictObject({ op: z.literal('stream_complete'), request_id: requestId, t }),
  z.strictObject({
    op: z.literal('call_tool_res'),
    request_id: requestId,
    outputs: z.array(z.strictObject({ type: z.literal('text'), text: z.string() })),
    /** All outputs as one text; left out when EXAI_WS_COMPAT_TEXT is off. */
    text: z.string().optional(),
    error: frameError.optional(),
    metadata: z
      .strictObject({
        latency_metrics: z.strictObject({
          /** Milliseconds, as all of these, from the request to its result. */
          latency_ms: z.number(),
          /** Of it, waiting for a place in this server, and in front of the provider. */
          global_sem_wait_ms: z.number(),
          provider_sem_wait_ms: z.number().optional(),
          processing_ms: z.number(),
          provider_name: z.string().optional(),
        }),
      })
      .optional(),
    /** The result of an earlier request, which this one is once more. */
    from_cache: z.literal(true).optional(),
    /** The result of a call that ran already for this other request. */
    from_inflight: requestId.optional(),
  }),
  z.strictObject({ op: z.literal('cancelled'), request_id: requestId, running: z.boolean(), t }),
  z.strictObject({ op: z.literal('pong'), request_id: maybeRequestId, t }),
  z.strictObject({
    op: z.literal('health_res'),
    request_id: maybeRequestId,
    ok: z.literal(true),
    health: z.strictObject({
      t,
      /** Of this server, with a client or waiting for one. */
      sessions: z.number(),
      /** WebSockets that are open. */
      connections: z.number(),
      /** Calls that may run at the same time, that do, and that wait for their turn. */
      global_capacity: z.number(),
      global_inflight: z.number(),
      global_waiting: z.number(),
      /** No new calls are taken. */
      draining: z.boolean(),
    }),
  }),
  z.strictObject({
    op: z.literal('rotate_token_res'),
    request_id: maybeRequestId,
    ok: z.boolean(),
    error: z.enum(['missing_params', 'unauthorized', 'invalid_token']).optional(),
    message: z.string().optional(),
    retry_after_s: z.number().optional(),
  }),
  z.strictObject({
    op: z.literal('error'),
    request_id: maybeRequestId,
    message: z.string(),
    error: frameError,
  }),
]);

export type ServerFrame = z.output<typeof serverFrame>;

export type ResultFrame = Extract<ServerFrame, { op: 'call_tool_res' }>;

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

/** A failed reply as this protocol names it. */
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

export function timedOut(tool: string, seconds: number): FrameError {
  const message = `The call took longer than ${seconds} s and was ended.`;
  const next = 'Ask for less at once, or send "timeout" (seconds) with the call.';
  return ownError({ code: 'TIMEOUT', error_class: 'ceiling', message, tool }, next);
}

export function cancelled(tool: string): FrameError {
  const next = 'Send the call again when it is wanted after all.';
  return ownError({ code: 'CANCELLED', error_class: 'cancelled', message: 'The call was cancelled.', tool }, next);
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
  const next = 'Correct the message and send it again; docs/frame-protocol.md has an example of each.';
  const error = ownError({ code: 'INVALID_REQUEST', error_class: kind, message, tool }, next);
  if (id && isCall)
    return { op: 'call_tool_res', request_id: id, outputs: [{ type: 'text', text: '' }], text: '', error };
  return { op: 'error', ...(id && { request_id: id }), message, error };
}

/** What is wrong with a message, in the schema's words; none of it is quoted. */
export function issueIn(error: z.ZodError | undefined): string {
  const [issue] = error?.issues ?? [];
  return issue ? `${issue.path.join('.') || 'the message'}: ${issue.message}` : 'This is no message of the protocol.';
}
