import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ActionParts, createActionContext } from '../calls/actions/actions.ts';
import { languageOf, preambleOf } from '../calls/ask/gather.ts';
import { createFileShortener } from '../calls/ask/shorten-files.ts';
import { createRateLimits } from '../calls/call-limits.ts';
import {
  panelLimits,
  promptSizeLimit,
  rateLimits,
  replyTokens,
  searchSettings,
  spendCaps,
  storePlace,
} from '../config/derived-settings.ts';
import { readIfPresent } from '../config/settings-files.ts';
import type { Clock, Emit, Mask, Random, SharedState } from '../core/ports.ts';
import type { EngineOptions } from '../engine/engine.ts';
import type { AgentTool } from '../engine/modes/agent/agent.ts';
import type { LocalToolServices } from '../engine/modes/agent/local-tools/local-tool.ts';
import type { AgentRunner, RunnerParts } from '../engine/modes/agent/runner.ts';
import type { ToolTable } from '../engine/tool-table.ts';
import type { ModelService } from '../models/call/models.ts';
import { createMeter, type Meter } from '../models/meter.ts';
import { createServiceMeter, type MeterService, paidEmbedder, paidSearcher } from '../models/paid-services.ts';
import { createClassifier } from '../models/routing/classifier.ts';
import type { Store } from '../storage/store.ts';
import type { Transfer } from '../threads/transfer/transfer.ts';
import type { Services } from './compose-models.ts';
import type { FileParts } from './compose-workspace.ts';
import type { AppConfig } from './settings.ts';

export interface EngineParts extends Pick<EngineOptions, 'bridge'> {
  values: AppConfig['values']['app'];
  context: ActionParts;
  table: ToolTable;
  team: ModelService;
  meter: Meter;
  state: SharedState;
  store: Store;
  files: FileParts;
  mask: Mask;
  random: Random;
  clock: Clock;
  emit: Emit;
  home: string;
  services: Pick<Services, 'documents' | 'web'>;
}

/** Settings and running parts → what the pipeline of a call is made of. */
export function composeEngine(parts: EngineParts): Omit<EngineOptions, 'diagnose'> {
  const { values, context, table, team, meter, state, store, files, random, clock, emit, home } = parts;
  const { threads } = context;
  return {
    table,
    random,
    threads,
    route: team.route,
    runsHere: team.runsHere,
    askModel: meter.ask,
    meter,
    classify: createClassifier({ ask: meter.ask, route: team.route, state, mode: values.aiManager }),
    webSearch: searchSettings(values),
    admit: createRateLimits({ limits: context.limits.rates, state, clock }),
    promptLimit: promptSizeLimit(values),
    replyTokens: replyTokens(values),
    replyFormat: values.replyFormat,
    efforts: { thinkdeep: values.thinkdeepEffort },
    panel: { ...panelLimits(values), pricing: pricingOf(values, team), maxCostUsd: values.maxCostPerRequest },
    fanout: {
      defaultModels: values.defaultModels ?? [],
      language: languageOf(values.locale),
      prefixes: team.prefixes,
    },
    bridge: parts.bridge,
    workflow: { expertAtCertain: values.expertAtCertain, compat: values.compat, offered: { git: files.git } },
    actionContext: call => createActionContext(context, call),
    compose: {
      store,
      sandbox: files.sandbox,
      pool: files.pool,
      condenser: createFileShortener(files.pool),
      indexes: files.indexes,
      mask: maskFor(values, parts.mask),
      clock,
      emit,
      newExchange: threads.newExchange,
      countTokens: files.pool.count.bind(files.pool),
      countPrompt: team.countPrompt,
      summaries: summariesOf(parts),
      home,
      ...(parts.services.documents && { documents: parts.services.documents }),
      preamble: preambleOf(values.locale),
      maxTurns: values.maxConversationTurns,
      maxFileBytes: values.maxFileBytes,
      maxNamedFiles: values.maxNamedFiles,
    },
  };
}

type Pricers = Pick<ModelService, 'isLocal' | 'cachesApart' | 'searches'>;

function pricingOf(
  { allowUnpricedModels: allowUnpriced }: EngineParts['values'],
  { isLocal, cachesApart, searches }: Pricers,
) {
  return { isLocal, cachesApart, searches, allowUnpriced };
}

/** What the operator switched off changes nothing. */
export function maskFor({ maskSecrets }: EngineParts['values'], mask: Mask): Mask {
  return maskSecrets ? mask : async text => ({ text, found: {} });
}

/** The models as everybody asks them: within what may be spent, and written down. */
export function wireMeter({
  values,
  team,
  store,
  clock,
  random,
  emit,
}: Pick<EngineParts, 'values' | 'team' | 'store' | 'clock' | 'random' | 'emit'>): Meter {
  const parts = { ask: team.ask, ledger: store.spend, clock, random, emit };
  return createMeter({ ...parts, caps: spendCaps(values), pricing: pricingOf(values, team) });
}

/** What vendors do beside answering, within the same limits and in the same ledger. */
export function wirePay({
  values,
  team,
  store,
  ...around
}: Pick<EngineParts, 'values' | 'clock' | 'random' | 'emit'> & {
  team: Pricers;
  store: Pick<Store, 'spend'>;
}): MeterService {
  return createServiceMeter({
    ...around,
    ledger: store.spend,
    caps: spendCaps(values),
    pricing: pricingOf(values, team),
  });
}

/** What makes vectors for the search index, paid like everything else. */
export function wireEmbedder({ embedder }: Pick<Services, 'embedder'>, parts: Parameters<typeof wirePay>[0]) {
  return embedder && paidEmbedder(embedder, 'search index', wirePay(parts));
}

function summariesOf({ values, team, meter, clock, emit }: EngineParts): EngineOptions['compose']['summaries'] {
  const { compactionModel: model } = values;
  return model === 'off' ? undefined : { model, route: team.route, ask: meter.ask, clock, emit };
}

/** What the handlers of actions are given. */
export function wireActions({
  values,
  team,
  emit,
  services,
  files,
  home,
  mask,
  ...parts
}: Pick<EngineParts, 'values' | 'team' | 'emit' | 'services' | 'files' | 'home' | 'mask' | 'random' | 'store'> &
  Pick<ActionParts, 'threads' | 'jobs' | 'clock' | 'product' | 'patience' | 'recent'> & {
    transfer: Transfer;
  }): ActionParts {
  const { limits: rates, unknown } = rateLimits(values);
  for (const word of unknown) {
    emit({ type: 'warning', where: 'RATE_LIMITS', message: `"${word}" is not of the form tool=number.` });
  }
  return {
    ...parts,
    emit,
    models: { ...team, defaultModel: values.defaultModel },
    limits: { ...spendCaps(values), rates },
    startedAt: parts.clock.monotonic(),
    replyTokens: replyTokens(values),
    uploads: {
      documents: services.documents,
      sandbox: files.sandbox,
      mask: maskFor(values, mask),
      home,
      maxNamedFiles: values.maxNamedFiles,
    },
    ...(services.web && {
      web: paidSearcher(services.web, 'glm_web_search', wirePay({ ...parts, values, team, emit })),
    }),
    files: { transfer: parts.transfer, sandbox: files.sandbox, random: parts.random, home },
  };
}

export interface AgentSurroundings
  extends Pick<RunnerParts, 'route' | 'clock' | 'random' | 'emit' | 'git' | 'home' | 'programEnv' | 'version'> {
  config: AppConfig;
  values: AppConfig['values']['app'];
  meter: Meter;
  compose: EngineOptions['compose'];
}

/** What a run of a program's own is called, and where it works. */
export type HandsOf = (run: Pick<LocalToolServices, 'reqId' | 'scope' | 'tool' | 'root'>) => Promise<AgentTool[]>;

export interface WiredAgent extends AgentRunner {
  /** The tools of the agent, for a run that somebody else conducts. */
  hands: HandsOf;
}

/** Settings → what lets models work. All of it is loaded with the first run. */
export function wireAgent(around: AgentSurroundings): WiredAgent {
  let opened: Promise<WiredAgent> | undefined;
  const open = () => {
    opened ??= openRunner(around);
    return opened;
  };
  return {
    conduct: async (call, pipeline) => (await open()).conduct(call, pipeline),
    hands: async run => (await open()).hands(run),
    close: async () => (await opened)?.close(),
  };
}

async function openRunner({ config, values, compose, meter, ...around }: AgentSurroundings): Promise<WiredAgent> {
  const { createAgentRunner } = await import('../engine/modes/agent/runner.ts');
  const { createLocalTools: hands } = await import('../engine/modes/agent/local-tools/local-tools.ts');
  const { usualCommands } = await import('../engine/modes/agent/local-tools/command-policy.ts');
  const { createGitHistory } = await import('../workspace/git/git.ts');
  const { readServerList } = await import('../engine/modes/agent/mcp-servers.ts');
  const { sandbox, mask, condenser, maxFileBytes } = compose;
  const { clock, programEnv, home } = around;
  const file = values.mcpServers;
  const text = file === undefined ? '{"mcpServers": {}}' : (readIfPresent(file) ?? '');
  const list = readServerList(text);
  if ('problem' in list) {
    around.emit({ type: 'warning', where: 'agent', message: `${file} can't be used: ${list.problem}.` });
  }
  const language = languageOf(values.locale);
  const { isPrivate } = storePlace(values, config.home);
  const parts: RunnerParts = {
    ...around,
    ...{ sandbox, mask, condenser, maxFileBytes, meter },
    askModel: meter.ask,
    history: createGitHistory({ clock, programEnv, sandbox, homeDir: home, mask }),
    backups: join(isPrivate ? tmpdir() : config.home, isPrivate ? 'polylogue-backups' : 'backups'),
    commands: values.agentCommands ?? usualCommands,
    commandMs: values.agentCommandSeconds * 1_000,
    fetches: values.agentFetch,
    policy: values.agentApprove,
    ...(values.maxCostPerRequest !== undefined && { perRequest: values.maxCostPerRequest }),
    ...(values.agentTriageModel !== undefined && { triageModel: values.agentTriageModel }),
    ...(language !== undefined && { language }),
    servers: 'problem' in list ? [] : list.servers,
  };
  return { ...createAgentRunner(parts), hands: run => hands({ ...parts, ...run }, false) };
}
