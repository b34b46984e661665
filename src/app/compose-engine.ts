import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ActionCall, type ActionParts, createActionContext } from '../calls/actions/actions.ts';
import { languageOf, preambleOf } from '../calls/ask/prepare-context.ts';
import { createFileShortener } from '../calls/ask/shorten-files.ts';
import { createRateLimits } from '../calls/call-limits.ts';
import type { ToolDefinition } from '../calls/tool.ts';
import * as derived from '../config/derived-settings.ts';
import { readIfPresent } from '../config/settings-files.ts';
import type { LocalToolsOf } from '../engine/conversation.ts';
import { createInnerToolCaller, type EngineServices } from '../engine/engine.ts';
import type { CommandSandbox } from '../engine/modes/agent/local-tools/command-sandbox.ts';
import type { RunnerParts } from '../engine/modes/agent/runner.ts';
import type { AgentRunner } from '../engine/modes/mode.ts';
import type { ModelService } from '../models/call/models.ts';
import { createServiceMeter, paidEmbedder, paidSearcher } from '../models/paid-services.ts';
import { createClassifier } from '../models/routing/classifier.ts';
import { createMeter, type Meter } from '../models/spend-meter.ts';
import { processMarks } from '../storage/process-mark.ts';
import { createStoredState, currentDay, withStoreDays } from '../storage/shared-state.ts';
import { createGitHistory } from '../workspace/git/git.ts';
import type { ProcessEnvironment } from './compose-front.ts';
import type { VendorServices } from './compose-models.ts';
import { type FileParts, maskFor } from './compose-workspace.ts';
import type { AppConfig } from './settings.ts';

export interface EngineParts
  extends Pick<EngineServices, 'clis' | 'table' | 'store' | 'mask' | 'random' | 'clock' | 'emit' | 'home'>,
    Pick<RunnerParts, 'state' | 'childEnv' | 'version'> {
  config: AppConfig;
  values: AppConfig['values']['app'];
  context: ActionParts;
  models: ModelService;
  files: FileParts;
  meter: Meter;
  services: Pick<VendorServices, 'documents' | 'web'>;
  /** Tools of the product that the agent may call too. */
  lent: readonly ToolDefinition[];
  platform: string;
}

/** The services of all callers with the same permissions, and the agent. */
export function composeEngine(parts: EngineParts) {
  const { values, context, table, models, meter, state, store, files, random, clock, emit, home } = parts;
  const { threads } = context;
  const { git, pool, sandbox, indexes, backups } = files;
  const { replyFormat, maxFileBytes, maxNamedFiles } = values;
  const language = languageOf(values.locale);
  const services = {
    ...{ table, random, threads, meter, store, sandbox, pool, indexes, clock, emit, home },
    route: models.route,
    runsHere: models.runsHere,
    askModel: meter.ask,
    reserve: meter.reserve,
    leftToSpend: meter.left,
    attempts: meter.attempts,
    classify: createClassifier({ ask: meter.ask, route: models.route, state, mode: values.aiManager }),
    webSearch: derived.searchSettings(values),
    admit: createRateLimits(context.limits.rates, state, clock),
    promptLimit: derived.promptSizeLimit(values),
    replyTokens: derived.replyTokens(values),
    efforts: { thinkdeep: values.thinkdeepEffort },
    panel: { modelMs: values.consensusModelTimeoutSeconds * 1_000, totalMs: values.consensusTimeoutSeconds * 1_000 },
    fanout: { defaultModels: values.defaultModels ?? [], language, prefixes: models.prefixes },
    clis: parts.clis,
    workflow: { expertAtCertain: values.expertAtCertain, compat: values.compat, git },
    diagnose: { git, backups },
    actionContext: (call: ActionCall) => createActionContext(context, call),
    fileShortener: createFileShortener(pool),
    mask: maskFor(values, parts.mask),
    countTokens: pool.count.bind(pool),
    countPrompt: models.countPrompt,
    ...(values.compactionModel !== 'off' && { compactionModel: values.compactionModel }),
    ...(parts.services.documents && { documents: parts.services.documents }),
    preamble: preambleOf(values.locale),
    maxTurns: values.maxConversationTurns,
    ...{ replyFormat, maxFileBytes, maxNamedFiles },
  };
  const agent = composeAgent(parts, services);
  return { services: { ...services, agent }, agent };
}

type MeterParts = Pick<EngineParts, 'values' | 'models' | 'store' | 'clock' | 'random' | 'emit'>;

/** Asks models within the limits on cost, and records the spending. */
export function composeMeter({ values, models, store, ...around }: MeterParts): Meter {
  const { ask, isLocal, cachesApart, searches } = models;
  const pricing = { isLocal, cachesApart, searches, allowUnpriced: values.allowUnpricedModels };
  const caps = derived.spendCaps(values);
  const { clock } = around;
  const byDays = () => withStoreDays(store.spend, createStoredState(store, clock), clock);
  return createMeter({ ...around, ask, ledger: caps.perDay === undefined ? store.spend : byDays(), caps, pricing });
}

/** Embeds text for the search index, within the limits on cost. */
export const composeEmbedder = ({ embedder }: Pick<VendorServices, 'embedder'>, parts: MeterParts) =>
  embedder && paidEmbedder(embedder, 'search index', createServiceMeter(composeMeter(parts).limits));

type ActionSources = Pick<
  EngineParts,
  'values' | 'models' | 'services' | 'files' | 'home' | 'mask' | 'meter' | 'random'
> &
  Pick<ActionParts, 'emit' | 'threads' | 'jobs' | 'clock' | 'product' | 'patience' | 'recent' | 'transfer'>;

/** What the handlers of actions are given. */
export function composeActions(parts: ActionSources): ActionParts {
  const { values, models, services, files, meter, emit, clock } = parts;
  const { documents, web } = services;
  const { limits: rates, unknown } = derived.rateLimits(values);
  for (const word of unknown)
    emit({ type: 'warning', where: 'RATE_LIMITS', message: `"${word}" is not of the form tool=number.` });
  return {
    ...parts,
    models: { ...models, defaultModel: values.defaultModel },
    limits: { ...derived.spendCaps(values), rates },
    startedAt: clock.monotonic(),
    today: owner => currentDay(createStoredState(parts.threads.store, clock), owner, clock),
    replyTokens: derived.replyTokens(values),
    sandbox: files.sandbox,
    documents,
    mask: maskFor(values, parts.mask),
    maxNamedFiles: values.maxNamedFiles,
    ...(web && { web: paidSearcher(web, 'glm_web_search', createServiceMeter(meter.limits)) }),
  };
}

/** A folder for temporary files that no other user has, who may have made his own. */
const ofUser = (name: string): string => join(tmpdir(), `${name}-${process.getuid?.() ?? 'user'}`);

/** Where commands of an agent run. */
export async function composeCommandSandbox(
  { values: { app }, home }: AppConfig,
  { childEnv, platform, homeDir }: Pick<ProcessEnvironment, 'childEnv' | 'platform' | 'homeDir'>,
  projects: readonly string[],
): Promise<CommandSandbox> {
  const { createCommandSandbox } = await import('../engine/modes/agent/local-tools/command-sandbox.ts');
  const isPrivate = derived.storePlace(app, home).isPrivate;
  const kept = isPrivate ? ofUser('polylogue-commands') : join(home, 'agent-commands');
  const { agentSandbox: mode, agentNetwork: network } = app;
  const places = { home: homeDir, own: home, kept };
  return createCommandSandbox({ mode, network, childEnv, platform, projects, ...places, marks: processMarks() });
}

export interface ComposedAgent extends AgentRunner {
  /** The agent's tools, for a run that a client conducts. */
  localTools: LocalToolsOf;
}

/** Settings → what lets models work. All of it is loaded with the first run. */
function composeAgent(parts: EngineParts, services: Omit<EngineServices, 'agent'>): ComposedAgent {
  let opened: Promise<ComposedAgent> | undefined;
  const open = () => {
    opened ??= openRunner(parts, { ...services, agent });
    return opened;
  };
  const agent: ComposedAgent = {
    execute: async (call, own) => (await open()).execute(call, own),
    localTools: async run => (await open()).localTools(run),
    close: async () => (await opened?.catch(() => undefined))?.close(),
  };
  return agent;
}

async function openRunner(
  { config, values, meter, state, files: { git }, childEnv, platform, version, lent }: EngineParts,
  services: EngineServices,
): Promise<ComposedAgent> {
  const { createAgentRunner } = await import('../engine/modes/agent/runner.ts');
  const { createLocalTools, productTools } = await import('../engine/modes/agent/local-tools/local-tools.ts');
  const { readServerList } = await import('../engine/modes/agent/mcp-servers.ts');
  const { sandbox, mask, clock, emit, home } = services;
  const file = values.mcpServers;
  const list = readServerList(file === undefined ? '{"mcpServers": {}}' : (readIfPresent(file) ?? ''));
  if ('problem' in list) emit({ type: 'warning', where: 'agent', message: `${file} cannot be used: ${list.problem}.` });
  const call = createInnerToolCaller(services);
  const { isPrivate } = derived.storePlace(values, config.home);
  const runner: RunnerParts = {
    ...services,
    ...{ meter, state, git, childEnv, version },
    history: createGitHistory({ clock, childEnv, sandbox, homeDir: home, mask }),
    backups: isPrivate ? ofUser('polylogue-backups') : join(config.home, 'backups'),
    commands: values.agentCommands,
    commandSandbox: await composeCommandSandbox(config, { childEnv, platform, homeDir: home }, sandbox.roots),
    commandMs: values.agentCommandSeconds * 1_000,
    fetches: values.agentFetch,
    productTools: run => productTools(lent, call, run),
    policy: values.agentApprove,
    perRequest: values.maxCostPerRequest,
    triageModel: values.agentTriageModel,
    language: languageOf(values.locale),
    servers: 'problem' in list ? [] : list.servers,
  };
  return { ...createAgentRunner(runner), localTools: run => createLocalTools({ ...runner, ...run }) };
}
