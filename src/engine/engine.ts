import type { ActionContext } from '../calls/action-context.ts';
import { schemaOf, type ToolSchema } from '../calls/argument-schema.ts';
import { commonOf, fieldAsWritten, nearestNames, parseArguments, readOnlyError } from '../calls/arguments.ts';
import { maskDocument } from '../calls/ask/redaction.ts';
import { requestText } from '../calls/ask/with-thread.ts';
import { type Admit, assertArgumentShape } from '../calls/call-limits.ts';
import type { ParsedCall, Progress } from '../calls/call-record.ts';
import { type ReplyFormat, renderReply, truncateDocument } from '../calls/format-reply.ts';
import { errorReply, localMetadata, type Reply, stackOf, successReply, withBill } from '../calls/reply.ts';
import { aliasOf, type ToolDefinition, type ToolMode } from '../calls/tool.ts';
import { createQueue } from '../core/concurrency.ts';
import { AppError, bugError, inputError, isAppError } from '../core/errors.ts';
import { type RequestId, requestId } from '../core/ids.ts';
import { isRecord, type Json, type JsonObject, recordIn, textIn } from '../core/json.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import { safeCut } from '../core/text.ts';
import type { ToolHost, ToolListing, ToolReply, ToolRequest } from '../core/tool-host.ts';
import { dollars } from '../core/usage.ts';
import type { Meter } from '../models/spend-meter.ts';
import type { ExposedTools } from './exposure.ts';
import type { CallInnerTool } from './modes/agent/local-tools/local-tools.ts';
import { fanout } from './modes/ask-many/fanout.ts';
import { panel } from './modes/ask-many/panel.ts';
import { externalCli } from './modes/external-cli.ts';
import type { Mode, ModeServices } from './modes/mode.ts';
import { prompt } from './modes/prompt.ts';
import { workflow } from './modes/workflow/workflow.ts';

export interface EngineServices extends ModeServices {
  /** The tools that may be called. */
  table: ReturnType<typeof createToolTable>;
  random: Random;
  /** Tracks what each call spends, against its limit. */
  meter: Pick<Meter, 'begin' | 'end'>;
  /** Throws if a client calls a tool too often. */
  admit: Admit;
  /** Maximum characters of one text field. */
  promptLimit: number;
  replyFormat: ReplyFormat;
}

/** The tool's handler does the work; no model is asked. */
const action: Mode<Definitions['action']> = async (definition, call, services) => {
  const document = await definition.run(call.args, contextOf(services, call));
  const facts = localMetadata(call, services.clock.monotonic() - call.startedAt);
  const own = document.metadata;
  return successReply({ ...document, metadata: isRecord(own) ? { ...facts, ...own } : facts });
};

/** The reply of another call, unchanged. */
const passThrough: Mode<Definitions['passThrough']> = (definition, call, services) =>
  definition.run(call.args, contextOf(services, call));

/** A model works with tools, round by round; its runs open their threads themselves, and may wait for approval. */
const agent: Mode<Definitions['agent']> = (_definition, call, services) => services.agent.execute(call, services);

const contextOf = (services: ModeServices, { request, signal, reqId, tool }: ParsedCall): ActionContext =>
  services.actionContext({ principal: request.principal, signal, reqId, tool: tool.name });

type Definitions = { [Kind in ToolMode['kind']]: Extract<ToolMode, { kind: Kind }> };

const modes: { [Kind in ToolMode['kind']]: () => Mode<Definitions[Kind]> | Promise<Mode<Definitions[Kind]>> } = {
  action: () => action,
  agent: () => agent,
  // Never runs: the tool table resolves an alias to its tool.
  alias: () => {
    throw new TypeError('an alias is not a mode');
  },
  // Loaded on first use to keep the start fast.
  diagnose: async () => (await import('./modes/diagnose/diagnose.ts')).diagnose,
  externalCli: () => externalCli,
  fanout: () => fanout,
  panel: () => panel,
  passThrough: () => passThrough,
  prompt: () => prompt,
  workflow: () => workflow,
};

async function execute<Kind extends ToolMode['kind']>(
  kind: Kind,
  definition: Definitions[Kind],
  call: ParsedCall,
  services: ModeServices,
): Promise<Reply> {
  const mode: Mode<Definitions[Kind]> = await modes[kind]();
  return mode(definition, call, services);
}

/** Who pays less is not interested in how much. */
const worthTellingUsd = 0.5;

/** The pipeline of a call: look up → parse → admit → execute by the tool's mode → render. */
export function createEngine(services: EngineServices): Pick<ToolHost, 'list' | 'call'> {
  const { clock, emit, mask, meter, random, replyFormat } = services;
  const { listings, lookUp } = services.table;

  async function call(given: ToolRequest, signal: AbortSignal): Promise<ToolReply> {
    const reqId = requestId(random.uuid());
    const [startedAt, { owner, client }] = [clock.monotonic(), given.principal];
    const toolName = safeCut(given.name, maxToolNameLength);
    emit({ type: 'call.start', reqId, tool: toolName, owner, client, trace: given.trace });
    const replyTokens = given.paged ? Number.MAX_SAFE_INTEGER : services.replyTokens;
    let written = (field: string) => field;
    let reply: Reply;
    try {
      const { request, tool, schema } = lookUp(given);
      written = field => fieldAsWritten(tool, request.arguments, field);
      assertArgumentShape(request.name, request.arguments);
      const { args, warnings } = parseArguments(tool, schema, request.arguments);
      // Checked again: parsing may have turned a text into a list.
      assertArgumentShape(request.name, args, services.promptLimit);
      await services.admit(request);
      const progress = createProgress(clock, emit, { reqId, tool: toolName }, request);
      meter.begin(reqId, args.max_cost_usd, createCostNotice(progress));
      const asked = observed(emit, { reqId, tool: toolName, text: safeCut(requestText(args), aboutChars) }, request);
      const common = commonOf(args);
      const parsed = { reqId, request: asked, signal, progress, startedAt, tool, args, common, warnings };
      reply = await execute(tool.mode.kind, tool.mode, parsed, { ...services, replyTokens });
    } catch (error) {
      const unforeseen = isAppError(error) ? error.kind === 'bug' && error.cause : error;
      if (unforeseen) emit({ type: 'warning', reqId, where: toolName, message: stackOf(unforeseen) });
      reply = errorReply(error, { toolName, reqId });
    }
    const billed = meter.end(reqId);
    if (reply.isError && billed) reply = withBill(reply, billed);
    const { isError, error, questions, kept } = reply;
    const document = isError ? await maskDocument(mask, asWritten(reply.document, written), reqId) : reply.document;
    const end = { status: String(document.status), elapsedMs: clock.monotonic() - startedAt };
    const reason = textIn(recordIn(document.error).message) || undefined;
    emit({ type: 'call.end', reqId, tool: toolName, code: error?.details.code, reason, ...end });
    const cut = truncateDocument(document, replyTokens);
    const shown = renderReply({ isError, document: cut, error, ...(kept && { kept }) }, replyFormat);
    return questions ? { ...shown, questions } : shown;
  }

  return { list: () => listings, call };
}

/** Executes tools as parts of an agent's run, paid out of its money; one at a time, so that each is told its own attempts. */
export function createInnerToolCaller(services: EngineServices): CallInnerTool {
  const { clock, emit } = services;
  const queue = createQueue();
  return (tool, args, { reqId, principal, signal }) => {
    const work = async () => {
      const request = { name: tool.name, arguments: args, principal };
      await services.admit(request);
      const progress = createProgress(clock, emit, { reqId, tool: tool.name }, request);
      const around = { reqId, request, signal, progress, startedAt: clock.monotonic() };
      const before = services.attempts(reqId).length;
      const attempts = (of: string) => services.attempts(of).slice(before);
      const parsed = { ...around, tool, args, common: commonOf(args), warnings: [] };
      const { isError, error, document } = await execute(tool.mode.kind, tool.mode, parsed, { ...services, attempts });
      if (isError) throw error ?? bugError(`${tool.name} failed without an error.`);
      return document;
    };
    return queue.run(reqId, work, signal);
  };
}

/** More than is shown of it, so that no secret is cut into halves that are not recognized. */
const aboutChars = 2_000;

export type ObservingServices = Pick<EngineServices, 'clock' | 'emit' | 'meter' | 'random'>;

/** A call of the library's that is no tool's, as observers see calls. */
export async function observedCall<Result>(
  { clock, emit, meter, random }: ObservingServices,
  call: { maxCostUsd?: number } & Record<'tool' | 'owner' | 'text' | 'workspace', string>,
  work: (reqId: RequestId) => Promise<Result>,
): Promise<Result> {
  const { tool, owner, text, workspace, maxCostUsd } = call;
  const reqId = requestId(random.uuid());
  const startedAt = clock.monotonic();
  emit({ type: 'call.start', reqId, tool, owner, client: 'library' });
  emit({ type: 'call.about', reqId, tool, text: safeCut(text, aboutChars), workspace });
  meter.begin(reqId, maxCostUsd);
  let error: AppError | undefined;
  try {
    return await work(reqId);
  } catch (thrown) {
    error = isAppError(thrown) ? thrown : bugError(String(thrown), thrown);
    if (error !== thrown) emit({ type: 'warning', reqId, where: tool, message: stackOf(thrown) });
    throw thrown;
  } finally {
    meter.end(reqId);
    const elapsedMs = clock.monotonic() - startedAt;
    const failed = error && { code: error.details.code, reason: error.message };
    emit({ type: 'call.end', reqId, tool, status: error ? 'error' : 'success', elapsedMs, ...failed });
  }
}

/** The models that a name means, the default where it is none, for so many tokens; with tools, rather those that can call some. */
export const routeSent = (
  { route }: Pick<ModeServices, 'route'>,
  name: string | undefined,
  tokens: number,
  hasTools: boolean,
) =>
  route({
    ...(name !== undefined && { name }),
    category: hasTools ? 'extended_reasoning' : 'balanced',
    needs: { window: tokens },
    avoid: model => hasTools && !model.tools,
    lacks: hasTools ? 'call tools' : undefined,
  });

/** Tells the observers what a call is about: at once, and with its thread when that is known. */
function observed(emit: Emit, call: { reqId: string; tool: string; text: string }, request: ToolRequest): ToolRequest {
  const about = { type: 'call.about', ...call, workspace: request.principal.root } as const;
  emit(about);
  return {
    ...request,
    onThread(thread) {
      const { id, seq, text = call.text } = thread;
      emit({ ...about, text: safeCut(text, aboutChars), thread: id, seq });
      request.onThread?.(thread);
    },
  };
}

/** An error whose fields are named as `written` names them. */
function asWritten(document: JsonObject, written: (field: string) => string): JsonObject {
  const { error } = document;
  if (!isRecord(error) || !Array.isArray(error.validation_errors)) return document;
  const fields = error.validation_errors.map((each: Json) =>
    isRecord(each) && typeof each.field === 'string' ? { ...each, field: written(each.field) } : each,
  );
  return { ...document, error: { ...error, validation_errors: fields } };
}

/** Says what a call may cost at the most, before a model is paid for it. */
function createCostNotice({ note }: Progress): (usd: number) => void {
  let told = worthTellingUsd;
  return usd => {
    if (usd <= told) return;
    told = usd;
    note(`this call may cost up to ${dollars(usd)}`);
  };
}

const streamedEveryMs = 5_000;

/** Reports how the call is getting on to the observers, and to the client if it asked for progress. */
function createProgress(clock: Clock, emit: Emit, call: { reqId: string; tool: string }, { onProgress }: ToolRequest) {
  let step = 0;
  let current = '';
  let chars = 0;
  let last = Number.NEGATIVE_INFINITY;
  const note = (message: string) => {
    last = clock.monotonic();
    emit({ type: 'call.stage', ...call, stage: message });
    onProgress?.({ progress: ++step, message });
  };
  return {
    note,
    stage(message: string) {
      current = message;
      note(message);
    },
    streamed(delta: string) {
      chars += delta.length;
      if (clock.monotonic() - last >= streamedEveryMs) note(`${current}: about ${Math.ceil(chars / 4)} tokens so far`);
    },
  };
}

/** Longer ones are no names of ours and are cut wherever they are told. */
const maxToolNameLength = 80;

/** Listings that are known already, by the very definition: one whose fields were narrowed is another. */
export type KnownListings = ReadonlyMap<ToolDefinition, ToolListing>;

export function createToolTable(exposed: Omit<ExposedTools, 'unknown'>, made?: KnownListings) {
  const all = [...exposed.tools, ...exposed.unlisted];
  const tools = new Map(all.map(tool => [tool.name, { tool, schema: schemaOf(tool, made?.get(tool)) }]));

  /** The tool that a request means, and the request in that tool's own words. Throws when there is none that may be used. */
  function lookUp(request: ToolRequest): { tool: ToolDefinition; schema: ToolSchema; request: ToolRequest } {
    if (exposed.readOnlyRefused.has(request.name)) throw readOnlyError(request.name);
    const found = tools.get(request.name);
    const withheld = exposed.withheld.get(request.name);
    if (!found && withheld)
      throw new AppError('config', `${request.name} is not offered: it ${withheld.why}.`, {
        code: 'TOOL_NOT_FOUND',
        class: 'validation',
        next: withheld.next,
        validationErrors: [{ field: 'name', error: 'not offered' }],
      });
    if (!found) throw unknownTool(safeCut(request.name, maxToolNameLength), [...tools.keys()]);
    const alias = aliasOf(found.tool);
    if (!alias) return { ...found, request };
    const { by, to } = alias;
    const { [by]: name, ...args } = request.arguments;
    if (typeof name !== 'string' || !to.includes(name))
      throw inputError(`${found.tool.name} needs ${by}: one of ${to.join(', ')}.`, {
        next: `Send the same call with "${by}" set to one of them.`,
        validationErrors: [{ field: by, error: 'missing or unknown', allowed: [...to] }],
      });
    return lookUp({ ...request, name, arguments: args });
  }

  return { listings: exposed.tools.flatMap(({ name }) => tools.get(name)?.schema.listing ?? []), lookUp };
}

function unknownTool(name: string, names: readonly string[]): AppError {
  const near = nearestNames(name, names);
  return inputError(`Unknown tool "${name}".`, {
    code: 'TOOL_NOT_FOUND',
    next: `Did you mean ${near.join(', ')}? "tools/list" shows all tools.`,
    validationErrors: [{ field: 'name', error: 'unknown tool', allowed: near }],
  });
}
