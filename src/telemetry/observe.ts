import { join } from 'node:path';
import type { Clock, Emit, Mask, Random } from '../domain/ports.ts';
import { createBus } from './bus.ts';
import { maskKey } from './mask-key.ts';
import { createMask } from './redact.ts';
import { createBreadcrumbs } from './sinks/breadcrumbs.ts';
import { createStderr, type LogLevel } from './sinks/stderr.ts';

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
  close(): Promise<void>;
}

/** Observers and masking, ready to use; files are opened with the first event. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { home, secrets, logLevel, clock, random, writeError } = options;
  let masking: ReturnType<typeof createMask> | undefined;
  const masker = () => {
    masking ??= createMask({ secret: maskKey(home, random), keys: [...secrets] });
    return masking;
  };
  const stderr = createStderr({ write: writeError, level: logLevel });
  const bus = createBus({
    clock,
    mask: event => masker().maskDeep(event),
    sinks: home === undefined ? [stderr] : [stderr, createBreadcrumbs({ folder: join(home, 'logs') })],
    onSinkError: (sink, error) => writeError(`polylogue: the sink ${sink} failed: ${String(error)}\n`),
  });
  return { emit: bus.emit, mask: (text, scope) => masker().mask(text, scope), close: () => bus.close() };
}
