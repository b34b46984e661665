import type { Clock, Random } from '../core/ports.ts';
import type { Telemetry } from '../observability/observability.ts';
import { placeOf, type WiredPlace } from '../wire/wire-extensions.ts';
import { rootsOf } from '../wire/wire-roots.ts';
import { wireTelemetry } from '../wire/wire-telemetry.ts';
import type { Roots } from '../workspace/roots.ts';
import { type WiredOffer, wireOffer } from './compose-catalog.ts';
import type { Extensions } from './extensions.ts';
import { type AppConfig, providerSetup } from './settings.ts';

/** What only the outermost layer may touch, handed down. */
export interface Surroundings {
  cwd: string;
  homeDir: string;
  platform: string;
  nodeVersion: string;
  clock: Clock;
  random: Random;
  /** The environment as programs that are started may see it. */
  programEnv: Readonly<Record<string, string | undefined>>;
  writeError(line: string): void;
  /** Tools, providers and stores from outside the package. */
  extensions?: Extensions;
}

/** What hosts ask for before the first call, and what tells of a setup that is wrong. The rest of the product is made from it. */
export interface Front {
  telemetry: Telemetry;
  /** What may be read, and why. */
  found: Roots;
  /** The project that this process serves; the working directory when no project was found. */
  root: string;
  /** Where threads live. */
  place: WiredPlace;
  /** To callers who may use all of it. */
  offered: WiredOffer;
}

/** Settings → what is there at once. Whatever a call alone needs is not loaded for it. */
export async function wireFront(config: AppConfig, around: Surroundings): Promise<Front> {
  // First of all: whatever writes would fail, or never end, in a data folder that can't be used.
  const place = placeOf(config, around.extensions);
  const telemetry = await wireTelemetry(config, around);
  const warn = (where: string, message: string) => telemetry.emit({ type: 'warning', where, message });
  for (const message of config.warnings) warn('configuration', message);
  const found = await rootsOf(config, around);
  if (found.roots.length === 0) warn('roots', `No file can be read unless the client names a project: ${found.reason}`);
  const { providers, tools: extraTools = [] } = around.extensions ?? {};
  const { configured } = providerSetup(config, providers);
  const offered = wireOffer(config.values.app, { configured, extraTools });
  for (const message of offered.offer.unknown) warn('tools', message);
  return { telemetry, found, root: found.roots[0] ?? around.cwd, place, offered };
}
