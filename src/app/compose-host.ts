import type { ActionParts } from '../calls/actions/actions.ts';
import {
  type CallExplanation,
  createCallKind,
  createExplainer,
  type RouteQuestion,
} from '../calls/ask/explain-call.ts';
import type { IdempotentCalls } from '../calls/durable/idempotent-calls.ts';
import { detachAfterMs } from '../calls/durable/long-calls.ts';
import type { ToolDefinition } from '../calls/tool.ts';
import { securityError } from '../core/errors.ts';
import { requestId } from '../core/ids.ts';
import type { CallKind, Permissions, ToolHost, ToolRequest } from '../core/tool-host.ts';
import type { Complete } from '../engine/complete.ts';
import type { SendMessage } from '../engine/conversation.ts';
import { createEngine } from '../engine/engine.ts';
import { createHost } from '../engine/host.ts';
import { catalogueVersion } from '../engine/tool-table.ts';
import type { AskModel } from '../models/ask-model.ts';
import type { ModelService } from '../models/call/models.ts';
import type { Meter } from '../models/spend-meter.ts';
import { cliProviderId } from '../providers/external-cli/contract.ts';
import type { Transfer } from '../threads/transfer/transfer.ts';
import { composeActions, composeEngine, composeMeter, type EngineParts } from './compose-engine.ts';
import { composeExposure } from './compose-exposure.ts';
import type { VendorServices } from './compose-models.ts';
import { type CallerFiles, composeFilesWithin, type FileParts } from './compose-workspace.ts';
import type { AppConfig } from './settings.ts';

/** The models for callers with limited directories, without CLIs, because a CLI cannot be kept within them. */
export function withoutClis<Models extends Pick<ModelService, 'ask' | 'providers'>>(models: Models): Models {
  return {
    ...models,
    async ask(question) {
      if (question.candidates.some(({ model }) => model.provider === cliProviderId)) throw notForThem();
      return models.ask(question);
    },
    providers: async options => (await models.providers(options)).filter(({ id }) => id !== cliProviderId),
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
  models: EngineParts['models'];
  services: VendorServices;
  /** With the product's own roots. */
  files: FileParts;
  fileContext: Omit<CallerFiles, 'roots'>;
  threads: ActionParts['threads'];
  jobs: ActionParts['jobs'];
  idempotentCalls: IdempotentCalls;
  recent: ActionParts['recent'];
  transfer: Transfer;
  /** From outside the package; they come after those of the product. */
  extraTools?: readonly ToolDefinition[];
  /** Offered beside those of the toolsets, by name. */
  besides: readonly string[];
  facts: Pick<ActionParts['product'], 'version' | 'nodeVersion' | 'platform' | 'store'>;
}

/** The product as callers with the same permissions use it. */
export interface HostServices {
  host: ToolHost;
  /** The models, within what may be spent. */
  ask: AskModel;
  instructions: string;
  explain(question: RouteQuestion, root: string, signal: AbortSignal): Promise<CallExplanation>;
  /** What a call is expected to be. Never rejects. */
  kindOf(request: ToolRequest): Promise<CallKind>;
  /** Conversations that their callers keep. */
  converse: SendMessage;
  /** Questions of programs of the AI SDK. */
  complete: Complete;
  /** Ends the agent runs that wait for their callers. */
  settle(): Promise<void>;
  /** Resolves when the ledger has everything. */
  flush(): Promise<void>;
}

/** Running parts → the host of callers with these permissions; `roots` of theirs are real folders. `isAlone`: there are no others. */
export function composeHost(shared: SharedParts, permissions: Permissions, isAlone = false): HostServices {
  const { config, store, threads, idempotentCalls, random, clock, emit, facts } = shared;
  const values = narrowValues(config.values.app, permissions);
  const { roots } = permissions;
  const files = roots ? composeFilesWithin(config, shared.files, { ...shared.fileContext, roots }) : shared.files;
  const { configured } = shared.services;
  // A CLI reads whatever its user may read, so callers with limited roots get none unless they are the only ones.
  const [askable, besides] = roots && !isAlone ? [withoutClis(shared.models)] : [shared.models, shared.besides];
  const parts = { configured, extraTools: shared.extraTools, besides };
  const { exposed, table, prompts, instructions } = composeExposure(values, parts, permissions);
  const meter: Meter = composeMeter({ values, models: askable, store, clock, random, emit });
  const models = { ...askable, ask: meter.ask };
  const { sandbox } = files;
  const product = {
    ...facts,
    catalogueVersion: '',
    roots: sandbox.roots,
    tools: exposed.tools.map(({ name }) => name),
  };
  let sender: SendMessage | undefined;
  const patience = (client?: string) => detachAfterMs(client, values.callPatienceSeconds);
  const context = composeActions({ ...shared, values, models, meter, files, product, patience });
  const { services, agent } = composeEngine({
    ...shared,
    ...{ values, context, table, models, meter, files },
    childEnv: shared.fileContext.childEnv,
    platform: shared.fileContext.platform,
    version: facts.version,
  });
  const engine = createEngine(services);
  product.catalogueVersion = catalogueVersion(engine.list());
  const explained = { tools: exposed.tools, explain: models.explain };
  const explain = createExplainer(services, explained);
  return {
    host: createHost({
      ...context,
      threads,
      engine,
      exposed,
      prompts,
      emit,
      idempotentCalls,
      world: services,
      replyFormat: values.replyFormat,
      replyTokens: services.replyTokens,
    }),
    ask: meter.ask,
    instructions,
    explain: (question, root, signal) =>
      explain(question, { root, owner: 'local', reqId: requestId(random.uuid()), signal }),
    kindOf: createCallKind(services, explained),
    async converse(request) {
      const { createSendMessage } = await import('../engine/conversation.ts');
      sender ??= createSendMessage({ ...services, triageModel: values.agentTriageModel }, agent.localTools);
      return sender(request);
    },
    async complete(request) {
      const { createComplete } = await import('../engine/complete.ts');
      return createComplete(services)(request);
    },
    settle: agent.close,
    flush: () => meter.flush(),
  };
}

/** Settings with the caller's lower spending limit applied. */
function narrowValues(values: AppConfig['values']['app'], { maxCostPerDay: own }: Permissions) {
  const { maxCostPerDay = own } = values;
  return { ...values, maxCostPerDay: own === undefined ? maxCostPerDay : Math.min(own, maxCostPerDay ?? own) };
}
