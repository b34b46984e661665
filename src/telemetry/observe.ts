import { join } from 'node:path';
import type { Clock, Emit, Mask, Random, Recent, WatchedCalls } from '../domain/ports.ts';
import { createBus } from './bus.ts';
import { maskKey } from './mask-key.ts';
import { createMask } from './redact.ts';
import type { Sink } from './sink.ts';
import { createActivity } from './sinks/activity.ts';
import { createAudit } from './sinks/audit.ts';
import { createBreadcrumbs } from './sinks/breadcrumbs.ts';
import { createLiveCalls } from './sinks/live-calls.ts';
import { createMetrics } from './sinks/metrics.ts';
import { createRecent } from './sinks/recent.ts';
import { createStderr, type LogLevel } from './sinks/stderr.ts';
import { createWarned, type Warned } from './sinks/warned.ts';

export interface TelemetryOptions {
  /** Where logs and the mask's key are kept; absent: nothing is written to disk. */
  home?: string;
  /** The operator's own keys: masked wherever they turn up. */
  secrets: readonly string[];
  logLevel: LogLevel;
  clock: Clock;
  random: Random;
  writeError(line: string): void;
}

export interface Telemetry {
  emit: Emit;
  mask: Mask;
  /** What the calls of this process did lately. */
  recent: Recent;
  /** Its calls, one by one. */
  calls: WatchedCalls;
  /** What is set up badly, as far as it has turned up. */
  warned: readonly Warned[];
  /** What this process did since it began, in Prometheus' text format 0.0.4. */
  metrics(): string;
  close(): Promise<void>;
}

/** Observers and masking, ready to use; files are opened with the first event. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { home, secrets, logLevel, clock, random, writeError } = options;
  let masking: ReturnType<typeof createMask> | undefined;
  const lasting = () => {
    masking ??= createMask({ secret: maskKey(home, random), keys: [...secrets] });
    return masking;
  };
  // Logs need no placeholders that outlast the process, and a warning at the start must not write a key to disk.
  const passing = createMask({ secret: maskKey(undefined, random), keys: [...secrets] });
  const stderr = createStderr({ write: writeError, level: logLevel });
  const recent = createRecent();
  const live = createLiveCalls();
  const warned = createWarned();
  const metrics = createMetrics();
  const bus = createBus({
    clock,
    mask: event => passing.maskDeep(event),
    sinks: [
      stderr,
      recent,
      live,
      warned,
      metrics,
      ...(home === undefined ? [] : kept.map(create => ofCalls(create({ folder: logsOf(home) })))),
    ],
    onSinkError: (sink, error) => writeError(`polylogue: the sink ${sink} failed: ${String(error)}\n`),
  });
  return {
    emit: bus.emit,
    mask: (text, scope) => lasting().mask(text, scope),
    recent: recent.recent,
    calls: live.calls,
    warned: warned.warned,
    metrics: metrics.render,
    close: () => bus.close(),
  };
}

/** What is written to disk. */
const kept = [createBreadcrumbs, createActivity, createAudit] as const;

const logsOf = (home: string) => join(home, 'logs');

/** A sink for what belongs to a call: starting up leaves no trace on disk. */
function ofCalls(sink: Sink): Sink {
  return {
    ...sink,
    write(observations) {
      const own = observations.filter(({ event }) => 'reqId' in event && event.reqId !== undefined);
      return own.length > 0 ? sink.write(own) : undefined;
    },
  };
}
