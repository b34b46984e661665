import { join } from 'node:path';
import { readCliFiles, readModelFiles } from '../config/definition-files.ts';
import { concurrency, listVariable, routingPolicy } from '../config/derived-settings.ts';
import { absolutePath } from '../config/home.ts';
import { readIfPresent } from '../config/settings-files.ts';
import { isAppError } from '../core/errors.ts';
import type { LogExchange } from '../core/ports.ts';
import { didYouMean } from '../core/text.ts';
import { createModelService } from '../models/call/models.ts';
import type { UnknownName } from '../models/catalogue/capabilities.ts';
import { deploymentsIn, overlay } from '../models/catalogue/overlay.ts';
import type { ConnectContext, ProviderDefinition } from '../models/provider.ts';
import type { DocumentLibrary, VendorEmbedder, WebSearcher } from '../models/vendor-services.ts';
import { namedEmbedder } from '../providers/embeddings.ts';
import type { AskCliParts } from '../providers/external-cli/ask-cli.ts';
import { cliProvider, createCliRegistry } from '../providers/external-cli/cli-registry.ts';
import { configuredClis } from '../providers/external-cli/configured-clis.ts';
import { type CliRunner, cliProviderId } from '../providers/external-cli/contract.ts';
import { providers } from '../providers/index.gen.ts';
import { createMoonshotFiles } from '../providers/moonshot/files.ts';
import { moonshot } from '../providers/moonshot/moonshot.ts';
import { accountOf, createDocumentLibrary } from '../providers/shared/document-library.ts';
import { ownEndpoints } from '../providers/shared/self-hosted.ts';
import { createZhipuWebSearch, searchEngineOf, zhipu } from '../providers/zhipu/zhipu.ts';
import { createKeptText } from '../storage/shared-state.ts';
import type { ProcessEnvironment } from './compose-front.ts';
import { type AppConfig, providerSetup } from './settings.ts';

/** What models and vendors' services are made of. */
export interface ModelContext extends ConnectContext, Pick<AskCliParts, 'emit' | 'random'> {
  /** From outside the package; they come after those of the product. */
  extraProviders?: readonly ProviderDefinition[];
  logExchange?: LogExchange;
  /** Nothing is written to disk. */
  isPrivate: boolean;
  /** Other vendors' agents, which answer as `cli:name`. */
  cliRunner: CliRunner;
}

/** Agents are whole programs: more of them at once would only wait for the processor. */
const maxConcurrentClis = 4;

/** Settings → the models that may be asked, and how. What is wrong with the operator's files about them is told as warnings. */
export async function composeModels(
  config: AppConfig,
  { isPrivate, extraProviders = [], cliRunner, ...context }: ModelContext,
) {
  const values = config.values.app;
  const { callTimeoutSeconds, maxThinkingTokens } = values;
  const known = [...providers, ...extraProviders];
  const vendors = Object.fromEntries(known.map(({ id }) => [id, config.textsOf(id)]));
  const window = Number(config.textsOf('custom').contextWindow) || undefined;
  const own = ownEndpoints(config.endpoints, known, window, overlay);
  const { files, warnings } = await readModelFiles(values, readIfPresent);
  const deployments = [...deploymentsIn(files), vendors.azure?.deployments ?? ''].join(',');
  const keptFacts = join(config.home, 'cache', 'models-dev.json');
  const kept = isPrivate ? undefined : createKeptText(keptFacts, context.random);
  const { wrong, ...atOnce } = concurrency(values);
  const warn = (where: string, message: string) => context.emit({ type: 'warning', where, message });
  for (const entry of wrong)
    warn('configuration', `MAX_CONCURRENT_PER_PROVIDER: "${entry}" is left out; it takes provider=number.`);
  const definitions = [...known, ...own.definitions, cliProvider(cliRunner)];
  for (const name of Object.keys(atOnce.perProvider).filter(name => !definitions.some(({ id }) => id === name))) {
    const ids = definitions.map(({ id }) => id);
    const known = `${didYouMean(name, ids)}Known providers: ${ids.join(', ')}.`;
    warn('configuration', `MAX_CONCURRENT_PER_PROVIDER: unknown provider "${name}". ${known}`);
  }
  const models = createModelService({
    definitions,
    settings: { ...vendors, azure: { ...vendors.azure, deployments }, ...own.settings },
    policy: routingPolicy(values),
    totalMs: callTimeoutSeconds === undefined ? undefined : callTimeoutSeconds * 1_000,
    maxThinkingTokens,
    concurrency: { ...atOnce, perProvider: { [cliProviderId]: maxConcurrentClis, ...atOnce.perProvider } },
    lastAnswer: values.localLastAnswer,
    sources: { files, kept, factsUrl: values.modelsDevUrl, listsAhead: values.modelLists === 'auto' },
    ...context,
  });
  const all = [...own.warnings, ...warnings, ...models.warnings];
  for (const message of all) warn('models', message);
  const namesOfNone = async (fresh: boolean) => (await models.unknownNames({ fresh })).map(textOf);
  for (const message of await namesOfNone(false)) warn(namesOfNoneAt, message);
  return {
    ...models,
    warnings: all,
    /** A sentence for each word of the operator's lists that means no model, by the vendors' lists of now. */
    namesOfNone: () => namesOfNone(true),
  };
}

/** Where the start warns of such names; whoever asks for them anew need not repeat it. */
const namesOfNoneAt = 'lists of models';

function textOf({ provider, name, near }: UnknownName): string {
  const hint = near === undefined ? '' : ` The nearest that is known is ${near}.`;
  const effect = provider === undefined ? 'has no effect' : 'allows nothing';
  return `${listVariable(provider)}: no model that is known is meant by "${name}", so that it ${effect}.${hint}`;
}

/** Settings and the operator's files → other vendors' agents. What is wrong with the files is told as warnings. */
export function composeExternalClis(
  { values: { app }, home }: AppConfig,
  context: Omit<AskCliParts, 'mayWrite'> & Pick<ProcessEnvironment, 'homeDir'>,
) {
  const places = [
    // Where PAL had them, also while it was called Zen: whoever comes from there keeps them.
    ...['.zen', '.pal'].map(folder => ({ path: join(context.homeDir, folder, 'cli_clients') })),
    { path: join(home, 'clis') },
    ...(app.cliClients === undefined ? [] : [{ path: app.cliClients, asked: true }]),
  ];
  const { files, warnings } = readCliFiles(places, readIfPresent);
  const machine = { homeDir: context.homeDir, platform: context.platform, cwd: context.root };
  const absolute = (path: string, folder: string) => absolutePath(path, folder, machine);
  const found = configuredClis(files, app.cliTimeoutSeconds * 1_000, absolute);
  for (const message of [...warnings, ...found.warnings]) context.emit({ type: 'warning', where: 'clis', message });
  return createCliRegistry({ ...context, mayWrite: app.cliAllowWrites && !app.readOnly }, found.clis);
}

/** What vendors do beside answering. Each is there only where its vendor is configured. */
export interface VendorServices {
  /** Ids of the providers that can be asked. */
  configured: readonly string[];
  documents?: DocumentLibrary;
  web?: WebSearcher;
  embedder?: VendorEmbedder;
  /** Why there is none, where one is named. */
  noEmbedder?: string;
}

const megabyte = 1024 * 1024;

/** Settings → what vendors do beside answering. Opens nothing; what is set up badly is left out with a warning. */
export function composeVendorServices(
  config: AppConfig,
  { clock, state, emit, extraProviders }: Pick<ModelContext, 'clock' | 'state' | 'emit' | 'extraProviders'>,
): VendorServices {
  const { settingsOf, usable, configured } = providerSetup(config, extraProviders);
  const { embeddingModel, offline } = config.values.app;
  const now = () => clock.now();
  const warnOf = (error: unknown): string => {
    if (!isAppError(error)) throw error;
    emit({ type: 'warning', where: 'configuration', message: error.message });
    return error.message;
  };
  const sound = <Service extends object>(make: () => Service): Service | undefined => {
    try {
      return make();
    } catch (error) {
      warnOf(error);
      return undefined;
    }
  };
  const embedderOf = (name: string): Pick<VendorServices, 'embedder' | 'noEmbedder'> => {
    const missing = (why: string) => ({ noEmbedder: `There are no vectors, so words alone decide: ${why}` });
    try {
      const embedder = namedEmbedder(name, settingsOf, now);
      if (usable(name.split(':', 1)[0]?.trim().toLowerCase() ?? '')) return { embedder };
      const mode = offline ? '--offline' : '--local-only';
      return missing(`EMBEDDING_MODEL is ${name}, which is not on this machine or network, and ${mode} is on.`);
    } catch (error) {
      return missing(warnOf(error));
    }
  };
  const moonshotServices = () => {
    const settings = settingsOf('moonshot');
    const endpoint = moonshot.endpoint(settings, now);
    const files = createMoonshotFiles(endpoint, Number(settings.filesMaxMb ?? 100) * megabyte);
    const account = accountOf(settings.apiKey ?? '');
    return { documents: createDocumentLibrary({ provider: endpoint.provider, files, account, state, clock }) };
  };
  const zhipuServices = () => {
    const endpoint = zhipu.endpoint(settingsOf('zhipu'), now);
    return { web: createZhipuWebSearch(endpoint, searchEngineOf(settingsOf('zhipu'), endpoint.baseUrl)) };
  };
  return {
    configured,
    ...(configured.includes('moonshot') && sound(moonshotServices)),
    ...(configured.includes('zhipu') && sound(zhipuServices)),
    ...(embeddingModel !== undefined && embedderOf(embeddingModel)),
  };
}
