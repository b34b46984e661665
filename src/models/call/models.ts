import { setImmediate as turn } from 'node:timers/promises';
import { orAbort } from '../../core/concurrency.ts';
import { asError, isAppError, throwIfAborted } from '../../core/errors.ts';
import type { Message } from '../../core/message.ts';
import type { Candidate, ModelInfo } from '../../core/model.ts';
import type { Emit, SharedState } from '../../core/ports.ts';
import type { CallLimits, ModelQuestion } from '../ask-model.ts';
import { capabilitiesOf, modelsAdvice, settingFor, unknownNames } from '../catalogue/capabilities.ts';
import type { ConfiguredProvider, Connections } from '../catalogue/connections.ts';
import { configureProviders, createConnections, missingNames } from '../catalogue/connections.ts';
import { createModelSources, type ModelSources, type SourceOptions } from '../catalogue/model-sources.ts';
import type { Connection, LiveModel, ProviderDefinition, ProviderSettings } from '../provider.ts';
import { dryRunReason } from '../provider.ts';
import { upstreamOf } from '../resilience/breaker.ts';
import type { LimiterRules } from '../resilience/limiter.ts';
import { createResilience } from '../resilience/policy.ts';
import { candidatesFor } from '../routing/explain.ts';
import type { Resolution } from '../routing/resolve.ts';
import { createRestrictions, isRestriction, type ModelRequest, type RoutingPolicy } from '../routing/roster.ts';
import { listVendorCaches } from '../vendor-services.ts';
import { callOf, createAskModel } from './call.ts';
import type { AskModelParts } from './call-context.ts';
import { toPrompt } from './messages.ts';

/** A call waits no longer for a count that may as well be estimated. */
const patienceMs = 5_000;

type PromptToCount = Pick<ModelQuestion, 'reqId' | 'messages' | 'maxOutputTokens' | 'signal'> & {
  candidate: Candidate;
};

/** The vendor's own count of a prompt's tokens; undefined where it tells none in time. Throws only when the caller gave up. */
export function createCountPrompt(connection: (id: string) => Promise<Connection>, emit: Emit) {
  return async ({ reqId, candidate, messages, maxOutputTokens, signal }: PromptToCount) => {
    const { model, effort, thinkingBudget } = candidate;
    const within = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
    try {
      const open = await orAbort(connection(model.provider), within);
      if (!open.countTokens) return undefined;
      const { prompt } = toPrompt(messages, open, model);
      const providerOptions = open.providerOptions({ model, effort, thinkingBudget, maxOutputTokens });
      const call = { prompt, maxOutputTokens, providerOptions, abortSignal: within };
      return await orAbort(open.countTokens(model, call), within);
    } catch (error) {
      throwIfAborted(signal);
      const why = within.aborted ? `no answer within ${patienceMs / 1_000} s` : asError(error).message;
      const message = `${model.id} was not counted by its vendor, so that its tokens are estimated: ${why}`;
      emit({ type: 'warning', reqId, where: `tokens of ${model.provider}`, message });
      return undefined;
    }
  };
}

interface ModelServiceOptions extends Pick<AskModelParts, 'clock' | 'random' | 'emit' | 'logExchange' | 'lastAnswer'> {
  definitions: readonly ProviderDefinition[];
  /** By provider id; blanks and placeholders count as unset. */
  settings: Readonly<Record<string, ProviderSettings>>;
  policy: RoutingPolicy;
  /** The most a call may take, in milliseconds; absent: 300,000, longer for reasoning and local models. */
  totalMs?: number;
  /** The most tokens that a model is given to think. */
  maxThinkingTokens: number;
  /** Questions to models that run at the same time, in all and at one provider; absent: as below. */
  concurrency?: { total?: number; perProvider?: Readonly<Record<string, number>> };
  /** What is known of vendors' health, uploads and caches. */
  state?: SharedState;
  /** Where knowledge of models comes from, beside the catalogue and the vendors. */
  sources?: SourceOptions;
}

/** A provider as people see it. */
export type ProviderState = Awaited<ReturnType<ModelService['providers']>>[number];

/** All models together: who can be asked, and asking. */
export type ModelService = ReturnType<typeof createModelService>;

const usualLimits: CallLimits = { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 };

/** Above what one person's agents ask for at once; vendors say themselves when it is too much for them. */
const maxAtOnce = 256;

/** A machine at home answers a few at a time; the others would only wait there. */
const maxAtLocal = 16;

/** Waiting makes sense for so many times what can run. */
const queueFactor = 4;

/** What the operator says of one provider counts before what we think of its kind. */
function limiterRules(
  { total = maxAtOnce, perProvider = {} }: ModelServiceOptions['concurrency'] = {},
  isLocal: (providerId: string) => boolean,
): LimiterRules {
  const most = (id: string) => perProvider[id] ?? (isLocal(id) ? maxAtLocal : Number.POSITIVE_INFINITY);
  return { total, perProvider: most, queue: total * queueFactor };
}

export function createModelService(options: ModelServiceOptions) {
  const { definitions, settings, maxThinkingTokens, clock, emit, state } = options;
  const providers = configureProviders(definitions, settings);
  const connection = createConnections(providers, state && { clock, state });
  const sources = createModelSources({ ...options.sources, ...options, providers, connection });
  const byId = new Map(providers.map(provider => [provider.definition.id, provider]));
  const isLocal = (providerId: string) => byId.get(providerId)?.local ?? false;
  const searches = (model: ModelInfo) => byId.get(model.provider)?.searches(model) ?? false;
  const keyName = (providerId: string) => byId.get(providerId)?.keyName;
  const upstreams = providers.map(provider => upstreamOf(provider.definition, provider.settings));
  const limits = limiterRules(options.concurrency, isLocal);
  const resilience = createResilience({ ...options, upstreams, limits, keyName });
  const ailing = (model: ModelInfo) => resilience.blocked(model) !== undefined;
  const informed = async (request: ModelRequest) => {
    await resilience.refresh();
    return { ...request, ailing: request.ailing ?? ailing };
  };
  return {
    /** Whether a provider runs on this machine or network. */
    isLocal,
    /** Whether a prompt may be paid twice there in one call: to be kept, and to be read. */
    cachesApart: (providerId: string) => byId.get(providerId)?.cachesApart ?? false,
    /** Whether a provider's models run on this very machine: what they are asked does not leave it. */
    runsHere: (providerId: string) => byId.get(providerId)?.runsHere ?? false,
    searches,
    /** The words that may stand before the colon of a model's name. */
    prefixes: definitions,
    countPrompt: createCountPrompt(connection, emit),
    /** Fetches facts about models anew. */
    refresh: sources.refresh,
    /** What is wrong with the operator's files about models. */
    warnings: sources.warnings,
    ask: createAskModel({
      ...options,
      connection,
      isLocal,
      searches,
      limits: { ...usualLimits, ...(options.totalMs !== undefined && { totalMs: options.totalMs, exact: true }) },
      limitsOf: model => byId.get(model.provider)?.definition.limits?.(model),
      keyName,
      keysOf: providerId => byId.get(providerId)?.keys ?? [],
      resilience,
    }),
    /** What `route` would choose, and why nothing else. Asks no vendor for anything. */
    async explain(request: ModelRequest) {
      const explanation = await sources.explain(await informed(request));
      const paused = explanation.candidates.flatMap(({ model }) => resilience.blocked(model)?.message ?? []);
      return { ...explanation, warnings: [...new Set([...explanation.warnings, ...paused])] };
    },
    /** What `route` would choose, best first. Asks no vendor for anything. */
    candidates: async (request: ModelRequest) => sources.candidates(await informed(request)),
    /** Loads what the first question needs, and asks no vendor for anything. */
    warm: () => warm(sources, options.policy, [connection, createConnections(providers)]),
    /** Has vendors asked for their lists where those at hand are old, as a first call would; waits for servers of one's own alone. */
    lookAhead: async () => void (await sources.roster()),
    async route(request: ModelRequest): Promise<Resolution> {
      const resolution = await sources.route(await informed(request));
      const [first, ...others] = resolution.candidates;
      const bounded = (candidate: Candidate): Candidate => {
        const { thinkingBudget: budget } = candidate;
        return budget === undefined ? candidate : { ...candidate, thinkingBudget: Math.min(budget, maxThinkingTokens) };
      };
      return { ...resolution, candidates: [bounded(first), ...others.map(bounded)], searches: searches(first.model) };
    },
    /**
     * Asks a provider for its list of models: `listed` is how many it has, `none` where it answers without a list, undefined where
     * there is nothing to ask; `remark` is what is worth a word about its address. Throws an `AppError`, or the signal's reason.
     */
    async ping(providerId: string, signal: AbortSignal) {
      const { list, remark } = await connection(providerId);
      const listed = list && (await listedBy(list(signal)));
      if (typeof listed === 'number') await resilience.keyWorks(providerId);
      return { listed, remark: await remark?.(signal) };
    },
    /** What the account at a provider has left; undefined where the vendor does not tell. Throws like `ping`. */
    balance: async (providerId: string, signal: AbortSignal) => (await connection(providerId)).balance?.(signal),
    /** Has vendors drop what they keep for a thread that was removed, without waiting for them. */
    async forget(thread: string) {
      const all = state ? await listVendorCaches(state, clock) : [];
      const keepers = new Set(all.filter(cache => cache.thread === thread).map(({ provider }) => provider));
      await Promise.all([...keepers].map(async provider => (await connection(provider)).forget?.(thread)));
    },
    /** What is kept at vendors for the threads of this store, by whichever process; nothing where there is no shared state. */
    caches: async () => (state ? listVendorCaches(state, clock) : []),
    /** Before the store closes: resolves once other processes can learn what this one found out, and vendors keep nothing for it. */
    async close() {
      sources.close();
      await Promise.all([resilience.settled(), connection.close()]);
    },
    /** Questions to models that run in this process, and that wait for a place. */
    load: () => resilience.limiter.depth(),
    /** How providers and models do, as far as this process and those it shares a store with have found out. */
    async health() {
      await resilience.refresh();
      return resilience.health();
    },
    ...survey(options.policy, providers, sources),
  };
}

/** How servers answer that serve models and do not list them. */
const withoutList = new Set([404, 405, 501]);

async function listedBy(list: Promise<LiveModel[] | undefined>): Promise<number | 'none'> {
  try {
    return (await list)?.length ?? 'none';
  } catch (error) {
    if (isAppError(error) && withoutList.has(error.details.status ?? 0)) return 'none';
    throw error;
  }
}

/** The connections `apart` are used for nothing else, so that no made-up answer tells what a server has. */
async function warm(sources: ModelSources, policy: RoutingPolicy, [connection, apart]: [Connections, Connections]) {
  const text = 'What is the latest on this today, and when did it come out?';
  const task = { tool: 'chat', text, files: [], images: 0, estimatedTokens: 1 };
  const request = { category: 'fast_response', effort: 'medium', needs: {}, task } as const;
  const roster = await sources.rosterAlone();
  const [first] = candidatesFor({ ...request, name: 'auto' }, roster, policy);
  if (!first) return;
  const { provider, id } = first.model;
  candidatesFor({ ...request, name: id }, roster, policy);
  await connection(provider);
  await turn();
  const opened = await apart(provider);
  const messages: Message[] = [{ role: 'user', section: 'turn', parts: [{ type: 'text', text }] }];
  const signal = AbortSignal.abort(dryRunReason);
  const question = { reqId: '', tool: task.tool, messages, candidates: [first], maxOutputTokens: 1, signal };
  const { call } = callOf(question, first, opened, false);
  // The first event has the schemas of all events made.
  const { stream } = await opened.languageModel(first.model).doStream({ ...call, abortSignal: signal });
  for await (const _part of stream);
}

/** What is there, whoever is asked. */
function survey(policy: RoutingPolicy, providers: readonly ConfiguredProvider[], sources: ModelSources) {
  const shown = providers.filter(({ definition }) => !definition.onlyByName || policy.offline);
  const listed = providers.filter(provider => shown.includes(provider) || provider.definition.present);
  return {
    /** What each provider is set up for, and what its models can do. */
    async capabilities() {
      const [{ models }, listings] = await Promise.all([sources.roster(), sources.listings(false)]);
      return shown.map(each => {
        const { id } = each.definition;
        const own = models.filter(({ provider, status }) => provider === id && status === 'active');
        return capabilitiesOf(each, { models: own, listedSecondsAgo: listings.get(id)?.ageSeconds });
      });
    },
    /** What of the operator's lists of models means none; with `fresh`, by the vendors' lists of now, else by what is known at hand. */
    async unknownNames({ fresh = false } = {}) {
      if (policy.denied.length === 0 && Object.keys(policy.allowed).length === 0) return [];
      if (fresh) await sources.listings(true);
      return unknownNames(await (fresh ? sources.roster() : sources.rosterAlone()), policy);
    },
    /** The models that the operator lets be asked. With `fresh`, vendors whose list is old are asked for it, and waited for a few seconds at the most. */
    async providers({ fresh = false } = {}) {
      const listings = await sources.listings(fresh);
      const roster = await sources.roster();
      const refusalOf = createRestrictions(roster, policy);
      const stateOf = async (provider: ConfiguredProvider) => {
        const { definition, settings, configured } = provider;
        const { id, names, title, onlyByPrefix = false } = definition;
        const present = await definition.present?.();
        const setting = settingFor(definition);
        const missing = configured || setting === undefined ? setting : missingNames(definition, settings);
        const listing = listings.get(id);
        // Of what is advised against only those are sure to be there that have their end ahead.
        const isServed = ({ status, life, unlisted }: ModelInfo) =>
          !unlisted && (status === 'active' || (status !== 'retired' && life?.retired));
        const all = roster.models.filter(model => model.provider === id && isServed(model));
        const own = all.filter(model => !isRestriction(refusalOf(model)));
        return {
          id,
          /** Short forms of the id that may stand before the colon; the first is the usual one. */
          names,
          title,
          configured: configured && present?.size !== 0,
          /** The environment variables that make it usable, where any do. */
          env: missing?.split(' and ') ?? [],
          /** What makes it usable, as the end of a sentence: `set OPENAI_API_KEY`. Empty where nothing has to be done. */
          setUp: definition.setUp ?? (missing === undefined ? '' : `set ${missing}`),
          /** Its models are asked as `id:model` only, and never chosen. */
          onlyByPrefix,
          models: present ? own.filter(model => present.has(model.id)) : own,
          /** What to do where it has no models; empty where it has. */
          advice: own.length > 0 ? '' : modelsAdvice(provider, all.length > 0),
          /** What the vendor's own list said; absent where there is none, or it was not asked for. */
          ...(listing && { listing }),
        };
      };
      return Promise.all(listed.map(stateOf));
    },
  };
}
