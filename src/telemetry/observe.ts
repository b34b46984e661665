import { join } from 'node:path';
import type { Clock, Emit, Mask, Random, Recent } from '../domain/ports.ts';
import { createBus } from './bus.ts';
import { maskKey } from './mask-key.ts';
import { createMask } from './redact.ts';
import type { Sink } from './sink.ts';
import { createBreadcrumbs } from './sinks/breadcrumbs.ts';
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
  /** What is set up badly, as far as it has turned up. */
  warned: readonly Warned[];
  close(): Promise<void>;
}

/** Observers and masking, ready to use; files are opened with the first event. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { home, secrets, logLevel, clock, random, writeError } = options;
  let masking: ReturnType<typeof createMask> | undefined;
  const kept = () => {
    masking ??= createMask({ secret: maskKey(home, random), keys: [...secrets] });
    return masking;
  };
  // Logs need no placeholders that outlast the process, and a warning at the start must not write a key to disk.
  const passing = createMask({ secret: maskKey(undefined, random), keys: [...secrets] });
  const stderr = createStderr({ write: writeError, level: logLevel });
  const recent = createRecent();
  const warned = createWarned();
  const inMemory = [stderr, recent, warned];
  const bus = createBus({
    clock,
    mask: event => passing.maskDeep(event),
    sinks: home === undefined ? inMemory : [...inMemory, ofCalls(createBreadcrumbs({ folder: join(home, 'logs') }))],
    onSinkError: (sink, error) => writeError(`polylogue: the sink ${sink} failed: ${String(error)}\n`),
  });
  return {
    emit: bus.emit,
    mask: (text, scope) => kept().mask(text, scope),
    recent: recent.recent,
    warned: warned.warned,
    close: () => bus.close(),
  };
}

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
