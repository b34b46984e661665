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
import type { Mask, TellComms } from '../core/ports.ts';
import type { Sink } from '../telemetry/sink.ts';
import { createSpanContent } from '../telemetry/traces/span-content.ts';
import { createCallSpans } from './call-spans.ts';

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
  tell?: TellComms;
}

/** Long enough to send several spans at once; what waits when the process ends is sent then. */
const betweenExportsMs = 2_000;
/** A process that ends waits no longer for a collector that is not there. */
const exportMs = 3_000;

/** Loads OpenTelemetry. Nothing global is registered: a program that uses this one as a library keeps its own traces. */
export function openTraces(settings: TraceSettings, { mask, version, onError }: TraceParts): Traces {
  const { url, headers, content: isWanted } = settings;
  const exporter = told(new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: exportMs }), onError);
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
    ...(content && { tell: content.tell }),
  };
}

/** The SDK keeps failures to itself; an operator whose traces never arrive has to learn why. */
function told(exporter: SpanExporter, onError: TraceParts['onError']): SpanExporter {
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
