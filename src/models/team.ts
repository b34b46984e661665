import type { ModelInfo } from '../domain/model.ts';
import type { Clock, Emit, Random, SharedState } from '../domain/ports.ts';
import type { AskModel, CallLimits } from './answer.ts';
import { createAskModel } from './call.ts';
import { loadCatalogue } from './catalogue.ts';
import { createConnections, keyNames, usableSettings } from './connections.ts';
import { createLiveRoster } from './live-roster.ts';
import type { ProviderDefinition, ProviderSettings } from './provider.ts';
import { type Resolution, resolveModel } from './routing/resolve.ts';
import { type ModelRequest, type RoutingPolicy, settingOf } from './routing/roster.ts';
import { capabilitiesOf, type ProviderCapabilities } from './survey/capabilities.ts';

export interface TeamOptions {
  definitions: readonly ProviderDefinition[];
  /** By provider id; blanks and placeholders count as unset. */
  settings: Readonly<Record<string, ProviderSettings>>;
  policy: RoutingPolicy;
  /** The most a call may take, in milliseconds; absent: 300,000. */
  totalMs?: number;
  /** The most tokens that a model is given to think. */
  maxThinkingTokens: number;
  clock: Clock;
  random: Random;
  emit: Emit;
  /** What is known of vendors' health, uploads and caches. */
  state?: SharedState;
}

/** A provider as people see it. */
export interface ProviderState {
  id: string;
  /** Short forms of the id that may stand before the colon; the first is the usual one. */
  names: readonly string[];
  title: string;
  configured: boolean;
  /** The environment variable that makes it usable, where one does. */
  env: string[];
  /** Those that may be asked. */
  models: ModelInfo[];
}

/** All models together: who can be asked, and asking. */
export interface Team {
  route(request: ModelRequest): Promise<Resolution>;
  ask: AskModel;
  /** Whether a provider runs on this machine or network. */
  isLocal(providerId: string): boolean;
  /** The words that may stand before the colon of a model's name. */
  prefixes: readonly Pick<ProviderState, 'id' | 'names'>[];
  providers(): Promise<ProviderState[]>;
  /** What each provider is set up for, and what its models can do. */
  capabilities(): Promise<ProviderCapabilities[]>;
  /**
   * Asks a provider for its list of models; answers how many it has, undefined when it has no list. Throws an `AppError`, or
   * the signal's reason.
   */
  ping(providerId: string, signal: AbortSignal): Promise<number | undefined>;
}

const limits: CallLimits = { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 };

export function createTeam(options: TeamOptions): Team {
  const { definitions, settings, policy, maxThinkingTokens, clock, random, emit } = options;
  const connection = createConnections(definitions, settings);
  const roster = createLiveRoster({ definitions, settings, connection, catalogue: loadCatalogue, clock, emit });
  const local = definitions.filter(({ id, local }) => local?.(usableSettings(settings[id] ?? {}))).map(({ id }) => id);
  const isLocal = (providerId: string) => local.includes(providerId);
  const keyName = keyNames(definitions);
  const totalMs = options.totalMs ?? limits.totalMs;
  return {
    isLocal,
    prefixes: definitions,
    ask: createAskModel({ connection, clock, random, emit, isLocal, limits: { ...limits, totalMs }, keyName }),
    async route(request) {
      const resolution = resolveModel(request, await roster(), policy);
      const candidates = resolution.candidates.map(candidate => {
        const { thinkingBudget } = candidate;
        return thinkingBudget === undefined
          ? candidate
          : { ...candidate, thinkingBudget: Math.min(thinkingBudget, maxThinkingTokens) };
      });
      return { ...resolution, candidates };
    },
    async ping(providerId, signal) {
      const { list } = await connection(providerId);
      return list && (await list(signal)).length;
    },
    async capabilities() {
      const { providers: states, models } = await roster();
      return definitions
        .filter(({ onlyByName }) => !onlyByName || policy.offline)
        .map(definition => {
          const own = models.filter(({ provider, status }) => provider === definition.id && status === 'active');
          const listedAt = states.find(({ id }) => id === definition.id)?.listedAt;
          return capabilitiesOf(definition, settings[definition.id] ?? {}, { models: own, listedAt });
        });
    },
    async providers() {
      const { providers: states, models } = await roster();
      return definitions
        .filter(({ onlyByName }) => !onlyByName || policy.offline)
        .map(({ id, names, title, options: table }) => ({
          id,
          names,
          title,
          configured: states.find(state => state.id === id)?.configured ?? false,
          env: [settingOf(id), ...addressesAndKeys(table)].filter(name => name !== undefined).slice(0, 1),
          models: models.filter(model => model.provider === id && model.status === 'active'),
        }));
    },
  };
}

/** For providers that routing has no setting for. */
function addressesAndKeys(table: ProviderDefinition['options']): (string | undefined)[] {
  return Object.values(table).flatMap(({ env, secret, type }) => (secret || type === 'url' ? env.slice(0, 1) : []));
}
