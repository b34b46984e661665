import { loadConfig } from './config/load.ts';
import type { Clock, Random } from './domain/ports.ts';
import type { ToolHost } from './domain/request.ts';
import type { SpendRow } from './domain/usage.ts';
import type { Converse } from './engine/converse/converse.ts';
import { createJobs } from './engine/jobs/jobs.ts';
import type { CallExplanation, RouteQuestion } from './engine/routing/explain-call.ts';
import type { Extensions } from './extensions.ts';
import type { Roots } from './files/default-roots.ts';
import type { SearchIndexes } from './files/index/search-index.ts';
import { openStore } from './memory/open-store.ts';
import { openState } from './memory/shared-state/open-state.ts';
import type { Store } from './memory/store.ts';
import { createThreads } from './memory/threads.ts';
import { type OwnTransfer, openTransfer } from './memory/transfer/own-transfer.ts';
import { createTransfer } from './memory/transfer/transfer.ts';
import type { FoundDaemon } from './server/daemon/find-daemons.ts';
import type { Daemon } from './server/daemon/open-daemon.ts';
import { openStdio, type StdioDoor } from './server/stdio.ts';
import type { Telemetry } from './telemetry/observe.ts';
import { version } from './version.ts';
import { wireClis } from './wire/wire-clis.ts';
import type { DaemonSettings } from './wire/wire-daemon.ts';
import { maskFor } from './wire/wire-engine.ts';
import { loadAppConfig, placeOf } from './wire/wire-extensions.ts';
import { rootsOf, wireFiles } from './wire/wire-files.ts';
import { createHosts } from './wire/wire-hosts.ts';
import { type AppConfig, tables, type WiredTeam, wireModels } from './wire/wire-models.ts';
import { wireServices } from './wire/wire-services.ts';
import { type Observed, wireObserved, wireTelemetry } from './wire/wire-telemetry.ts';

export { openBridge } from './wire/wire-bridge.ts';
export { type AppConfig, type Extensions, loadAppConfig, loadConfig, tables, version };

export type DaemonOnFile = FoundDaemon;

/** The daemons that run on a data folder, as far as they told. */
export async function findDaemons(config: AppConfig, clock: Clock): Promise<FoundDaemon[]> {
  const wire = await import('./wire/wire-daemon.ts');
  return wire.findDaemons(config, clock);
}

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

export interface Product extends Observed {
  host: ToolHost;
  /** The project that this process serves; the working directory when no project was found. */
  root: string;
  /** What may be read, and why. */
  readable: Roots;
  /** The search index of a folder within the roots. */
  searchIndex: SearchIndexes['of'];
  team: Pick<
    WiredTeam,
    'namesOfNone' | 'providers' | 'ping' | 'balance' | 'refresh' | 'warnings' | 'health' | 'caches'
  >;
  /** What is set up badly, as far as it has turned up. */
  warned: Telemetry['warned'];
  /** Who would answer a call, and why. */
  explainRoute(question: RouteQuestion, signal: AbortSignal): Promise<CallExplanation>;
  /** What a server behind the store says of itself; absent where there is none. */
  inspectStore: Store['inspect'];
  /** Serves one MCP client over standard input and output. */
  openStdio(input: NodeJS.ReadableStream, onError: (error: Error) => void): StdioDoor;
  /** Serves many clients over HTTP; rejects where it may not, or can't. */
  openDaemon(options: DaemonSettings): Promise<Daemon>;
  /** What the operator's own calls cost since a day (`2026-01-31`, UTC). */
  spent(from: string): Promise<SpendRow[]>;
  /** The operator's own threads as files, and what is over with. */
  transfer: OwnTransfer;
  /** Sends one message of a conversation that its caller keeps. */
  converse: Converse;
  /** Lets jobs end within their grace time (none once `hurry` is aborted), stores and closes everything. */
  close(hurry?: AbortSignal): Promise<void>;
}

/** Configuration → running parts. Opens nothing: databases, connections and logs come with their first use. */
export async function createProduct(config: AppConfig, around: Surroundings): Promise<Product> {
  const values = config.values.app;
  const { clock, random, homeDir: home } = around;
  const place = placeOf(config, around.extensions);
  const telemetry = await wireTelemetry(config, around);
  const { emit, recent, mask, tellComms } = telemetry;
  const warn = (where: string, message: string) => emit({ type: 'warning', where, message });
  for (const message of config.warnings) warn('configuration', message);
  const found = await rootsOf(config, around);
  if (found.roots.length === 0) warn('roots', `No file can be read: ${found.reason}`);
  const root = found.roots[0] ?? around.cwd;
  const { isPrivate } = place;
  const { providers: extraProviders, tools: extraTools } = around.extensions ?? {};
  const store = await openStore({ ...place, clock, random, emit });
  const threads = createThreads({ store, clock, random, emit, timeoutHours: values.conversationTimeoutHours });
  const state = openState(store, clock);
  const { desk: bridge, programs } = wireClis(config, { ...around, root, emit });
  const team = await wireModels(config, { clock, random, emit, tellComms, state, isPrivate, extraProviders, programs });
  const services = wireServices(config, { clock, state, emit, extraProviders });
  const { embedder, noEmbedder } = services;
  const files = wireFiles(config, { ...around, roots: found.roots, mask, isPrivate, embedder, noEmbedder });
  const jobs = createJobs({ store, clock, random, emit });
  const transfer = createTransfer({ threads, clock, random, emit, mask: maskFor(values, mask) });
  const facts = { version, nodeVersion: around.nodeVersion, platform: around.platform, store: place.name };
  const running = { store, state, files, mask, random, clock, emit, home, services, threads, jobs, recent, transfer };
  const placed = { ...running, bridge, config, team, facts, around: { ...around, mask }, extraTools };
  const hosts = createHosts(placed, found, around.cwd);
  const { host, offer, instructions, explain, ask } = hosts.own;
  const observed = wireObserved(telemetry, { ...team, ask }, random);
  for (const message of offer.unknown) warn('tools', message);
  return {
    host,
    root,
    readable: found,
    team,
    warned: telemetry.warned,
    explainRoute: (question, signal) => explain(question, root, signal),
    converse: hosts.own.converse,
    inspectStore: store.inspect,
    searchIndex: files.indexes.of,
    openStdio: (input, onError) =>
      openStdio({ host, version, instructions, principal: { owner: 'local', root } }, input, onError),
    transfer: openTransfer({ transfer, store, clock }, { owner: 'local', workspace: root }),
    ...observed,
    spent: from => store.spend.rows({ owner: 'local', from }),
    openDaemon: async options => {
      const { wireDaemon } = await import('./wire/wire-daemon.ts');
      const seen = { threads, transfer, team, observed, calls: telemetry.calls };
      return wireDaemon({ ...seen, config, hosts, store, version, clock, random, emit, isPrivate }, options);
    },
    async close(hurry) {
      await Promise.all([jobs.close(values.detachedGraceSeconds * 1_000, hurry), hosts.settle(hurry)]);
      await team.close();
      await hosts.flush();
      await Promise.all([files.pool.close(), files.indexes.close()]);
      await store.close();
      await telemetry.close();
    },
  };
}
