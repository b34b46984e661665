import { join } from 'node:path';
import { allowedModels, promptSizeLimit } from './config/derive.ts';
import { type Config, loadConfig } from './config/load.ts';
import { options } from './config/options.ts';
import type { Clock, Emit, Random } from './domain/ports.ts';
import type { ToolHost } from './domain/request.ts';
import { createActionContext } from './engine/actions.ts';
import type { ProductFacts } from './engine/define.ts';
import { preambleOf } from './engine/gather/preamble.ts';
import { catalogueVersion } from './engine/offer/catalogue-version.ts';
import { exposed } from './engine/offer/exposure.ts';
import { instructionsFor } from './engine/offer/instructions.ts';
import { createEngine } from './engine/run.ts';
import { defaultRoots } from './files/default-roots.ts';
import { createSandbox } from './files/sandbox.ts';
import type { Store } from './memory/store.ts';
import { createMemoryStore } from './memory/stores/memory.ts';
import { createSqliteStore } from './memory/stores/sqlite.ts';
import { createThreads } from './memory/threads.ts';
import { providers } from './models/providers/index.gen.ts';
import type { RoutingPolicy } from './models/routing/roster.ts';
import { createTeam, type Team } from './models/team.ts';
import { openStdio, type StdioDoor } from './server/stdio.ts';
import { createBus } from './telemetry/bus.ts';
import { maskKey } from './telemetry/mask-key.ts';
import { createMask } from './telemetry/redact.ts';
import { createBreadcrumbs } from './telemetry/sinks/breadcrumbs.ts';
import { createStderr } from './telemetry/sinks/stderr.ts';
import { tools } from './tools/index.gen.ts';
import { version } from './version.ts';

/** All options there are: the product's own and each provider's, by its id. */
export const tables = { ...Object.fromEntries(providers.map(({ id, options: table }) => [id, table])), app: options };
export type AppConfig = Config<typeof tables>;
export { loadConfig, version };

/** What only the outermost layer may touch, handed down. */
export interface Surroundings {
  cwd: string;
  homeDir: string;
  platform: string;
  nodeVersion: string;
  clock: Clock;
  random: Random;
  writeError(line: string): void;
}

export interface Product {
  host: ToolHost;
  /** The project that this process serves; the working directory when no project was found. */
  root: string;
  /** Serves one MCP client over standard input and output. */
  openStdio(input: NodeJS.ReadableStream, onError: (error: Error) => void): StdioDoor;
  /** Finishes what is under way, stores and closes everything. */
  close(): Promise<void>;
}

/** Configuration → running parts. Opens nothing: databases, connections and logs come with their first use. */
export async function createProduct(config: AppConfig, around: Surroundings): Promise<Product> {
  const values = config.values.app;
  const { clock, random, homeDir: home } = around;
  const inPrivate = values.private || values.store === 'memory';
  const mask = lazily(() =>
    createMask({ secret: maskKey(inPrivate ? undefined : config.home, random), keys: [...config.secrets] }),
  );
  const stderr = createStderr({ write: around.writeError, level: values.logLevel });
  const bus = createBus({
    clock,
    mask: event => mask().maskDeep(event),
    sinks: inPrivate ? [stderr] : [stderr, createBreadcrumbs({ folder: join(config.home, 'logs') })],
    onSinkError: (sink, error) => around.writeError(`polylogue: the sink ${sink} failed: ${String(error)}\n`),
  });
  const { emit } = bus;
  for (const message of config.warnings) emit({ type: 'warning', where: 'configuration', message });

  const found = await defaultRoots({
    explicit: values.roots ?? [],
    projectRoot: values.claudeProjectDir,
    cwd: around.cwd,
    home,
  });
  if (found.roots.length === 0)
    emit({ type: 'warning', where: 'roots', message: `No file can be read: ${found.reason}` });
  const root = found.roots[0] ?? around.cwd;
  const sandbox = createSandbox({ roots: found.roots, allowSecrets: values.allowSecretFiles });

  const store = storeOf(config, clock, emit, inPrivate);
  const threads = createThreads({ store, clock, random, emit, timeoutHours: values.conversationTimeoutHours });
  const team = teamOf(config, clock, random, emit);
  const models = { providers: team.providers, defaultModel: values.defaultModel };
  const offer = exposed(tools, { toolsets: values.toolsets, only: values.tools, disabled: values.disabledTools ?? [] });
  for (const name of offer.unknown) emit({ type: 'warning', where: 'tools', message: `There is no tool "${name}".` });

  const product: ProductFacts = {
    version,
    catalogueVersion: '',
    nodeVersion: around.nodeVersion,
    platform: around.platform,
    store: inPrivate ? 'memory, until this process ends' : join(config.home, 'threads.sqlite'),
    roots: sandbox.roots,
    tools: offer.tools.map(tool => tool.name),
  };
  const host = createEngine({
    tools: offer.tools,
    random,
    threads,
    route: team.route,
    askModel: team.ask,
    promptLimit: promptSizeLimit(values),
    workflow: { expertAtCertain: values.expertAtCertain, compat: values.compat },
    actionContext: (principal, signal) => createActionContext({ threads, clock, models, product }, principal, signal),
    compose: {
      store,
      sandbox,
      mask: values.maskSecrets ? (text, scope) => mask().mask(text, scope) : async text => ({ text, found: {} }),
      clock,
      emit,
      newExchange: threads.newExchange,
      home,
      preamble: preambleOf(values.locale),
      maxTurns: values.maxConversationTurns,
      maxFileBytes: values.maxFileBytes,
      maxNamedFiles: values.maxNamedFiles,
      isLocal: ({ model }) => team.isLocal(model.provider),
    },
  });
  product.catalogueVersion = catalogueVersion(host.list());
  return {
    host,
    root,
    openStdio: (input, onError) =>
      openStdio(
        { host, version, instructions: instructionsFor(offer.tools), principal: { owner: 'local', root } },
        input,
        onError,
      ),
    async close() {
      await store.close();
      await bus.close();
    },
  };
}

function storeOf(config: AppConfig, clock: Clock, emit: Emit, inPrivate: boolean): Store {
  if (inPrivate) return createMemoryStore({});
  const onWarning = (message: string) => emit({ type: 'warning', where: 'store', message });
  return createSqliteStore({ file: join(config.home, 'threads.sqlite'), clock, onWarning });
}

function teamOf(config: AppConfig, clock: Clock, random: Random, emit: Emit): Team {
  const values = config.values.app;
  const policy: RoutingPolicy = {
    defaultModel: values.defaultModel,
    allowed: Object.fromEntries(allowedModels(values)),
    denied: values.deniedModels ?? [],
    localOnly: values.localOnly,
    prefer: values.routePrefer,
    allowUnknown: values.allowUnknownModels,
    offline: values.offline,
  };
  const settings = Object.fromEntries(providers.map(({ id }) => [id, config.textsOf(id)]));
  const totalMs = values.callTimeoutSeconds === undefined ? undefined : values.callTimeoutSeconds * 1_000;
  const { maxThinkingTokens } = values;
  return createTeam({ definitions: providers, settings, policy, totalMs, maxThinkingTokens, clock, random, emit });
}

function lazily<Part>(make: () => Part): () => Part {
  let part: Part | undefined;
  return () => (part ??= make());
}
