import { setImmediate as turn } from 'node:timers/promises';
import type { CallExplanation, RouteQuestion } from '../calls/ask/explain-call.ts';
import { createOperations } from '../calls/durable/operations.ts';
import { estimateTokens } from '../core/tokens.ts';
import type { ToolHost } from '../core/tool-host.ts';
import type { SpendRow } from '../core/usage.ts';
import { version } from '../core/version.ts';
import type { Complete } from '../engine/complete.ts';
import type { SendMessage } from '../engine/conversation.ts';
import type { Telemetry } from '../observability/observability.ts';
import { createStoredState } from '../storage/shared-state.ts';
import type { Store } from '../storage/store.ts';
import { createThreads } from '../threads/threads.ts';
import { createTransfer, type Transfer } from '../threads/transfer/transfer.ts';
import type { Roots } from '../workspace/roots.ts';
import type { SearchIndexes } from '../workspace/search-index/search-index.ts';
import { createHosts } from './compose-caller-hosts.ts';
import type { DaemonService, DaemonSettings } from './compose-daemon.ts';
import { composeCommandSandbox, composeEmbedder, maskFor } from './compose-engine.ts';
import { unlimited } from './compose-exposure.ts';
import type { Front, ProcessEnvironment } from './compose-front.ts';
import type { ComposedModels } from './compose-models.ts';
import { composeExternalClis, composeModels, composeVendorServices } from './compose-models.ts';
import type { ObservabilityServices } from './compose-observability.ts';
import { composeObservability } from './compose-observability.ts';
import { openStore } from './compose-storage.ts';
import { composeFiles } from './compose-workspace.ts';
import type { AppConfig } from './settings.ts';

/** All of it, running. */
export interface Product extends ObservabilityServices {
  host: ToolHost;
  /** What a host tells its model of the tools as a whole. */
  instructions: string;
  /** The project that this process serves; the working directory when no project was found. */
  root: string;
  /** What may be read, and why. */
  readable: Roots;
  /** What the one client of this process uses who lists these directories, as `file://` addresses, and his project. */
  projectOf(listed: readonly string[]): Promise<{ host: ToolHost; root: string }>;
  /** Loads what the first call needs, in slices between which others have their turn. What goes wrong is told by that call. */
  warm(): Promise<void>;
  /** The search index of a folder within the roots. */
  searchIndex: SearchIndexes['of'];
  models: Pick<
    ComposedModels,
    'namesOfNone' | 'providers' | 'ping' | 'balance' | 'refresh' | 'warnings' | 'health' | 'caches'
  >;
  /** What is set up badly, as far as it has turned up. */
  warned: Telemetry['warned'];
  /** Who would answer a call, and why. */
  explainRoute(question: RouteQuestion, signal: AbortSignal): Promise<CallExplanation>;
  /** What commands of an agent run in: the name of a sandbox, or `none: ` and why; rejects where one is required. */
  commandSandbox(): Promise<string>;
  /** What a server behind the store says of itself; absent where there is none. */
  inspectStore: Store['inspect'];
  /** How far this machine's clock is ahead of the time by which what is stored expires, in milliseconds. */
  clockAhead(): number;
  /** Checks all that is stored and replaces what is damaged; absent where the store is no file. */
  repairStore: Store['repair'];
  /** Serves many clients over HTTP; rejects where it may not, or can't. */
  openDaemon(options: DaemonSettings): Promise<DaemonService>;
  /** What the operator's own calls cost since a day (`2026-01-31`, UTC). */
  spent(from: string): Promise<SpendRow[]>;
  /** Threads as files, and what is over with. */
  transfer: Transfer;
  /** Puts a question of a program of the AI SDK to models. */
  complete: Complete;
  /** Sends one message of a conversation that its caller keeps. */
  converse: SendMessage;
  /** Lets jobs end within their grace time (none once `hurry` is aborted), stores and closes everything. */
  close(hurry?: AbortSignal): Promise<void>;
}

/**
 * Configuration and what was told of it → running parts. Opens nothing: databases, connections and logs come with their first use.
 * Where a call waits already (`isCalled`), the store is opened beside the rest.
 */
export async function composeProduct(
  config: AppConfig,
  environment: ProcessEnvironment,
  front: Front,
  isCalled = false,
): Promise<Product> {
  const values = config.values.app;
  const { random, homeDir: home, extensions = {} } = environment;
  const { telemetry, found, root, place, besides } = front;
  const { emit, recent, mask, logExchange } = telemetry;
  const { isPrivate } = place;
  const { roots } = found;
  const { providers: extraProviders, tools: extraTools } = extensions;
  const { store, clock } = await openStore({ ...place, clock: environment.clock, random, emit });
  if (isCalled) {
    store.open?.();
    // Loads the client for HTTP, which the call needs anyway, while the store is opened.
    void inSlices([async () => void new Headers()]);
  }
  const ports = { clock, random, emit };
  const threads = createThreads({ ...ports, store, timeoutHours: values.conversationTimeoutHours });
  const state = createStoredState(store, clock);
  const { cliRegistry: clis, cliRunner } = composeExternalClis(config, { ...environment, root, roots, emit });
  const modelContext = { ...ports, logExchange, state, isPrivate, extraProviders, cliRunner };
  const models = await composeModels(config, modelContext);
  const services = composeVendorServices(config, modelContext);
  const embedder = composeEmbedder(services, { ...ports, values, models, store });
  const { noEmbedder } = services;
  const files = composeFiles(config, { ...environment, roots, mask, isPrivate, embedder, noEmbedder });
  const operations = createOperations({ ...ports, ...values, store });
  const transfer = createTransfer({ ...ports, threads, mask: maskFor(values, mask) });
  const facts = { version, nodeVersion: environment.nodeVersion, platform: environment.platform, store: place.name };
  const running = { ...ports, ...operations, store, state, files, mask, home, services, models, clis, threads };
  const fileContext = { ...environment, mask };
  const placed = { ...running, recent, transfer, config, facts, fileContext, extraTools, besides };
  const hosts = createHosts(placed, front);
  const { host, instructions, explain, ask } = hosts.own;
  const observed = composeObservability(telemetry, { ...models, ask }, random);
  return {
    host,
    instructions,
    root,
    readable: found,
    models,
    warned: telemetry.warned,
    explainRoute: (question, signal) => explain(question, root, signal),
    converse: hosts.own.converse,
    complete: hosts.own.complete,
    commandSandbox: async () => (await composeCommandSandbox(config, environment, roots)).describe(root),
    inspectStore: store.inspect,
    clockAhead: () => clock.now() - clock.storeTime(),
    repairStore: store.repair,
    async projectOf(listed) {
      const found = await hosts.of({ permissions: unlimited, listed, free: true, isAlone: true });
      return { host: found.services.host, root: found.root };
    },
    warm: () =>
      inSlices([
        () => fetch('data:,').then(reply => reply.text()),
        async () => void estimateTokens('A text of some words.'),
        () => mask('A text.', 'warm'),
        models.warm,
      ]),
    searchIndex: files.indexes.of,
    transfer,
    ...observed,
    spent: from => store.spend.rows({ owner: 'local', from }),
    openDaemon: async options => {
      const { composeDaemon } = await import('./compose-daemon.ts');
      const seen = { threads, transfer, models, mask, state, observed, calls: telemetry.calls, know: telemetry.know };
      return composeDaemon({ ...ports, ...seen, config, hosts, store, version, isPrivate }, options);
    },
    async close(hurry) {
      await hosts.settle();
      await operations.close(hurry);
      await models.close();
      await hosts.flush();
      await Promise.all([files.pool.close(), files.indexes.close()]);
      await store.close();
      await telemetry.close();
    },
  };
}

/** Node loads its client for HTTP with the first use of one of its classes; what fails here is told by the call that needs it. */
async function inSlices(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const step of steps) {
    await turn();
    await step().catch(() => undefined);
  }
}
