import { z } from 'zod';
import { AppError, isAppError, limitError } from '../domain/error.ts';
import { requestId } from '../domain/ids.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Random } from '../domain/ports.ts';
import type { Principal, ToolHost, ToolReply, ToolRequest } from '../domain/request.ts';
import { missingPaths } from '../files/missing.ts';
import { capDocument } from './answer/cap.ts';
import { type ReplyFormat, rendered } from './answer/render.ts';
import { type AskOptions, askPlan } from './ask.ts';
import type { Parsed, Plan, Resumed } from './call-record.ts';
import type { ActionContext, ToolDefinition } from './define.ts';
import { continuationId, hiddenFields, modelField } from './fields.ts';
import { maskArguments } from './gather/mask-arguments.ts';
import { rememberLocal } from './local.ts';
import { createProgress } from './progress.ts';
import { failure, localMetadata, type Reply, success } from './reply.ts';
import { nearestNames, parseArguments, schemaOf, type ToolSchema } from './schema.ts';
import { planPrompt } from './shapes/prompt.ts';
import { planWorkflow, type WorkflowSettings } from './shapes/workflow.ts';

export interface EngineOptions extends AskOptions {
  tools: readonly ToolDefinition[];
  random: Random;
  workflow: WorkflowSettings;
  /** The most characters of one text field. */
  promptLimit: number;
  replyFormat: ReplyFormat;
  /** What an action's handler may touch, for one caller. */
  actionContext(principal: Principal, signal: AbortSignal): ActionContext;
}

const commonFields = z.object({ ...hiddenFields, model: modelField, continuation_id: continuationId });

/** The pipeline of a call: parse → resume → (resolve → gather → ask) → remember → reply. */
export function createEngine(options: EngineOptions): ToolHost {
  const { clock, emit } = options.compose;
  const tools = new Map<string, { tool: ToolDefinition; schema: ToolSchema }>();
  for (const tool of options.tools) tools.set(tool.name, { tool, schema: schemaOf(tool) });
  const listings = [...tools.values()].map(({ schema }) => schema.listing);

  async function call(request: ToolRequest, signal: AbortSignal): Promise<ToolReply> {
    const reqId = requestId(options.random.uuid());
    const startedAt = clock.monotonic();
    emit({
      type: 'call.start',
      reqId,
      tool: request.name,
      owner: request.principal.owner,
      client: request.principal.client,
    });
    let reply: Reply;
    try {
      const found = tools.get(request.name);
      if (!found) throw unknownTool(request.name, [...tools.keys()]);
      const { args, warnings } = parseArguments(found.tool, found.schema, request.arguments);
      refuseOverlong(request.name, args, options.promptLimit);
      const progress = createProgress(clock, request.onProgress);
      const common = commonOf(args);
      reply = await run({ reqId, request, signal, progress, startedAt, tool: found.tool, args, common, warnings });
    } catch (error) {
      if (!isAppError(error)) emit({ type: 'warning', reqId, where: request.name, message: stackOf(error) });
      reply = failure(error, { toolName: request.name, reqId });
    }
    const status = String(reply.document.status);
    emit({ type: 'call.end', reqId, tool: request.name, status, elapsedMs: clock.monotonic() - startedAt });
    return rendered({ ...reply, document: capDocument(reply.document, options.replyTokens) }, options.replyFormat);
  }

  async function run(parsed: Parsed): Promise<Reply> {
    const { shape } = parsed.tool;
    if (shape.kind === 'action') {
      const document = await shape.run(parsed.args, options.actionContext(parsed.request.principal, parsed.signal));
      return success(withMetadata(document, localMetadata(parsed, clock.monotonic() - parsed.startedAt)));
    }
    return withThread(parsed, resumed => conduct(resumed));
  }

  async function withThread(parsed: Parsed, work: (call: Resumed) => Promise<Reply>): Promise<Reply> {
    const { owner, root } = parsed.request.principal;
    const place = { owner, workspace: root };
    if (parsed.common.continuationId === undefined) {
      const blank = options.threads.start(place, parsed.tool.name);
      const call = await masked(parsed, blank.id);
      return work({ ...call, thread: { ...blank, title: titleOf(call), initialContext: contextOf(call) } });
    }
    const found = await options.threads.findHead(parsed.common.continuationId, place);
    const call = await masked(parsed, found.id);
    const onWait = () => call.progress.stage('waiting for the thread');
    return options.threads.exclusively(found.id, { signal: call.signal, onWait }, async () =>
      work({ ...call, thread: await options.threads.refresh(found) }),
    );
  }

  async function masked(parsed: Parsed, scope: string): Promise<Parsed> {
    return { ...parsed, args: await maskArguments(options.compose.mask, parsed.args, scope) };
  }

  async function conduct(call: Resumed): Promise<Reply> {
    const plan = await planOf(call);
    return plan.kind === 'local' ? rememberLocal(options, call, plan) : askPlan(options, call, plan);
  }

  async function planOf(call: Resumed): Promise<Plan> {
    const { shape } = call.tool;
    switch (shape.kind) {
      case 'prompt':
        return planPrompt(shape, call, options.compose);
      case 'workflow': {
        const { sandbox, home } = options.compose;
        const checked = Array.isArray(call.args.files_checked) ? call.args.files_checked.map(String) : [];
        const missing = await missingPaths(sandbox, checked, { root: call.request.principal.root, home });
        return planWorkflow(shape, call, missing, options.workflow);
      }
      case 'action':
        throw new TypeError('actions have no plan');
    }
  }

  return { list: () => listings, call };
}

function commonOf(args: Record<string, unknown>): Parsed['common'] {
  const given = commonFields.parse(args);
  return {
    model: given.model,
    continuationId: given.continuation_id,
    temperature: given.temperature,
    effort: given.thinking_mode,
    context: given.context ?? 'thread',
  };
}

function unknownTool(name: string, names: readonly string[]): AppError {
  const near = nearestNames(name, names);
  return new AppError('input', `There is no tool "${name.slice(0, 80)}".`, {
    code: 'TOOL_NOT_FOUND',
    class: 'validation',
    next: `The nearest are ${near.join(', ')}; tools/list has them all.`,
    validationErrors: [{ field: 'name', error: 'unknown tool', allowed: near }],
  });
}

/** A text too long for one message of the protocol comes as a file instead; callers know the word for it. */
function refuseOverlong(tool: string, args: Record<string, unknown>, limit: number): void {
  for (const [field, value] of Object.entries(args)) {
    if (typeof value !== 'string' || value.length <= limit) continue;
    const way =
      field === 'prompt'
        ? 'Save the exact text as prompt.txt in the project, then send the call again with that file in absolute_file_paths and a short prompt.'
        : `Shorten "${field}"; put the details into files of the project and name those.`;
    throw limitError(
      'size',
      `"${field}" of ${tool} has ${value.length} characters; a text field takes at most ${limit}.`,
      {
        next: way,
        replyStatus: 'resend_prompt',
        replyContent: way,
        data: { prompt_size: value.length, limit, instructions: way },
        validationErrors: [{ field, error: `${value.length} characters`, allowed: [`at most ${limit} characters`] }],
      },
    );
  }
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
function titleOf({ args, tool }: Parsed): string {
  const text = String(args.prompt ?? args.step ?? tool.title)
    .replace(/\s+/g, ' ')
    .trim();
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}

function contextOf({ args }: Parsed): JsonObject {
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
