import type { AppConfig } from '../app/settings.ts';
import { storePlace, traceSettings } from '../config/derived-settings.ts';
import { homeProblem } from '../config/home.ts';
import type { Clock, Random } from '../core/ports.ts';
import { version } from '../core/version.ts';
import { createTelemetry, type Telemetry } from '../observability/observability.ts';

export interface TelemetrySurroundings {
  clock: Clock;
  random: Random;
  writeError(line: string): void;
}

const megabyte = 1024 * 1024;

/** Settings → who observes, and what is masked before they do. */
export async function wireTelemetry(config: AppConfig, around: TelemetrySurroundings): Promise<Telemetry> {
  const values = config.values.app;
  const place = storePlace(values, config.home);
  const { traces, wrong } = traceSettings(values);
  const headers = Object.values(traces?.headers ?? {});
  const telemetry = await createTelemetry({
    clock: around.clock,
    random: around.random,
    writeError: around.writeError,
    home: place.isPrivate ? undefined : config.home,
    // With a header such as `Bearer TOKEN` the token alone is a secret too.
    secrets: [...config.secrets, ...headers.flatMap(value => [value, ...value.split(' ')])],
    logLevel: values.logLevel,
    ...(values.commsLog && { comms: { maxBytes: values.commsLogMaxMb * megabyte } }),
    ...(traces && { traces }),
    version,
  });
  if (wrong !== undefined) telemetry.emit({ type: 'warning', where: 'traces', message: wrong });
  if (place.redis && place.isPrivate) {
    const message = `${config.home} can't be used: ${homeProblem(config.home)}. Logs, caches and indexes are not kept.`;
    telemetry.emit({ type: 'warning', where: 'data folder', message });
  }
  return telemetry;
}
