import { z } from 'zod';
import type { ServerFrame } from '../../src/server/websocket/protocol.ts';

const requestId = z.string().min(1).max(128);

const maybeRequestId = requestId.optional();

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
  z.strictObject({ op: z.literal('error'), request_id: maybeRequestId, message: z.string(), error: frameError }),
]);

/** The schema and the type that the server is written against say the same. */
export const parseServerFrame: (frame: unknown) => ServerFrame = frame => serverFrame.parse(frame);
