import type { ActionParts } from '../calls/actions/actions.ts';
import {
  type CallExplanation,
  createCallKind,
  createExplainer,
  type RouteQuestion,
} from '../calls/ask/explain-call.ts';
import { patienceMs } from '../calls/durable/long-calls.ts';
import { createIdempotentCalls } from '../calls/durable/once.ts';
import type { ToolDefinition } from '../calls/tool.ts';
import { securityError } from '../core/errors.ts';
import { requestId } from '../core/ids.ts';
import type { CallKind, Permissions, ToolHost, ToolRequest } from '../core/tool-host.ts';
import type { SendMessage } from '../engine/conversation.ts';
import { createEngine } from '../engine/engine.ts';
import { createHost } from '../engine/host.ts';
import { catalogueVersion } from '../engine/tool-table.ts';
import type { AskModel } from '../models/ask-model.ts';
import type { ModelService } from '../models/call/models.ts';
import type { Meter } from '../models/meter.ts';
import { programProviderId } from '../providers/external-cli/program.ts';
import type { Transfer } from '../threads/transfer/transfer.ts';
import { type WiredOffer, wireOffer } from './compose-catalog.ts';
import { composeEngine, type EngineParts, wireActions, wireMeter } from './compose-engine.ts';
import type { Services } from './compose-models.ts';
import { type CallerFiles, type FileParts, wireFilesWithin } from './compose-workspace.ts';
import type { AppConfig } from './settings.ts';

/** The models for somebody who may only read some directories: no program is among them, for none can be kept there. */
export function withoutPrograms<Models extends Pick<ModelService, 'ask' | 'providers'>>(team: Models): Models {
  return {
    ...team,
    async ask(question) {
      if (question.candidates.some(({ model }) => model.provider === programProviderId)) throw notForThem();
      return team.ask(question);
    },
    providers: async options => (await team.providers(options)).filter(({ id }) => id !== programProviderId),
  };
}

function notForThem() {
  return securityError('CLIs are not for callers whose directories are limited: they read what their user may read.', {
    class: 'restricted',
    next: 'Name a model, or ask the operator for a token without roots.',
  });
}

/** What all callers of one process share. */
export interface SharedParts
  extends Pick<EngineParts, 'state' | 'store' | 'mask' | 'random' | 'clock' | 'emit' | 'home' | 'clis'> {
  config: AppConfig;
  team: EngineParts['team'];
  services: Services;
  /** With the product's own roots. */
  files: FileParts;
  around: Omit<CallerFiles, 'roots'>;
  threads: ActionParts['threads'];
  jobs: ActionParts['jobs'];
  recent: ActionParts['recent'];
  transfer: Transfer;
  /** From outside the package; they come after those of the product. */
  extraTools?: readonly ToolDefinition[];
  facts: Pick<ActionParts['product'], 'version' | 'nodeVersion' | 'platform' | 'store'>;
}

/** The product as callers with the same permissions use it. */
export interface WiredHost {
  host: ToolHost;
  /** The models, within what may be spent. */
  ask: AskModel;
  instructions: string;
  explain(question: RouteQuestion, root: string, signal: AbortSignal): Promise<CallExplanation>;
  /** What a call is expected to be. Never rejects. */
  kindOf(request: ToolRequest): Promise<CallKind>;
  /** Conversations that their callers keep. */
  converse: SendMessage;
  /** Gives calls whose callers are gone their grace, or until `hurry` is aborted. */
  settle(hurry?: AbortSignal): Promise<void>;
  /** Resolves when the ledger has everything. */
  flush(): Promise<void>;
}

/** What else is known of callers. */
export interface HostAround {
  /** What they are told of, where that is made already. */
  offered?: WiredOffer;
  /** The process serves nobody else. */
  isAlone?: boolean;
}

/** Running parts → the host of callers with these permissions; `roots` of theirs are real folders. */
export function composeHost(
  shared: SharedParts,
  permissions: Permissions,
  { offered, isAlone = false }: HostAround = {},
): WiredHost {
  const { config, store, threads, jobs, random, clock, emit, facts } = shared;
  const values = narrowValues(config.values.app, permissions);
  const { roots } = permissions;
  const files = roots ? wireFilesWithin(config, shared.files, { ...shared.around, roots }) : shared.files;
  const { configured } = shared.services;
  const told = offered ?? wireOffer(values, { configured, extraTools: shared.extraTools }, permissions);
  const { offer, table, prompts, instructions } = told;
  // A program reads whatever its user may read: it is for those whose roots are the process's own, and for who is alone.
  const askable = roots && !isAlone ? withoutPrograms(shared.team) : shared.team;
  const meter: Meter = wireMeter({ values, team: askable, store, clock, random, emit });
  const team = { ...askable, ask: meter.ask };
  const { sandbox } = files;
  const product = { ...facts, catalogueVersion: '', roots: sandbox.roots, tools: offer.tools.map(({ name }) => name) };
  const patience = (client?: string) => patienceMs(client, values.callPatienceSeconds);
  const context = wireActions({ ...shared, values, team, files, product, patience });
  const { services, agent } = composeEngine({
    ...shared,
    ...{ values, context, table, team, meter, files },
    programEnv: shared.around.programEnv,
    version: facts.version,
  });
  const engine = createEngine(services);
  product.catalogueVersion = catalogueVersion(engine.list());
  const graceMs = values.detachedGraceSeconds * 1_000;
  const once = createIdempotentCalls({ ...services, jobs, graceMs });
  const explained = { tools: offer.tools, explain: team.explain };
  const explain = createExplainer(services, explained);
  return {
    host: createHost({ ...context, threads, engine, offer, prompts, emit, once, replyFormat: values.replyFormat }),
    ask: meter.ask,
    instructions,
    explain: (question, root, signal) =>
      explain(question, { root, owner: 'local', reqId: requestId(random.uuid()), signal }),
    kindOf: createCallKind(services, explained),
    async converse(request) {
      const { createConverse } = await import('../engine/conversation.ts');
      return createConverse(services, agent.localTools)(request);
    },
    async settle(hurry) {
      await agent.close();
      await once.close(hurry);
    },
    flush: () => meter.flush(),
  };
}

/** The settings as they are for somebody who may spend less. */
function narrowValues(values: AppConfig['values']['app'], { maxCostPerDay: own }: Permissions) {
  const { maxCostPerDay = own } = values;
  return { ...values, maxCostPerDay: own === undefined ? maxCostPerDay : Math.min(own, maxCostPerDay ?? own) };
}
