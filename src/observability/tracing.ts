import type { Attributes } from '@opentelemetry/api';
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
import { isRecord, textIn } from '../core/json.ts';
import type { ExchangeNote, LogExchange, Mask } from '../core/ports.ts';
import { safeCut } from '../core/text.ts';
import { type Attempt, createCallSpans, finishReason } from './call-spans.ts';
import { forgetOver, type Sink } from './event-bus.ts';

/** Calls whose texts wait for the end of their attempts; the oldest go first. */
const maxCalls = 500;

/** Characters of one text in a span: collectors refuse spans of megabytes. */
const maxTextLength = 16_384;

export function createSpanContent(mask: Mask) {
  const waiting = new Map<string, ExchangeNote[]>();

  /** Takes the notes of an attempt out of what waits; several panelists may be the same model, and then come in turn. */
  const take = ({ reqId, provider, model, attempt }: Attempt): ExchangeNote[] => {
    const notes = waiting.get(reqId) ?? [];
    const first = notes.find(
      ({ payload, ...note }) =>
        note.provider === provider && note.model === model && isRecord(payload) && payload.attempt === attempt,
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
    const messages = isRecord(payload) && Array.isArray(payload.messages) ? payload.messages.filter(isRecord) : [];
    const shown = await Promise.all(
      messages.map(async ({ role, parts }) => ({ role, parts: await Promise.all(textsOf(parts).map(part)) })),
    );
    return { 'gen_ai.input.messages': JSON.stringify(shown) };
  };

  const outputOf = async (payload: object): Promise<Attributes> => {
    const { text, finish } = isRecord(payload) ? payload : {};
    const reason = isRecord(finish) ? finishReason(textIn(finish.kind)) : 'error';
    const shown = [{ role: 'assistant', parts: [await part(textIn(text))], finish_reason: reason }];
    return { 'gen_ai.output.messages': JSON.stringify(shown) };
  };

  return {
    /** Takes what is said, unmasked, until its attempt is over. */
    logExchange(note: ExchangeNote): void {
      const notes = waiting.get(note.reqId) ?? [];
      notes.push(note);
      waiting.set(note.reqId, notes);
      forgetOver(waiting, maxCalls);
    },
    /** The texts of an attempt, masked, as OpenTelemetry has messages. */
    async of(attempt: Attempt): Promise<Attributes> {
      const notes = take(attempt);
      const all = await Promise.all(
        notes.map(({ direction, payload }) => (direction === 'out' ? inputOf(payload) : outputOf(payload))),
      );
      return Object.assign({}, ...all);
    },
    forget: (reqId: string) => void waiting.delete(reqId),
  };
}

function textsOf(parts: unknown): string[] {
  return Array.isArray(parts)
    ? parts.filter(isRecord).flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
    : [];
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

export interface TraceParts {
  mask: Mask;
  version: string;
  /** Hears of an export that failed, once until one works again. */
  onError(error: unknown): void;
}

export interface Traces extends Sink {
  /** Given where spans hold texts. */
  logExchange?: LogExchange;
}

/** Long enough to send several spans at once; what waits when the process ends is sent then. */
const betweenExportsMs = 2_000;

/** A process that ends waits no longer for a collector that is not there. */
const exportMs = 3_000;

/** Loads OpenTelemetry. Nothing global is registered: a program that uses this one as a library keeps its own traces. */
export function openTraces(settings: TraceSettings, { mask, version, onError }: TraceParts): Traces {
  const { url, headers, content: isWanted } = settings;
  const exporter = reportingErrors(
    new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: exportMs }),
    onError,
  );
  const ratio = new TraceIdRatioBasedSampler(settings.sampleRatio);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ ...settings.resource, 'service.version': version }),
    sampler: settings.asCallers ? new ParentBasedSampler({ root: ratio }) : ratio,
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: betweenExportsMs })],
  });
  const content = isWanted ? createSpanContent(mask) : undefined;
  const tracer = provider.getTracer('polylogue', version);
  return {
    name: 'traces',
    ...createCallSpans({ tracer, ...(content && { contentOf: content.of, onEnd: content.forget }) }),
    async close() {
      // What could not be sent was told already.
      await provider.shutdown().catch(() => undefined);
    },
    ...(content && { logExchange: content.logExchange }),
  };
}

/** The SDK keeps failures to itself; an operator whose traces never arrive has to learn why. */
function reportingErrors(exporter: SpanExporter, onError: TraceParts['onError']): SpanExporter {
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
