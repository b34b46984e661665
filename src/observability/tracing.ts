import type { Attributes, Context, Span, SpanContext, Tracer } from '@opentelemetry/api';
import { createTraceState, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { remember } from '../core/concurrency.ts';
import type { AppEvent } from '../core/events.ts';
import { isRecord, recordIn, recordsIn, textIn, textsIn } from '../core/json.ts';
import type { ExchangeNote, LogExchange, Mask, RecentEvent } from '../core/ports.ts';
import { safeCut } from '../core/text.ts';
import type { CallerTrace } from '../core/tool-host.ts';
import { createOpenCalls, type OpenCall, type Sink } from './event-bus.ts';

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

type Attempt = Extract<AppEvent, { type: 'model.attempt' }>;

interface SpanParts {
  tracer: Tracer;
  /** What attempts asked and answered; undefined: spans hold none of it. */
  content: ReturnType<typeof createSpanContent> | undefined;
}

interface Notes {
  /** Absent: the call began before this sink. */
  span?: Span;
}

/** A span a call and one for each attempt at a model, as OpenTelemetry has them for MCP and AI; made of events, which know no spans. */
async function recordCall(parts: SpanParts, { at, event }: RecentEvent, call: OpenCall<Notes>): Promise<void> {
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
  }
}

function startCall(tracer: Tracer, startTime: number, call: OpenCall<Notes>, given: CallerTrace | undefined): Span {
  const { tool, reqId, owner, client } = call;
  const attributes = {
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool,
    'polylogue.req_id': reqId,
    'polylogue.owner': owner,
    'polylogue.client': client,
  };
  // What it is a part of, and what it is linked to.
  const parent = given && spanOf(given.parent, given.state);
  const link = given?.link === undefined ? undefined : spanOf(given.link);
  const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
  const links = link ? [{ context: link }] : [];
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

async function recordAttempt(parts: SpanParts, at: number, event: Attempt, call: Span | undefined): Promise<void> {
  const failure = event.class ?? event.outcome;
  if (event.outcome === 'skipped') {
    call?.addEvent('model.skipped', { ...vendorOf(event), 'error.type': failure }, at);
    return;
  }
  const context: Context = call ? trace.setSpan(ROOT_CONTEXT, call) : ROOT_CONTEXT;
  // What is undefined is left out by the SDK.
  const attributes = {
    'gen_ai.operation.name': 'chat',
    ...vendorOf(event),
    // All answers are read as they are written.
    'gen_ai.request.stream': true,
    'gen_ai.conversation.id': event.thread,
    ...(event.finish !== undefined && { 'gen_ai.response.finish_reasons': [finishReason(event.finish)] }),
    'http.response.status_code': event.status,
    'gen_ai.usage.input_tokens': event.usage?.input,
    'gen_ai.usage.output_tokens': event.usage?.output,
    'gen_ai.usage.reasoning.output_tokens': event.usage?.reasoning,
    'gen_ai.usage.cache_read.input_tokens': event.usage?.cacheRead,
    'gen_ai.usage.cache_creation.input_tokens': event.usage?.cacheWrite,
    'polylogue.cost_usd': event.costUsd,
    'polylogue.attempt': event.attempt,
    'polylogue.outcome': event.outcome,
    ...(await parts.content?.of(event)),
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
const finishReason = (kind: string): string => (kind === 'tool_calls' ? 'tool_call' : kind);

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

/** Calls whose texts wait for the end of their attempts; the oldest go first. */
const maxCalls = 500;

/** Characters of one text in a span: collectors refuse spans of megabytes. */
const maxTextLength = 16_384;

function createSpanContent(mask: Mask) {
  const waiting = new Map<string, ExchangeNote[]>();

  /** Takes the notes of an attempt out of what waits; several panelists may be the same model, and then come in turn. */
  const take = ({ reqId, provider, model, attempt }: Attempt): ExchangeNote[] => {
    const notes = waiting.get(reqId) ?? [];
    const first = notes.find(
      note => note.provider === provider && note.model === model && recordIn(note.payload).attempt === attempt,
    );
    const taken = first ? notes.filter(({ exchange }) => exchange === first.exchange) : [];
    waiting.set(
      reqId,
      notes.filter(note => !taken.includes(note)),
    );
    return taken;
  };

  const part = async (text: string) => ({
    type: 'text',
    content: safeCut((await mask(text, 'log')).text, maxTextLength),
  });

  const inputOf = async (payload: object): Promise<Attributes> => {
    const shown = recordsIn(recordIn(payload).messages).map(async ({ role, parts }) => {
      const texts = textsIn(recordsIn(parts).map(({ text }) => text));
      return { role, parts: await Promise.all(texts.map(part)) };
    });
    return { 'gen_ai.input.messages': JSON.stringify(await Promise.all(shown)) };
  };

  const outputOf = async (payload: object): Promise<Attributes> => {
    const { text, finish } = recordIn(payload);
    const reason = isRecord(finish) ? finishReason(textIn(finish.kind)) : 'error';
    const shown = [{ role: 'assistant', parts: [await part(textIn(text))], finish_reason: reason }];
    return { 'gen_ai.output.messages': JSON.stringify(shown) };
  };

  return {
    /** Takes what is said, unmasked, until its attempt is over. */
    logExchange(note: ExchangeNote): void {
      const notes = waiting.get(note.reqId) ?? [];
      notes.push(note);
      remember(waiting, note.reqId, notes, maxCalls);
    },
    /** The texts of an attempt, masked, as OpenTelemetry has messages. */
    async of(attempt: Attempt): Promise<Attributes> {
      const told = take(attempt).map(({ direction, payload }) =>
        direction === 'out' ? inputOf(payload) : outputOf(payload),
      );
      return Object.assign({}, ...(await Promise.all(told)));
    },
    forget: (reqId: string) => void waiting.delete(reqId),
  };
}

export interface TraceSettings {
  /** The whole address of the collector, such as `http://localhost:4318/v1/traces`. */
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Of this process, `service.name` among them. */
  resource: Readonly<Record<string, string>>;
  /** From 0 to 1: of the calls that are part of no caller's trace, or of all where callers have no say. */
  sampleRatio: number;
  /** A call that is part of a caller's trace is sent where that is, and else not. */
  asCallers: boolean;
  /** Spans hold the texts of prompts and answers, masked. */
  content: boolean;
}

/** Hears of an export that failed, once until one works again. */
type OnError = (error: unknown) => void;

/** Long enough to send several spans at once; what waits when the process ends is sent then. */
const betweenExportsMs = 2_000;

/** A process that ends waits no longer for a collector that is not there. */
const exportMs = 3_000;

/** Loads OpenTelemetry, and registers nothing: a program may have traces of its own. `logExchange` is given where spans hold texts. */
export function openTraces(
  settings: TraceSettings,
  { mask, version, onError }: { mask: Mask; version: string; onError: OnError },
): Sink & { logExchange?: LogExchange } {
  const { url, headers, content: isWanted } = settings;
  const collector = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: exportMs });
  const exporter = reportingErrors(collector, onError);
  const ratio = new TraceIdRatioBasedSampler(settings.sampleRatio);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ ...settings.resource, 'service.version': version }),
    sampler: settings.asCallers ? new ParentBasedSampler({ root: ratio }) : ratio,
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: betweenExportsMs })],
  });
  const content = isWanted ? createSpanContent(mask) : undefined;
  const parts: SpanParts = { tracer: provider.getTracer('polylogue', version), content };
  const calls = createOpenCalls<Notes>(() => ({}));
  return {
    name: 'traces',
    async write(observations) {
      for (const observation of observations) {
        const call = calls.of(observation);
        if (call) await recordCall(parts, observation, call);
        if (observation.event.type === 'call.end') content?.forget(observation.event.reqId);
      }
    },
    async close() {
      // What could not be sent was told already.
      await provider.shutdown().catch(() => undefined);
    },
    ...(content && { logExchange: content.logExchange }),
  };
}

/** The SDK keeps failures to itself; an operator whose traces never arrive has to learn why. */
function reportingErrors(exporter: SpanExporter, onError: OnError): SpanExporter {
  let failing = false;
  return {
    export(spans: ReadableSpan[], done) {
      exporter.export(spans, result => {
        const failed = result.code !== 0;
        if (failed && !failing) onError(result.error ?? new Error('the collector took no spans'));
        failing = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}
