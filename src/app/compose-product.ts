import { setImmediate as turn } from 'node:timers/promises';
import type { RouteQuestion } from '../calls/ask/explain-call.ts';
import { createMaskedStream } from '../calls/ask/redaction.ts';
import { createOperations } from '../calls/durable/idempotent-calls.ts';
import { sleepUntil } from '../core/concurrency.ts';
import { warnFrom } from '../core/errors.ts';
import type { Clock, Emit, ExchangeRecord, Random } from '../core/ports.ts';
import { estimateTokens } from '../core/tokens.ts';
import { version } from '../core/version.ts';
import type { ModelService } from '../models/call/models.ts';
import type { ReplayCall } from '../models/call/replay.ts';
import type { Telemetry } from '../observability/observability.ts';
import { createStoredState } from '../storage/shared-state.ts';
import { createThreads } from '../threads/threads.ts';
import { createTransfer } from '../threads/transfer/transfer.ts';
import { createHosts } from './compose-caller-hosts.ts';
import type { DaemonSettings } from './compose-daemon.ts';
import { composeCommandSandbox, composeEmbedder } from './compose-engine.ts';
import type { ProcessEnvironment, Startup } from './compose-front.ts';
import { unlimited } from './compose-host.ts';
import { composeExternalClis, composeModels, composeVendorServices } from './compose-models.ts';
import type { OpenedStore } from './compose-storage.ts';
import { composeFiles, maskFor } from './compose-workspace.ts';
import type { AppConfig } from './settings.ts';

/** All of it, running. */
export type Product = Awaited<ReturnType<typeof composeProduct>>;

/** Configuration and what was told of it → running parts. Opens nothing: databases, connections and logs come with their first use. */
export async function composeProduct(
  config: AppConfig,
  environment: ProcessEnvironment,
  front: Startup,
  { store, clock }: OpenedStore,
  isCalled = false,
) {
  const values = config.values.app;
  const { random, homeDir: home, extensions = {} } = environment;
  const { telemetry, found, root, place, besides } = front;
  const { emit, recent, mask, logExchange } = telemetry;
  const { isPrivate } = place;
  const { roots } = found;
  const { providers: extraProviders, tools: extraTools } = extensions;
  // Loads the client for HTTP, which the call needs anyway, while the store is opened.
  if (isCalled) void inSlices([async () => void new Headers()]);
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
    /** What a host tells its model of the tools as a whole. */
    instructions,
    /** The project that this process serves; the working directory when no project was found. */
    root,
    /** What may be read, and why. */
    readable: found,
    models,
    /** What is set up badly, as far as it has turned up. */
    warned: telemetry.warned,
    /** Who would answer a call, and why. */
    explainRoute: (question: RouteQuestion, signal: AbortSignal) => explain(question, root, signal),
    /** Sends one message of a conversation that its caller keeps. */
    converse: hosts.own.converse,
    /** Puts a question of a program of the AI SDK to models. */
    complete: hosts.own.complete,
    /** What commands of an agent run in: the name of a sandbox, or `none: ` and why; rejects where one is required. */
    commandSandbox: async () => (await composeCommandSandbox(config, environment, roots)).describe(root),
    /** Where threads live, to be inspected (which opens it as a call would), repaired and copied as a whole. */
    store,
    /** How far this machine's clock is ahead of the time by which what is stored expires, in milliseconds. */
    clockAhead: () => clock.now() - clock.storeTime(),
    /** What the one client of this process uses who lists these directories, as `file://` addresses, and his project. */
    async projectOf(listed: readonly string[]) {
      const found = await hosts.of({ permissions: unlimited, listed, free: true, isAlone: true });
      return { host: found.services.host, root: found.root };
    },
    /** Loads what the first call needs, in slices between which others have their turn. What goes wrong is told by that call. */
    warm: () =>
      inSlices([
        () => Promise.all([store.warm?.(), fetch('data:,').then(reply => reply.text())]),
        async () => void estimateTokens(instructions),
        () => mask(instructions, 'warm'),
        async () => void telemetry.maskDeep({ usage: { total: 0 }, of: [{ text: 'A text.' }] }),
        models.warm,
      ]),
    /** The search index of a folder within the roots. */
    searchIndex: files.indexes.of,
    /** Threads as files, and what is over with. */
    transfer,
    ...observed,
    /** What an owner's calls cost since a day (`2026-01-31`, UTC); the operator's own, unless told. */
    spent: (from: string, owner = 'local') => store.spend.rows({ owner, from }),
    /** Serves many clients over HTTP; rejects where it may not, or can't. */
    async openDaemon(options: DaemonSettings) {
      const { composeDaemon } = await import('./compose-daemon.ts');
      const seen = { threads, transfer, models, mask, state, observed, calls: telemetry.calls, know: telemetry.know };
      return composeDaemon({ ...ports, ...operations, ...seen, config, hosts, store, version, isPrivate }, options);
    },
    /** Lets jobs end within their grace time (none once `hurry` is aborted), stores and closes everything. */
    async close(hurry?: AbortSignal) {
      await hosts.settle();
      await operations.close(hurry);
      await closeOwn(ports, 'providers', () => models.close());
      await hosts.flush();
      await Promise.all([files.pool.close(), files.indexes.close()]);
      await threads.close();
      await closeOwn(ports, 'store', () => store.close());
      await telemetry.close();
    },
  };
}

/** Longer than a store waits for the lock of another process. */
const closeMs = 12_000;

/** Closes what may be a program's own: one that fails or hangs is told of, and what comes after it is closed all the same. */
async function closeOwn({ clock, emit }: { clock: Clock; emit: Emit }, where: string, close: () => Promise<unknown>) {
  let isOver = false;
  const closing = (async () => close())()
    .catch(warnFrom(emit, where))
    .then(() => {
      isOver = true;
    });
  await sleepUntil(clock, closeMs, closing);
  const message = `Closing did not end within ${closeMs / 1_000} s, and is not waited for.`;
  if (!isOver) emit({ type: 'warning', where, message });
}

/** Running parts → what a product tells of itself. */
function composeObservability(
  { metrics, gauge, exchanges, logExchange, mask }: Telemetry,
  models: Pick<ModelService, 'load' | 'route' | 'ask'>,
  random: Random,
) {
  gauge('polylogue_questions_running', 'Questions to models that are under way.', ['provider'], () =>
    [...models.load().running].map(([provider, count]) => [[provider], count]),
  );
  gauge('polylogue_questions_waiting', 'Questions to models that wait for a place.', [], () => [
    [[], models.load().waiting],
  ]);
  /** Asks the same model the same question again, on the operator's own account; the answer is without secrets, as every reply. */
  const send = async (exchange: ExchangeRecord, { signal, onText }: Omit<ReplayCall, 'payer'>) => {
    const scope = exchange.exchange;
    const stream = onText && createMaskedStream(mask, scope, onText);
    const { createReplay } = await import('../models/call/replay.ts');
    const answer = await createReplay({ ...models, random })(exchange, {
      payer: { owner: 'local' },
      signal,
      onText: stream?.push,
    });
    await stream?.end();
    const wanted = (answer.said ?? []).flatMap(part => (part.type === 'call' ? [part] : []));
    const calls = wanted.map(
      async ({ name, args }) => (await mask(`${name} ${JSON.stringify(args)}`, scope, 'model')).text,
    );
    const { usage, costUsd, latencyMs } = answer;
    const { text } = await mask(answer.text, scope, 'model');
    // Calls of tools that it wants, which nobody runs: name and arguments as JSON.
    return { text, calls: await Promise.all(calls), usage, costUsd, latencyMs };
  };
  // What models were asked and answered, as far as it was kept; undefined where nothing is kept on disk. Without `append` the log is
  // off (COMMS_LOG), and can only be read.
  const replay = exchanges && { ...exchanges, send, append: logExchange };
  // Masking rejects where its key cannot be used.
  return { metrics, gauge, replay, tryMask: () => mask('A text.', 'warm') };
}

/** Node loads its client for HTTP with the first use of one of its classes; what fails here is told by the call that needs it. */
async function inSlices(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const step of steps)
    await turn()
      .then(step)
      .catch(() => undefined);
}
