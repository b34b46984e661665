import { join } from 'node:path';
import type { Clock, ExchangeReader, LogExchange, Random } from '../core/ports.ts';
import { createBus, type Sink } from './event-bus.ts';
import { createActivity, createAudit, createBreadcrumbs } from './file-logs.ts';
import { createLiveCallsSink, createWarningSink } from './live-calls.ts';
import { createMetrics } from './metrics.ts';
import { createMask, logScope, maskKey } from './secret-masking.ts';
import { createStderr, type LogLevel } from './stderr-log.ts';
import type { TraceSettings } from './tracing.ts';

export interface TelemetryOptions {
  /** Where logs and the mask's key are kept; absent: nothing is written to disk. */
  home?: string;
  /** The operator's own keys: masked wherever they turn up. */
  secrets: readonly string[];
  logLevel: LogLevel;
  clock: Clock;
  random: Random;
  writeError(line: string): void;
  /** Keeps what models are asked and answer; absent: nobody wants to know. It needs a `home`. */
  exchangeLog?: { maxBytes: number };
  /** Where traces go; absent: nowhere. */
  traces?: TraceSettings;
  version: string;
}

export type Telemetry = Awaited<ReturnType<typeof createTelemetry>>;

/** Observers and masking, ready to use; files are opened with the first event, and what is not wanted is not loaded. */
export async function createTelemetry(options: TelemetryOptions) {
  const { home, secrets: keys, logLevel, clock, random, writeError, exchangeLog, version } = options;
  // Logs need no placeholders that outlast the process, and a warning at the start must not write a key to disk.
  const passing = maskKey(undefined, random);
  let lasting: string | undefined;
  const secret = (scope: string): string => {
    if (scope === logScope) return passing;
    lasting ??= maskKey(home, random);
    return lasting;
  };
  const masks = createMask({ secret, keys });
  const onSinkError = (sink: string, error: unknown): void =>
    writeError(`polylogue: the sink ${sink} failed: ${masks.maskSync(String(error), logScope).text}\n`);
  const stderr = createStderr({ write: writeError, level: logLevel });
  const live = createLiveCallsSink();
  const warned = createWarningSink();
  const metrics = createMetrics();
  const folder = home === undefined ? undefined : join(home, 'logs');
  const logged = exchangeLog && folder !== undefined && { folder, ...exchangeLog };
  const kept = { clock, secrets: masks, onError: onSinkError };
  const log = logged ? (await import('./exchange-log.ts')).createExchangeLog({ ...logged, ...kept }) : undefined;
  const parts = { mask: masks.mask, version, onError: (error: unknown) => onSinkError('traces', error) };
  const traces = options.traces && (await import('./tracing.ts')).openTraces(options.traces, parts);
  const written = folder === undefined ? [] : fileSinks(folder, clock).map(ofCalls);
  const bus = createBus({
    clock,
    mask: masks.maskDeep,
    sinks: [stderr, live, warned, metrics, ...written, ...(traces ? [traces] : [])],
    onSinkError,
  });
  const exchangeSinks = [log?.log, traces?.logExchange].filter(log => log !== undefined);
  return {
    emit: bus.emit,
    mask: masks.mask,
    /** Masks what observers are told. */
    maskDeep: masks.maskDeep,
    /** Secrets that came up since the start, all of them each time: masked from now on, wherever they turn up. */
    know: masks.know,
    /** Absent: nobody wants to know what is said to models. */
    ...(exchangeSinks.length > 0 && { logExchange: toAll(exchangeSinks, onSinkError) }),
    /** What was said to models, by whichever process on this home. Absent: nothing is kept on disk. */
    ...(folder !== undefined && { exchanges: lazyReader(folder, log?.flush) }),
    /** What the calls of this process did lately. */
    recent: live.recent,
    calls: live.calls,
    /** What is set up badly, as far as it has turned up. */
    warned: warned.warned,
    /** What this process did since it began, in Prometheus' text format 0.0.4. */
    metrics: metrics.render,
    /** A number that somebody else knows, to be asked for whenever the metrics are shown. */
    gauge: metrics.gauge,
    async close(): Promise<void> {
      await Promise.all([bus.close(), log?.close()]);
    },
  };
}

/** A file is looked at and written for each batch of lines: a call's events go in a batch or two. */
const gatherMs = 100;

/** What is written to disk. Who did what is there in the next turn of the event loop, also where the process is killed then. */
const fileSinks = (folder: string, clock: Clock): Sink[] => [
  { ...createBreadcrumbs({ folder }), gatherMs },
  { ...createActivity({ folder }, clock), gatherMs },
  createAudit({ folder }, clock),
];

/** Loaded with its first use: few processes ever read what was said. What this process was told of is in the files first. */
function lazyReader(folder: string, flush: () => Promise<void> = async () => undefined): ExchangeReader {
  const reader = async () => {
    await flush();
    return (await import('./exchange-log.ts')).createExchangeReader(folder);
  };
  return {
    list: async filter => (await reader()).list(filter),
    find: async exchange => (await reader()).find(exchange),
    clear: async () => (await reader()).clear(),
  };
}

function toAll(sinks: readonly LogExchange[], onSinkError: (name: string, error: unknown) => void): LogExchange {
  return note => {
    try {
      for (const log of sinks) log(note);
    } catch (error) {
      // What can't be noted must not stop what is noted.
      onSinkError('comms', error);
    }
  };
}

/** A sink for what belongs to a call: starting up leaves no trace on disk. */
const ofCalls = (sink: Sink): Sink => ({
  ...sink,
  write(observations) {
    const own = observations.filter(({ event }) => 'reqId' in event && event.reqId !== undefined);
    return own.length > 0 && sink.write(own);
  },
});
