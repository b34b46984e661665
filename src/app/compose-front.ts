import { exposurePolicy, storePlace, traceSettings } from '../config/derived-settings.ts';
import { homeProblem, type MachineEnvironment } from '../config/home.ts';
import type { Clock, Random } from '../core/ports.ts';
import { version } from '../core/version.ts';
import { offerOf, selectTools } from '../engine/offer.ts';
import { createTelemetry, type Telemetry } from '../observability/observability.ts';
import { markName } from '../providers/external-cli/contract.ts';
import { offered } from '../tools/offered.gen.ts';
import { findProgram } from '../workspace/programs.ts';
import { defaultRoots, type Roots } from '../workspace/roots.ts';
import type { Extensions } from './extensions.ts';
import { type AppConfig, providerSetup } from './settings.ts';
import { type OpenableStorePlace, placeOf } from './stores.ts';

/** The folders that may be read, as settings, host and working directory tell. */
export const rootsOf = ({ values: { app } }: AppConfig, { cwd, homeDir: home }: { cwd: string; homeDir: string }) =>
  defaultRoots({ explicit: app.roots ?? [], projectRoot: app.claudeProjectDir, cwd, home });

/** Whether roots that a client lists say more of his project than what is known: nobody else named it. */
export function followsClientRoots({ values: { app } }: AppConfig, { roots }: Roots): boolean {
  const { roots: set = [], claudeProjectDir } = app;
  return set.length === 0 && (claudeProjectDir === undefined || roots.length === 0);
}

const megabyte = 1024 * 1024;

/** Settings → who observes, and what is masked before they do. */
async function composeTelemetry(config: AppConfig, { clock, random, writeError }: ProcessEnvironment) {
  const values = config.values.app;
  const place = storePlace(values, config.home);
  const { traces, wrong } = traceSettings(values);
  const headers = Object.values(traces?.headers ?? {});
  const telemetry = await createTelemetry({
    clock,
    random,
    writeError,
    home: place.isPrivate ? undefined : config.home,
    // With a header such as `Bearer TOKEN` the token alone is a secret too.
    secrets: [...config.secrets, ...headers.flatMap(value => [value, ...value.split(' ')])],
    logLevel: values.logLevel,
    ...(values.commsLog && { exchangeLog: { maxBytes: values.commsLogMaxMb * megabyte } }),
    ...(traces && { traces }),
    version,
  });
  if (wrong !== undefined) telemetry.emit({ type: 'warning', where: 'traces', message: wrong });
  if (place.redis && place.isPrivate) {
    const message = `${config.home} cannot be used: ${homeProblem(config.home)}. Logs, caches and indexes are not kept.`;
    telemetry.emit({ type: 'warning', where: 'data directory', message });
  }
  return telemetry;
}

/** What only the outermost layer may touch, handed down. */
export interface ProcessEnvironment extends MachineEnvironment {
  nodeVersion: string;
  clock: Clock;
  random: Random;
  /** The environment as programs that are started may see it. */
  childEnv: Readonly<Record<string, string | undefined>>;
  /** Names the program that started this one among all that ever ran. */
  parentProcess: string;
  writeError(line: string): void;
  /** Files and directories that are readable besides the roots: the person at the terminal named them. */
  namedPaths?: readonly string[];
  /** Tools, providers and stores from outside the package. */
  extensions?: Extensions;
}

/** The tools whose programs are installed, where the operator chose no toolsets and no such program started this server. */
export async function toolsOfPrograms(
  { sourceOf }: Pick<AppConfig, 'sourceOf'>,
  { childEnv, platform, cwd }: Pick<ProcessEnvironment, 'childEnv' | 'platform' | 'cwd'>,
  roots: readonly string[],
): Promise<string[]> {
  if (sourceOf('app', 'toolsets') !== 'default' || childEnv[markName] !== undefined) return [];
  const search = { env: childEnv, platform, projects: [cwd, ...roots] };
  const found = offered.map(async ({ name, programs = [] }) => {
    const files = await Promise.all(programs.map(program => findProgram(program, search)));
    return files.some(file => file !== undefined) ? [name] : [];
  });
  return (await Promise.all(found)).flat();
}

/** What hosts ask for before the first call, and what tells of a setup that is wrong. The rest of the product is made from it. */
export interface Startup {
  telemetry: Telemetry;
  /** What may be read, and why. */
  found: Roots;
  /** The project that this process serves; the working directory when no project was found. */
  root: string;
  /** Where threads live. */
  place: OpenableStorePlace;
  /** What hosts are told of the tools; undefined where only the loaded product knows. */
  offer: ReturnType<typeof offerOf>;
  /** Tools that are offered beside those of the toolsets. */
  besides: readonly string[];
}

/** Settings → what is there at once. Whatever a call alone needs is not loaded for it. */
export async function composeStartup(config: AppConfig, environment: ProcessEnvironment): Promise<Startup> {
  // First of all: whatever writes would fail, or never end, in a data folder that can't be used.
  const place = placeOf(config, environment.extensions?.stores);
  const telemetry = await composeTelemetry(config, environment);
  const warn = (where: string, message: string) => telemetry.emit({ type: 'warning', where, message });
  for (const message of config.warnings) warn('configuration', message);
  const { roots, ...why } = await rootsOf(config, environment);
  const found = { ...why, roots: [...roots, ...(environment.namedPaths ?? [])] };
  if (found.roots.length === 0) warn('roots', `No file can be read unless the client names a project: ${found.reason}`);
  const { providers, tools: extraTools = [] } = environment.extensions ?? {};
  const { configured } = providerSetup(config, providers);
  const besides = await toolsOfPrograms(config, environment, found.roots);
  const policy = { ...exposurePolicy(config.values.app), configured, besides };
  for (const message of selectTools([...offered, ...extraTools], policy).unknown) warn('tools', message);
  const offer = extraTools.length > 0 ? undefined : offerOf(offered, policy);
  return { telemetry, found, root: roots[0] ?? environment.cwd, place, offer, besides };
}
