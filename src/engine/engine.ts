import { z } from 'zod';
import type { ActionContext } from '../calls/action-context.ts';
import type { ActionCall } from '../calls/actions/actions.ts';
import { parseArguments } from '../calls/arguments.ts';
import { type AskOptions, askModelTurn, recordLocalTurn } from '../calls/ask/ask.ts';
import type { ContextServices } from '../calls/ask/options.ts';
import { maskArguments, maskDocument } from '../calls/ask/redaction.ts';
import type { Admit } from '../calls/call-limits.ts';
import { assertArgumentLengths, assertArgumentShape } from '../calls/call-limits.ts';
import type { ModelTurn, ParsedCall, ThreadedCall, TurnPlan } from '../calls/call-record.ts';
import { createProgress, type Report } from '../calls/call-record.ts';
import { continuationId, hiddenFields, modelField } from '../calls/fields.ts';
import { type ReplyFormat, renderReply, truncateDocument } from '../calls/format-reply.ts';
import { errorReply, localMetadata, type Reply, successReply } from '../calls/reply.ts';
import type { WorkflowMode } from '../calls/tool.ts';
import { isAppError } from '../core/errors.ts';
import { requestId } from '../core/ids.ts';
import { isRecord, type JsonObject } from '../core/json.ts';
import type { Emit, Mask, Random } from '../core/ports.ts';
import { safeCut } from '../core/text.ts';
import type { Thread } from '../core/thread.ts';
import type { ToolHost, ToolReply, ToolRequest } from '../core/tool-host.ts';
import type { Meter } from '../models/meter.ts';
import type { CliRegistry } from '../providers/external-cli/cli-registry.ts';
import { scopesOf } from '../threads/threads.ts';
import { createTracer } from '../workspace/call-graph/tracer.ts';
import { listSourceFiles, missingPaths } from '../workspace/find-files.ts';
import type { AgentRunner } from './modes/agent/runner.ts';
import type { FanoutSettings } from './modes/ask-many/ask-each.ts';
import { executeFanout } from './modes/ask-many/fanout.ts';
import { executePanel, type PanelSettings } from './modes/ask-many/panel.ts';
import type { DiagnoseSettings } from './modes/diagnose/diagnose.ts';
import { executeExternalCli } from './modes/external-cli.ts';
import { planPrompt } from './modes/prompt.ts';
import { planWorkflow, type StepFiles, type WorkflowSettings } from './modes/workflow/workflow.ts';
import { longestToolName, type ToolTable } from './tool-table.ts';

export interface EngineOptions extends AskOptions {
  /** What may be called. */
  table: ToolTable;
  random: Random;
  /** Keeps calls to what they may cost. */
  meter: Pick<Meter, 'begin' | 'end'>;
  /** Throws where a client calls a tool too often. */
  admit: Admit;
  workflow: WorkflowSettings;
  panel: PanelSettings;
  fanout: FanoutSettings;
  diagnose: Omit<DiagnoseSettings, 'replyTokens'>;
  /** The CLIs of this machine. */
  bridge: CliRegistry;
  /** The most characters of one text field. */
  promptLimit: number;
  replyFormat: ReplyFormat;
  /** What an action's handler may touch, for one caller. */
  actionContext(call: ActionCall): ActionContext;
}

function reasonOf({ error }: JsonObject): string | undefined {
  return isRecord(error) && typeof error.message === 'string' ? error.message : undefined;
}

const commonFields = z.object({ ...hiddenFields, model: modelField, continuation_id: continuationId });

/** The pipeline of a call: parse → resume → (resolve → gather → ask) → remember → reply. */
export function createEngine(options: EngineOptions & { agent: AgentRunner }): Pick<ToolHost, 'list' | 'call'> {
  const { clock, emit, mask } = options.compose;
  const { listings, lookUp } = options.table;

  async function call(given: ToolRequest, signal: AbortSignal): Promise<ToolReply> {
    const reqId = requestId(options.random.uuid());
    const [startedAt, { owner, client }] = [clock.monotonic(), given.principal];
    const toolName = safeCut(given.name, longestToolName);
    emit({ type: 'call.start', reqId, tool: toolName, owner, client, trace: given.trace });
    let reply: Reply;
    try {
      const { request, ...found } = lookUp(given);
      assertArgumentShape(request.name, request.arguments);
      const { args, warnings } = parseArguments(found.tool, found.schema, request.arguments);
      // Once more: a text may have turned out to be a list.
      assertArgumentShape(request.name, args);
      assertArgumentLengths(request.name, args, options.promptLimit);
      await options.admit(request);
      options.meter.begin(reqId, args.max_cost_usd);
      const progress = createProgress(clock, stagesOf(emit, { reqId, tool: toolName }, request));
      const { tool } = found;
      reply = await run({ reqId, request, signal, progress, startedAt, tool, args, common: commonOf(args), warnings });
    } catch (error) {
      if (!isAppError(error)) emit({ type: 'warning', reqId, where: toolName, message: stackOf(error) });
      reply = errorReply(error, { toolName, reqId });
    } finally {
      options.meter.end(reqId);
    }
    const { isError, code, questions } = reply;
    const document = isError ? await maskDocument(options.compose.mask, reply.document, reqId) : reply.document;
    const end = { status: String(document.status), elapsedMs: clock.monotonic() - startedAt };
    emit({ type: 'call.end', reqId, tool: toolName, code, reason: reasonOf(document), ...end });
    const shown = renderReply(
      { isError, document: truncateDocument(document, options.replyTokens) },
      options.replyFormat,
    );
    return questions ? { ...shown, questions } : shown;
  }

  async function run(parsed: ParsedCall): Promise<Reply> {
    const { shape } = parsed.tool;
    if (shape.kind === 'action') {
      const document = await shape.run(parsed.args, actionContext(options, parsed));
      return successReply(withMetadata(document, localMetadata(parsed, clock.monotonic() - parsed.startedAt)));
    }
    if (shape.kind === 'relay') {
      return shape.run(parsed.args, actionContext(options, parsed));
    }
    if (shape.kind === 'agent') {
      const ask = (call: ThreadedCall, plan: ModelTurn) => askModelTurn(options, call, plan);
      const scopes = (thread: Thread) => scopesOf(options.threads.store, thread);
      return options.agent.conduct(parsed, {
        threads: options.threads,
        scopesOf: scopes,
        onThread: work => withThread(parsed, work),
        ask,
      });
    }
    if (shape.kind === 'wrapper') return executeFanout(options, shape, await maskParsed(mask, parsed, parsed.reqId));
    return withThread(parsed, resumed => conduct(resumed));
  }

  async function withThread(parsed: ParsedCall, work: (call: ThreadedCall) => Promise<Reply>): Promise<Reply> {
    const { owner, root } = parsed.request.principal;
    const place = { owner, workspace: root };
    if (parsed.common.continuationId === undefined) {
      const blank = told(parsed, options.threads.start(place, parsed.tool.name));
      const call = await maskParsed(mask, parsed, blank.id);
      return work({ ...call, thread: { ...blank, title: titleOf(call), initialContext: contextOf(call) } });
    }
    const found = await options.threads.findHead(parsed.common.continuationId, place);
    const call = await maskParsed(mask, parsed, found.id);
    const onWait = () => call.progress.stage('waiting for the thread');
    return options.threads.exclusively(found.id, { signal: call.signal, onWait }, async () =>
      work({ ...call, thread: told(parsed, await options.threads.refresh(found)) }),
    );
  }

  async function conduct(call: ThreadedCall): Promise<Reply> {
    if (call.tool.shape.kind === 'panel') return executePanel(options, call.tool.shape, call);
    if (call.tool.shape.kind === 'bridge') return executeExternalCli(options, call);
    const plan = await planOf(options, call);
    if (plan.kind === 'ask') return askModelTurn(options, call, plan);
    const { questions, document } = plan;
    return questions ? { ...successReply(document), questions } : recordLocalTurn(options, call, plan);
  }

  return { list: () => listings, call };
}

/** What a call comes to, by the shape of its tool. */
async function planOf(options: EngineOptions, call: ThreadedCall): Promise<TurnPlan> {
  const { shape } = call.tool;
  switch (shape.kind) {
    case 'prompt':
      return planPrompt(shape, call, options.compose);
    case 'diagnose': {
      // Few ask for it, and not at the start.
      const { planDiagnosis } = await import('./modes/diagnose/diagnose.ts');
      return planDiagnosis(shape, call, options.compose, { ...options.diagnose, replyTokens: options.replyTokens });
    }
    case 'workflow':
      return planStep(options, shape, call);
    case 'panel':
    case 'wrapper':
    case 'action':
    case 'relay':
    case 'bridge':
    case 'dispatch':
    case 'agent':
      throw new TypeError(`a tool of the shape ${shape.kind} has no plan`);
  }
}

function actionContext(
  { actionContext: create }: EngineOptions,
  { request, signal, reqId, tool }: ParsedCall,
): ActionContext {
  return create({ principal: request.principal, signal, reqId, tool: tool.name });
}

/** Each stage is told to the observers, and to the caller where he asked for it. */
function stagesOf(emit: Emit, call: { reqId: string; tool: string }, { onProgress }: ToolRequest): Report {
  return update => {
    emit({ type: 'call.stage', ...call, stage: update.message });
    onProgress?.(update);
  };
}

async function maskParsed(mask: Mask, parsed: ParsedCall, scope: string): Promise<ParsedCall> {
  const args = await maskArguments(mask, parsed.args, scope);
  const warnings = await Promise.all(parsed.warnings.map(async warning => (await mask(warning, scope)).text));
  // The model's name goes to a vendor and into the store like any other text.
  const model = typeof args.model === 'string' ? args.model : undefined;
  return { ...parsed, args, warnings, common: { ...parsed.common, model } };
}

/** Lets whoever watches over the call know its thread, before anything is stored. */
function told({ request }: ParsedCall, thread: Thread): Thread {
  request.onThread?.(thread);
  return thread;
}

async function planStep(
  { compose, workflow }: EngineOptions,
  shape: WorkflowMode<Record<string, unknown>>,
  call: ThreadedCall,
): Promise<TurnPlan> {
  const files = await stepFiles(call, compose, shape.countsFiles);
  const offered = { ...workflow.offered, trace: createTracer(compose) };
  return planWorkflow(shape, call, files, { ...workflow, offered, mask: compose.mask });
}

function commonOf(args: Record<string, unknown>): ParsedCall['common'] {
  const given = commonFields.parse(args);
  return {
    model: given.model,
    continuationId: given.continuation_id,
    temperature: given.temperature,
    effort: given.thinking_mode,
    webSearch: given.use_websearch,
    context: given.context ?? 'thread',
    allowFallback: given.allow_fallback,
    useSearch: given.use_search,
  };
}

/** What the disk says of the files that a step names. */
async function stepFiles(call: ThreadedCall, { sandbox, home }: ContextServices, count = false): Promise<StepFiles> {
  const { files_checked: checked, relevant_files: relevant } = call.args;
  const place = { root: call.request.principal.root, home, signal: call.signal };
  return {
    missing: await missingPaths(sandbox, textsIn(checked), place),
    found: count ? await listSourceFiles(sandbox, textsIn(relevant), place) : [],
  };
}

function textsIn(list: unknown): string[] {
  return Array.isArray(list) ? list.map(String) : [];
}

function withMetadata(document: JsonObject, facts: JsonObject): JsonObject {
  return {
    ...document,
    metadata:
      typeof document.metadata === 'object' && document.metadata !== null && !Array.isArray(document.metadata)
        ? { ...facts, ...document.metadata }
        : facts,
  };
}

/** The beginning of what the caller asked, on one line. */
function titleOf({ args, tool }: ParsedCall): string {
  const text = String(args.prompt ?? args.step ?? args.task ?? tool.title)
    .replace(/\s+/g, ' ')
    .trim();
  return text.length <= 80 ? text : `${safeCut(text, 79)}…`;
}

function contextOf({ args }: ParsedCall): JsonObject {
  const {
    model: _model,
    temperature: _heat,
    thinking_mode: _mode,
    continuation_id: _id,
    images: _images,
    ...rest
  } = args;
  const copy: JsonObject = JSON.parse(JSON.stringify(rest));
  return copy;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
