import type { ActionParts } from '../calls/actions/actions.ts';
import { createCallKind, createExplainer, type RouteQuestion } from '../calls/ask/explain-call.ts';
import type { IdempotentCalls } from '../calls/durable/idempotent-calls.ts';
import { patienceOf } from '../calls/durable/long-calls.ts';
import { type ToolDefinition, workflowOf } from '../calls/tool.ts';
import { exposurePolicy } from '../config/derived-settings.ts';
import { securityError } from '../core/errors.ts';
import { requestId } from '../core/ids.ts';
import type { Permissions, ToolListing } from '../core/tool-host.ts';
import type { CompleteRequest } from '../engine/complete.ts';
import type { SendMessage } from '../engine/conversation.ts';
import { createEngine, createToolTable, type KnownListings } from '../engine/engine.ts';
import { catalogueVersion, createPrompts, narrowExposure } from '../engine/exposure.ts';
import { createHost } from '../engine/host.ts';
import { instructionsFor } from '../engine/offer.ts';
import type { ModelService } from '../models/call/models.ts';
import type { Meter } from '../models/spend-meter.ts';
import { cliProviderId } from '../providers/external-cli/contract.ts';
import type { Transfer } from '../threads/transfer/transfer.ts';
import { tools } from '../tools/index.gen.ts';
import { offered } from '../tools/offered.gen.ts';
import { composeActions, composeEngine, composeMeter, type EngineParts } from './compose-engine.ts';
import type { VendorServices } from './compose-models.ts';
import { type CallerFiles, composeFilesWithin, type FileParts } from './compose-workspace.ts';

/** Everybody who may use all of it. */
export const unlimited: Permissions = { readOnly: false };

/** To make them from fields is half of what listing the tools takes, so that it was done before. */
const known: KnownListings = new Map(
  tools.flatMap((tool): [ToolDefinition, ToolListing][] => {
    const found = offered.find(({ name }) => name === tool.name);
    return found ? [[tool, found.listing]] : [];
  }),
);

/** The models for callers with limited directories, without CLIs, because a CLI cannot be kept within them. */
export const withoutClis = <Models extends Pick<ModelService, 'ask' | 'providers'>>(models: Models): Models => ({
  ...models,
  async ask(question) {
    if (question.candidates.some(({ model }) => model.provider === cliProviderId))
      throw securityError(
        'CLIs are not for callers whose directories are limited: they read what their user may read.',
        { class: 'restricted', next: 'Name a model, or ask the operator for a token without roots.' },
      );
    return models.ask(question);
  },
  providers: async options => (await models.providers(options)).filter(({ id }) => id !== cliProviderId),
});

/** What all callers of one process share. */
export interface SharedParts
  extends Pick<
      EngineParts,
      'config' | 'models' | 'state' | 'store' | 'mask' | 'random' | 'clock' | 'emit' | 'home' | 'clis'
    >,
    Pick<ActionParts, 'threads' | 'jobs' | 'recent'> {
  services: VendorServices;
  /** With the product's own roots. */
  files: FileParts;
  fileContext: Omit<CallerFiles, 'roots'>;
  idempotentCalls: IdempotentCalls;
  transfer: Transfer;
  /** From outside the package; they come after those of the product. */
  extraTools?: readonly ToolDefinition[];
  /** Offered beside those of the toolsets, by name. */
  besides: readonly string[];
  facts: Pick<ActionParts['product'], 'version' | 'nodeVersion' | 'platform' | 'store'>;
}

/** The product as callers with the same permissions use it. */
export type HostServices = ReturnType<typeof composeHost>;

/** Running parts → the host of callers with these permissions; `roots` of theirs are real folders. `isAlone`: there are no others. */
export function composeHost(shared: SharedParts, permissions: Permissions, isAlone = false) {
  const { config, store, idempotentCalls, random, clock, emit, facts } = shared;
  const { roots, maxCostPerDay: own } = permissions;
  const { app } = config.values;
  // A caller's own spending limit holds where it is the lower one.
  const values = own === undefined ? app : { ...app, maxCostPerDay: Math.min(own, app.maxCostPerDay ?? own) };
  const files = roots ? composeFilesWithin(config, shared.files, { ...shared.fileContext, roots }) : shared.files;
  // A CLI reads whatever its user may read, so callers with limited roots get none unless they are the only ones.
  const [askable, besides] = roots && !isAlone ? [withoutClis(shared.models)] : [shared.models, shared.besides];
  const policy = { ...exposurePolicy(values), configured: shared.services.configured, besides };
  const all = [...tools, ...(shared.extraTools ?? [])];
  const exposed = narrowExposure(all, policy, permissions);
  // Those that need a provider's key, wherever that is set: whatever toolsets and profile are offered to clients.
  const keyed = narrowExposure(all, { ...policy, profile: 'full', only: [] }, permissions).tools;
  const lent = keyed.filter(({ needs }) => needs !== undefined);
  const meter: Meter = composeMeter({ values, models: askable, store, clock, random, emit });
  const models = { ...askable, ask: meter.ask };
  const names = exposed.tools.map(({ name }) => name);
  const product = { ...facts, catalogueVersion: '', roots: files.sandbox.roots, tools: names };
  let sender: SendMessage | undefined;
  const patience = patienceOf(values.callPatienceSeconds);
  const context = composeActions({ ...shared, values, models, meter, files, product, patience });
  const { services, agent } = composeEngine({
    ...shared,
    ...{ values, context, models, meter, files, lent },
    table: createToolTable(exposed, known),
    childEnv: shared.fileContext.childEnv,
    platform: shared.fileContext.platform,
    version: facts.version,
  });
  const engine = createEngine(services);
  product.catalogueVersion = catalogueVersion(engine.list());
  const explain = createExplainer(services, { tools: exposed.tools, explain: models.explain });
  return {
    host: createHost({
      ...context,
      ...{ engine, exposed, idempotentCalls },
      prompts: createPrompts(exposed),
      world: services,
      replyFormat: values.replyFormat,
    }),
    /** The models, within what may be spent. */
    ask: meter.ask,
    instructions: instructionsFor(exposed.tools.filter(workflowOf).map(({ name }) => name)),
    explain: (question: RouteQuestion, root: string, signal: AbortSignal) =>
      explain(question, { root, owner: 'local', reqId: requestId(random.uuid()), signal }),
    /** What a call is expected to be. Never rejects. */
    kindOf: createCallKind(services, { tools: exposed.tools, candidates: models.candidates }),
    /** Conversations that their callers keep. */
    async converse(request: Parameters<SendMessage>[0]) {
      const { createSendMessage } = await import('../engine/conversation.ts');
      sender ??= createSendMessage({ ...services, triageModel: values.agentTriageModel }, agent.localTools);
      return sender(request);
    },
    /** Questions of programs of the AI SDK. */
    async complete(request: CompleteRequest) {
      const { complete } = await import('../engine/complete.ts');
      return complete(services, request);
    },
    /** Ends the agent runs that wait for their callers. */
    settle: agent.close,
    /** Resolves when the ledger has everything. */
    flush: () => meter.flush(),
  };
}
