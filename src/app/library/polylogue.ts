import { absolutePath, rootAt } from '../../config/home.ts';
import { readIfPresent } from '../../config/settings-files.ts';
import { createQueue } from '../../core/concurrency.ts';
import { cancelledError, configError, throwIfAborted } from '../../core/errors.ts';
import { type JsonObject, textIn } from '../../core/json.ts';
import type { Message } from '../../core/message.ts';
import type { ModelInfo } from '../../core/model.ts';
import type { ExchangeFilter, ExchangeNote, ExchangeRecord } from '../../core/ports.ts';
import { estimateTokens, tokenFactor } from '../../core/tokens.ts';
import type { ProgressUpdate } from '../../core/tool-host.ts';
import { servedModel } from '../../models/call/served-model.ts';
import { loadCatalogue } from '../../models/catalogue/model-sources.ts';
import type { LanguageModel } from '../../models/provider.ts';
import { createProduct } from '../app.ts';
import type { Product } from '../compose-product.ts';
import { type AppConfig, loadAppConfig, withValues } from '../settings.ts';
import { systemEnvironment, useProxy } from '../system-environment.ts';
import { checkOptions, checkSettings } from './check-options.ts';
import type { Conversation, ConversationOptions, Emitter, TokenStats } from './conversation.ts';
import { copyOf, createConversation, createCounter, createEmitter, createSend, defined } from './conversation.ts';
import type { ErrorAnalysis, ErrorRequest, GeneratedPatch } from './diagnose.ts';
import { analysisIn, errorIn, patchIn } from './diagnose.ts';
import type { PolylogueOptions, SendDefaults, SendRequest, SendResult } from './options.ts';
import type { CompressedDiscussion, ShortenOptions, Summary } from './shorten.ts';
import { compressDiscussion, shortForm } from './shorten.ts';
import { type SendEvent, streamEvents, withSignal } from './stream.ts';

/** A model that may be asked. */
export interface ListedModel
  extends Pick<
    ModelInfo,
    'provider' | 'id' | 'aliases' | 'window' | 'maxOutput' | 'reasoning' | 'tools' | 'input' | 'price'
  > {
  /** `provider:model`, as `model` takes it. */
  name: string;
}

/** How one call of a tool is watched, ended and identified. */
export interface CallToolOptions {
  /** Gets the progress of the call: a growing number and a message. */
  onProgress?(update: ProgressUpdate): void;
  /** Gets the text of a model as it arrives. */
  onText?(delta: string): void;
  /** Aborting it cancels the call. */
  signal?: AbortSignal;
  /** Names this call: within ten minutes the same name means the same call, which is paid for once. */
  idempotencyKey?: string;
}

/** How a model of the AI SDK remembers. */
export interface LanguageModelOptions {
  /**
   * The thread to continue, whose earlier exchanges are included and to which this one is added: a thread's ID, `last` for the newest of
   * the project, or true for a new one. Absent: nothing is remembered.
   */
  thread?: string | true;
}

/** What a program adds to the log of model calls. */
export interface CommsEntry extends Partial<Pick<ExchangeNote, 'tool' | 'provider' | 'model' | 'reqId'>> {
  /** Default: `request`. */
  kind?: 'request' | 'response' | 'error' | 'tool_call' | 'tool_result';
  /** Plain data. */
  payload: Record<string, unknown>;
}

/** Polylogue within a program: models, tools and memory, by functions. None of them needs `this`. */
export interface Polylogue {
  /** Sends one message, with all that belongs to it; nothing is remembered. Rejects with an `AppError`, such as `LIMIT` or `API_ERROR`. */
  send(request: SendRequest): Promise<SendResult>;
  /** The same as the events of it: text, calls of tools, approvals, usage and the result. Sent when the first one is asked for. */
  stream(request: SendRequest): AsyncGenerator<SendEvent, void, void>;
  /** Polylogue as a model of the AI SDK: its programs get routing, fallbacks, limits, masks and memory. `name`: as `send` takes `model`. */
  languageModel(name?: string, options?: LanguageModelOptions): LanguageModel;
  /** Starts a conversation, whose requests see what was said before. */
  createConversation(options?: ConversationOptions): Conversation;
  /** Replaces what holds for each `send` that does not say otherwise. */
  setDefaults(defaults: SendDefaults): void;
  /** A copy of what `setDefaults` set; at first empty. */
  getDefaults(): SendDefaults;
  /** The models of the providers that are configured. `fresh` (default: false): vendors are asked for their lists. */
  listModels(options?: { fresh?: boolean }): Promise<ListedModel[]>;
  /** What `send` and what stands on it used since this Polylogue was made. */
  tokenStats(): TokenStats;
  /** Sums up a file of the project. */
  summarizeFile(path: string, options?: ShortenOptions): Promise<Summary>;
  /** Sums up turns, or a text. */
  compressDiscussion(discussion: readonly Message[] | string, options?: ShortenOptions): Promise<CompressedDiscussion>;
  /** Why something failed, from its error output. */
  analyzeError(request: ErrorRequest): Promise<ErrorAnalysis>;
  /** The same with a patch, which is shown only if git takes it; nothing is changed. */
  generatePatch(request: ErrorRequest): Promise<GeneratedPatch>;
  /** Calls one of the tools that MCP clients know (docs/reference/tools.md); answers the document of its reply. Throws an `AppError`. */
  callTool(name: string, args: Record<string, unknown>, options?: CallToolOptions): Promise<JsonObject>;
  /** Exchanges with models while COMMS_LOG was on; `append` needs it on now. */
  commsLog: {
    /** Entries, the newest first; `filter.limit` (default: 100) says how many. */
    read(filter?: Partial<ExchangeFilter>): Promise<ExchangeRecord[]>;
    /** Removes every entry. */
    clear(): Promise<void>;
    /** Adds an entry of this program's own, such as what it asked a model by other means; its secrets are masked. */
    append(entry: CommsEntry): Promise<void>;
  };
  /** Calls a listener at each event of a name (`PolylogueEvents`); returns what ends the listening. */
  on: Emitter['on'];
  /** Ends what is under way, closes files, databases and connections. Nothing works after it. */
  cleanup(): Promise<void>;
  /** `cleanup()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a Polylogue of a program's own, as `options` say (default: as the server does). Several share nothing but their store.
 * Rejects with an `AppError`: `CONFIG` for settings, `INVALID_INPUT_FORMAT` for options that do not exist.
 */
export async function createPolylogue(options: PolylogueOptions = {}): Promise<Polylogue> {
  checkNode(process.versions.node);
  checkOptions('createPolylogue', options);
  const emitter = createEmitter(error => void process.emitWarning(error instanceof Error ? error : String(error)));
  const writeError = (line: string) => emitter.notify(text => options.log?.(text), line.trimEnd());
  const environment = { ...systemEnvironment(), writeError };
  const { home, root } = options;
  const cwd = root === undefined ? environment.cwd : rootAt(root, environment);
  const places = {
    ...(home !== undefined && { POLYLOGUE_HOME: absolutePath(home, environment.cwd, environment) }),
    ...(root !== undefined && { PROJECT_ROOT: cwd }),
  };
  const env = { ...(options.env ?? process.env), ...places, ...options.settings };
  const { homeDir, platform } = environment;
  const sources = { env, argvFlags: {}, homeDir, platform, cwd, readFile: readIfPresent };
  const { config, extensions } = await loadAppConfig(sources, options);
  checkSettings(options.settings ?? {}, [...config.variables]);
  await useProxy(config.values.app, process.env.NODE_EXTRA_CA_CERTS);
  // A program calls tools by name: none costs it anything by being offered. What the operator switched off stays so.
  const withAllTools = withValues(config, { profile: 'full' });
  const product = await createProduct(withAllTools, { ...environment, cwd, childEnv: env, extensions });
  return composePolylogue(product, config, emitter, environment.random.uuid);
}

/** The oldest releases of Node whose SQLite does not damage files that several programs write to. */
function checkNode(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  if (major > 24 || (major === 24 && minor >= 15)) return;
  if (major === 22 && (minor > 22 || (minor === 22 && patch >= 3))) return;
  throw configError(`Polylogue needs Node 24.15 or newer, or 22.22.3 or newer of Node 22; this is ${version}.`, {
    next: 'Install it from https://nodejs.org or with your version manager (nvm install 24), and start your program with it.',
  });
}

function composePolylogue(product: Product, config: AppConfig, emitter: Emitter, uuid: () => string): Polylogue {
  const { systemPrompt, systemPromptFile, projectContext: projectMarker } = config.values.app;
  let defaults: SendDefaults = {};
  const base = systemPrompt ?? (systemPromptFile === undefined ? undefined : readIfPresent(systemPromptFile));
  const tally = createCounter();
  const over = new AbortController();
  const check: typeof checkOptions = (...given) => {
    if (over.signal.aborted) throw closed();
    checkOptions(...given);
  };
  const parts = { converse: product.converse, emitter, tally, root: product.root, system: { base, projectMarker } };
  const plainSend = createSend(parts, () => defaults);
  const send: typeof plainSend = async (conversation, request, ...more) => {
    if (over.signal.aborted) throw closed();
    return plainSend(conversation, withSignal(request, over.signal), ...more);
  };
  const callTool = async (name: string, args: Record<string, unknown>, options: CallToolOptions = {}) => {
    const principal = { owner: 'local', root: product.root, client: 'library' };
    check('callTool', options, { name, args });
    const { signal, idempotencyKey, onText, onProgress } = options;
    const watch = {
      ...(onText && { onText: (delta: string) => emitter.notify(onText, delta) }),
      ...(onProgress && { onProgress: (update: ProgressUpdate) => emitter.notify(onProgress, update) }),
    };
    const session = idempotencyKey === undefined ? undefined : { gone: over.signal, idempotencyKey };
    const call = { name, arguments: args, principal, session, ...watch };
    const { isError, document, error } = await product.host.call(call, joined(over.signal, signal));
    if (isError) throw over.signal.aborted ? closed() : errorIn(document, error);
    return document;
  };
  const diagnose = async (request: ErrorRequest, patch: boolean) => {
    checkOptions(patch ? 'generatePatch' : 'analyzeError', request);
    const { stderr, command, files, model, signal } = request;
    return callTool('diagnose', { stderr, command, absolute_file_paths: files, model, patch }, { signal });
  };
  const cleanup = async () => {
    over.abort(closed());
    await product.close();
  };
  return {
    send: request => send(uuid(), request),
    stream: request => streamEvents((own, watch) => send(uuid(), own, watch), request),
    languageModel(name, options = {}) {
      check('languageModel', options, { name });
      return createLanguageModel(product, over.signal, name, options);
    },
    createConversation(options = {}) {
      check('createConversation', options);
      return createConversation(send, uuid, options);
    },
    setDefaults(next) {
      check('setDefaults', next);
      defaults = copyOf(next);
    },
    getDefaults: () => copyOf(defaults),
    async listModels(options = {}) {
      check('listModels', options);
      return listModels(product, options);
    },
    tokenStats: tally.stats,
    async summarizeFile(path, options = {}) {
      check('summarizeFile', options, { path });
      return shortForm(send, uuid(), options, { what: 'the file above', files: [path] });
    },
    async compressDiscussion(discussion, options = {}) {
      check('compressDiscussion', options, { discussion });
      return compressDiscussion(send, uuid(), discussion, options);
    },
    analyzeError: async request => analysisIn(await diagnose(request, false)),
    generatePatch: async request => patchIn(await diagnose(request, true)),
    callTool,
    commsLog: createCommsLog(product, uuid, check),
    on(name, listen) {
      check('on', { name, listener: listen });
      return emitter.on(name, listen);
    },
    cleanup,
    [Symbol.asyncDispose]: cleanup,
  };
}

function createLanguageModel(
  { complete, root }: Product,
  over: AbortSignal,
  name: string | undefined,
  { thread: wanted }: LanguageModelOptions,
): LanguageModel {
  let thread = wanted;
  const queue = createQueue();
  return servedModel(name ?? 'auto', async question => {
    try {
      throwIfAborted(over);
      checkOptions('providerOptions.polylogue', question.options);
      const request = { ...question, name, root, signal: joined(over, question.signal) };
      const id = textIn(question.options.continuation_id) || undefined;
      if (id !== undefined || thread === undefined) return await complete({ ...request, thread: id });
      const onThread = (begun: string) => {
        thread = begun;
      };
      return await queue.run('', () => complete({ ...request, thread, onThread }), request.signal);
    } catch (error) {
      throwIfAborted(over);
      throw error;
    }
  });
}

const createCommsLog = (product: Product, uuid: () => string, check: typeof checkOptions): Polylogue['commsLog'] => ({
  async read(filter = {}) {
    check('commsLog.read', filter);
    return exchangesOf(product).list({ limit: 100, ...defined(filter) });
  },
  async append(entry) {
    check('commsLog.append', entry);
    const { kind = 'request', reqId = uuid() } = entry;
    const direction = kind === 'request' || kind === 'tool_result' ? 'out' : 'in';
    const own = { reqId, exchange: reqId, direction, kind, tool: 'library', provider: 'library', model: '' } as const;
    const write = exchangesOf(product).append;
    if (!write) throw nothingKept();
    write({ ...entry, ...own, ...defined(entry) });
  },
  async clear() {
    check('commsLog.read', {});
    return exchangesOf(product).clear();
  },
});

const closed = (): Error =>
  cancelledError('This Polylogue was closed by cleanup().', { next: 'Make another one with createPolylogue().' });

const joined = (over: AbortSignal, own: AbortSignal | undefined): AbortSignal =>
  own ? AbortSignal.any([over, own]) : over;

async function listModels({ models: service }: Product, options: { fresh?: boolean }): Promise<ListedModel[]> {
  const providers = await service.providers(options);
  const models = providers.filter(({ configured }) => configured).flatMap(provider => provider.models);
  return models.map(({ provider, id, aliases, window, maxOutput, reasoning, tools, input, price }) => {
    const facts = { provider, id, aliases, window, maxOutput, reasoning, tools, input };
    return structuredClone({ name: `${provider}:${id}`, ...facts, ...(price && { price }) });
  });
}

function exchangesOf({ replay }: Product): NonNullable<Product['replay']> {
  if (replay) return replay;
  throw nothingKept();
}

const nothingKept = (): Error =>
  configError('Model calls are not recorded.', { next: 'Set COMMS_LOG=on, and let data be kept on disk.' });

/** Tokens of `text` at `model`, a name or an alias such as `openai:gpt-5` or `sonnet` (default: by o200k). Rather above than below. */
export function estimateTokensAt(text: string, model?: string): number {
  checkOptions('estimateTokens', { text, model });
  if (model === undefined) return estimateTokens(text);
  const names = model.toLowerCase().split(':');
  const known = loadCatalogue().find(({ id, aliases }) => names.some(name => name === id || aliases.includes(name)));
  return estimateTokens(text, tokenFactor(known?.id ?? model.replace(/^[\w-]+:/, '')));
}
