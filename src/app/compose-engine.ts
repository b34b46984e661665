import { type ActionParts, createActionContext } from '../calls/actions/actions.ts';
import { createCondenser } from '../calls/ask/shorten-files.ts';
import { panelLimits, promptSizeLimit, replyTokens, searchSettings, spendCaps } from '../config/derived-settings.ts';
import type { Clock, Emit, Mask, Random, SharedState } from '../core/ports.ts';
import type { EngineOptions } from '../engine/engine.ts';
import { languageOf, preambleOf } from '../engine/gather/preamble.ts';
import { paidEmbedder } from '../engine/spend/paid-services.ts';
import { createRateLimits } from '../engine/spend/rate-limits.ts';
import type { ToolTable } from '../engine/tool-table.ts';
import type { Team } from '../models/call/models.ts';
import { createMeter, type Meter } from '../models/meter.ts';
import { createPay, type Pay } from '../models/paid-services.ts';
import { createClassifier } from '../models/routing/classifier.ts';
import type { Store } from '../storage/store.ts';
import type { Services } from '../wire/wire-services.ts';
import type { FileParts } from './compose-workspace.ts';
import type { AppConfig } from './settings.ts';

export interface EngineParts extends Pick<EngineOptions, 'bridge'> {
  values: AppConfig['values']['app'];
  context: ActionParts;
  table: ToolTable;
  team: Team;
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
export function wireEngine(parts: EngineParts): Omit<EngineOptions, 'diagnose'> {
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
      condenser: createCondenser(files.pool),
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

type Pricers = Pick<Team, 'isLocal' | 'cachesApart' | 'searches'>;

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
}: Pick<EngineParts, 'values' | 'clock' | 'random' | 'emit'> & { team: Pricers; store: Pick<Store, 'spend'> }): Pay {
  return createPay({ ...around, ledger: store.spend, caps: spendCaps(values), pricing: pricingOf(values, team) });
}

/** What makes vectors for the search index, paid like everything else. */
export function wireEmbedder({ embedder }: Pick<Services, 'embedder'>, parts: Parameters<typeof wirePay>[0]) {
  return embedder && paidEmbedder(embedder, 'search index', wirePay(parts));
}

function summariesOf({ values, team, meter, clock, emit }: EngineParts): EngineOptions['compose']['summaries'] {
  const { compactionModel: model } = values;
  return model === 'off' ? undefined : { model, route: team.route, ask: meter.ask, clock, emit };
}
