import {
  type Attributes,
  type Context,
  createTraceState,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { AppEvent } from '../core/events.ts';
import type { CallerTrace } from '../core/tool-host.ts';
import type { Usage } from '../core/usage.ts';
import { createOpenCalls, type Observation, type OpenCall, type Sink } from './event-bus.ts';

/** What the span of a call is a part of, and what it is linked to. */
export function contextOf(given: CallerTrace | undefined): { context: Context; links: Link[] } {
  const parent = given && spanOf(given.parent, given.state);
  const link = given?.link === undefined ? undefined : spanOf(given.link);
  return {
    context: parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT,
    links: link ? [{ context: link }] : [],
  };
}

/** Undefined for what is no span: the mask may have made something else of it. */
function spanOf(text: string, state?: string): SpanContext | undefined {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return {
    traceId,
    spanId,
    // Of the flags, only whether it is recorded means something to us.
    traceFlags: Number.parseInt(flags, 16) & 1,
    isRemote: true,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  };
}

export type Attempt = Extract<AppEvent, { type: 'model.attempt' }>;

export interface CallSpansParts {
  tracer: Tracer;
  /** What an attempt asked and answered, as attributes; absent: spans hold none of it. */
  contentOf?(attempt: Attempt): Promise<Attributes>;
  /** A call is over: nothing more is asked about it. */
  onEnd?(reqId: string): void;
}

interface Notes {
  /** Absent: the call began before this sink. */
  span?: Span;
}

/**
 * A span a call, as MCP servers tell of calls of tools, and below it one for each attempt at a model, by OpenTelemetry's
 * conventions for generative AI. They are made of events, so that nobody below knows of spans.
 */
export function createCallSpans(parts: CallSpansParts): Omit<Sink, 'name'> {
  const calls = createOpenCalls<Notes>(() => ({}));
  return {
    async write(observations) {
      for (const observation of observations) {
        const call = calls.of(observation);
        if (call) await recordCall(parts, observation, call);
        if (observation.event.type === 'call.end') parts.onEnd?.(observation.event.reqId);
      }
    },
  };
}

async function recordCall(parts: CallSpansParts, { at, event }: Observation, call: OpenCall<Notes>): Promise<void> {
  const { notes } = call;
  switch (event.type) {
    case 'call.start':
      notes.span = startCall(parts.tracer, at, call, event.trace);
      return;
    case 'call.stage':
      notes.span?.addEvent(event.stage, {}, at);
      return;
    case 'breaker.change':
      notes.span?.addEvent('breaker.change', { ...vendorOf(event), 'polylogue.breaker.state': event.to }, at);
      return;
    case 'files.read':
      notes.span?.setAttribute('polylogue.files.sent', event.embedded.length);
      return;
    case 'model.attempt':
      await recordAttempt(parts, at, event, notes.span);
      return;
    case 'call.end':
      if (notes.span) endCall(notes.span, at, event);
      return;
    default:
      return;
  }
}

function startCall(
  tracer: Tracer,
  startTime: number,
  { tool, reqId, owner, client }: OpenCall<Notes>,
  trace: CallerTrace | undefined,
): Span {
  const attributes = {
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool,
    'polylogue.req_id': reqId,
    'polylogue.owner': owner,
    ...(client !== undefined && { 'polylogue.client': client }),
  };
  const { context, links } = contextOf(trace);
  return tracer.startSpan(`tools/call ${tool}`, { kind: SpanKind.SERVER, startTime, attributes, links }, context);
}

function endCall(span: Span, at: number, { status, code }: Extract<AppEvent, { type: 'call.end' }>): void {
  span.setAttribute('polylogue.status', status);
  if (code !== undefined) {
    // The conventions have one word for all calls of tools that answer with an error.
    fail(span, 'tool_error');
    span.setAttribute('polylogue.error.code', code);
  }
  span.end(at);
}

async function recordAttempt(parts: CallSpansParts, at: number, event: Attempt, call: Span | undefined): Promise<void> {
  const failure = event.class ?? event.outcome;
  if (event.outcome === 'skipped') {
    call?.addEvent('model.skipped', { ...vendorOf(event), 'error.type': failure }, at);
    return;
  }
  const context: Context = call ? trace.setSpan(ROOT_CONTEXT, call) : ROOT_CONTEXT;
  const attributes = {
    'gen_ai.operation.name': 'chat',
    ...vendorOf(event),
    // All answers are read as they are written.
    'gen_ai.request.stream': true,
    ...(event.thread !== undefined && { 'gen_ai.conversation.id': event.thread }),
    ...(event.finish !== undefined && { 'gen_ai.response.finish_reasons': [finishReason(event.finish)] }),
    ...(event.status !== undefined && { 'http.response.status_code': event.status }),
    ...(event.usage && tokensOf(event.usage)),
    ...(event.costUsd !== undefined && { 'polylogue.cost_usd': event.costUsd }),
    'polylogue.attempt': event.attempt,
    'polylogue.outcome': event.outcome,
    ...(await parts.contentOf?.(event)),
  };
  const startTime = at - event.elapsedMs;
  const span = parts.tracer.startSpan(`chat ${event.model}`, { kind: SpanKind.CLIENT, startTime, attributes }, context);
  if (event.outcome !== 'ok') fail(span, failure);
  span.end(at);
}

/** Without a text: reasons repeat what callers wrote. */
function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** OpenTelemetry's word for why a model ended, where it is not ours. */
export function finishReason(kind: string): string {
  return kind === 'tool_calls' ? 'tool_call' : kind;
}

/** OpenTelemetry's words for providers, where they are not ours. */
const providerNames: Readonly<Record<string, string | undefined>> = {
  google: 'gcp.gemini',
  azure: 'azure.ai.openai',
  xai: 'x_ai',
};

function vendorOf({ provider, model }: { provider: string; model?: string }): Attributes {
  const name = Object.hasOwn(providerNames, provider) ? providerNames[provider] : provider;
  return { 'gen_ai.provider.name': name, ...(model !== undefined && { 'gen_ai.request.model': model }) };
}

function tokensOf({ input, output, reasoning, cacheRead, cacheWrite }: Usage): Attributes {
  return {
    'gen_ai.usage.input_tokens': input,
    'gen_ai.usage.output_tokens': output,
    'gen_ai.usage.reasoning.output_tokens': reasoning,
    'gen_ai.usage.cache_read.input_tokens': cacheRead,
    'gen_ai.usage.cache_creation.input_tokens': cacheWrite,
  };
}
