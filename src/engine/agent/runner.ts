import { isAppError } from '../../domain/error.ts';
import type { AppEvent } from '../../domain/event.ts';
import type { Mask, Random } from '../../domain/ports.ts';
import { printablePath } from '../../domain/text.ts';
import type { AskModel } from '../../models/answer.ts';
import type { Resolution } from '../../models/routing/resolve.ts';
import type { ModelRequest } from '../../models/routing/roster.ts';
import type { Parsed } from '../call-record.ts';
import { failure, type Reply, success } from '../reply.ts';
import { callLimit } from '../spend/limits.ts';
import type { Meter } from '../spend/meter.ts';
import { type AgentResult, type AgentTool, type AgentToolCall, agentLimits } from './agent.ts';
import { type ApprovalPolicy, createApprovals } from './approve.ts';
import { createDesk, type Desk, WaitingRun } from './desk.ts';
import type { HandParts } from './hands/hand-parts.ts';
import { hands } from './hands/hands.ts';
import { createRefresher } from './refresh-files.ts';
import { callFacts, documentOf } from './report.ts';
import { runAgent } from './run-agent.ts';
import { takeModels, taskOf } from './run-task.ts';
import { openServers } from './servers/open-servers.ts';
import type { ServerEntry } from './servers/server-list.ts';
import { createTriage } from './triage.ts';

/** Answers calls of tools that let a model work. */
export interface AgentRunner {
  /** `call` has its secrets masked. */
  conduct(call: Parsed): Promise<Reply>;
  /** Ends the runs that wait for somebody. */
  close(): Promise<void>;
}

export interface RunnerParts extends Omit<HandParts, 'reqId' | 'tool' | 'root'> {
  askModel: AskModel;
  route(request: ModelRequest): Promise<Resolution>;
  meter: Pick<Meter, 'begin'>;
  random: Random;
  mask: Mask;
  policy: ApprovalPolicy;
  /** US dollars for one call; absent: no limit. */
  perRequest?: number;
  /** Name of the model that looks at failures; absent: none does. */
  triageModel?: string;
  servers: readonly ServerEntry[];
  /** The one line of the preamble that every model is told; absent: none. */
  language?: string;
  version: string;
}

/** What vendors take in one request; the agent's own stand first. */
const mostTools = 120;
/** A tool gets a little longer than the command that it runs. */
const graceMs = 5_000;

export function createAgentRunner(parts: RunnerParts): AgentRunner {
  const desk = createDesk(parts);
  const spent = new WeakMap<WaitingRun, number>();

  async function conduct(call: Parsed): Promise<Reply> {
    const { request, args } = call;
    const id = typeof args.run_id === 'string' ? args.run_id : undefined;
    const earlier = desk.find(request.principal.owner, id, request.answers?.keys() ?? []);
    if (earlier) return goOn(desk, earlier, call);
    const run = new WaitingRun(parts.random.uuid(), call);
    run.start(work(parts, run, spent));
    return settled(desk, run);
  }

  /** The limit on the cost of one call holds for the run as a whole. */
  function goOn(desk: Desk, run: WaitingRun, call: Parsed): Promise<Reply> {
    const limit = callLimit(parts.perRequest, run.maxCostUsd);
    if (limit) parts.meter.begin(call.reqId, Math.max(0, limit.usd - (spent.get(run) ?? 0)));
    run.attach(call);
    for (const [key, answer] of call.request.answers ?? []) if (run.answer(key, answer)) break;
    return settled(desk, run);
  }

  return { conduct, close: async () => desk.close() };
}

/** The run's reply, or its question for who called. */
async function settled(desk: Desk, run: WaitingRun): Promise<Reply> {
  const reply = await run.next();
  if (reply !== 'asks') return reply;
  const { question, call } = run;
  desk.keep(run);
  return {
    ...success({
      status: 'approval_required',
      run_id: run.id,
      question: question?.message,
      next: 'The user has to decide this, in the form that the host shows. Where none was shown, call this tool again with this run_id alone to have it shown.',
      metadata: { tool_name: call.tool.name, req_id: call.reqId },
    }),
    questions: question ? [question] : [],
  };
}

async function work(parts: RunnerParts, run: WaitingRun, spent: WeakMap<WaitingRun, number>): Promise<Reply> {
  const scope = run.reqId;
  const calls: AgentToolCall[] = [];
  const changed = new Set<string>();
  const warnings = [...run.call.warnings];
  // Of the call that is here when something happens: the first one may have been answered long ago.
  const emit = (event: AppEvent) => {
    if (event.type === 'files.written' && event.code === undefined) changed.add(event.path);
    parts.emit('reqId' in event ? { ...event, reqId: run.reqId } : event);
  };
  try {
    const result = await perform({ ...parts, emit }, run, { scope, calls, warnings, spent });
    return success(documentOf(run.call, result, { changed: [...changed].map(printablePath), warnings, parts }));
  } catch (error) {
    const facts = { tool_calls: calls.map(callFacts), changed_files: [...changed].map(printablePath) };
    if (!isAppError(error)) throw error;
    return failure(error, { toolName: run.call.tool.name, reqId: run.reqId, local: calls.length > 0 ? facts : {} });
  }
}

interface Ledger {
  /** Keys masks for the whole run. */
  scope: string;
  calls: AgentToolCall[];
  warnings: string[];
  spent: WeakMap<WaitingRun, number>;
}

async function perform(
  parts: RunnerParts,
  run: WaitingRun,
  { scope, calls, warnings, spent }: Ledger,
): Promise<AgentResult> {
  const { call, signal } = run;
  const { principal } = call.request;
  const resolution = await takeModels(parts, call);
  warnings.push(...resolution.warnings);
  const handParts: HandParts = { ...parts, reqId: scope, tool: call.tool.name, root: principal.root };
  const { sandbox, mask, maxFileBytes: maxBytes } = parts;
  const refresh = createRefresher({ sandbox, mask, scope, maxBytes, signal });
  const task = await taskOf(handParts, call, refresh, signal);
  warnings.push(...task.warnings);
  const warn = (message: string) => void warnings.push(message);
  const servers = await openServers({ ...parts, root: principal.root, warn, signal });
  const ask: AskModel = async question => {
    const answer = await parts.askModel({ ...question, reqId: run.reqId });
    spent.set(run, (spent.get(run) ?? 0) + (answer.costUsd ?? 0));
    return answer;
  };
  const { triageModel: model } = parts;
  const owner = principal.owner;
  try {
    return await runAgent(
      {
        ...{ ask, clock: parts.clock, emit: parts.emit, mask, refresh },
        ...(model !== undefined && { triage: createTriage({ ...parts, ask, model, reqId: scope, owner }) }),
      },
      {
        reqId: scope,
        tool: call.tool.name,
        payer: { owner },
        candidates: resolution.candidates,
        preamble: task.preamble,
        message: task.message,
        tools: unique([...(await hands(handParts, false)), ...servers.tools]),
        onToolCall: createApprovals({ policy: parts.policy, runId: run.id, ask: question => run.ask(question) }),
        // Without a listener, an answer that breaks off can be asked for again.
        ...(call.request.onText && { onText: (delta: string) => run.call.request.onText?.(delta) }),
        onProgress: delta => run.call.progress.streamed(delta),
        onEvent: event => {
          if (event.type === 'tool_result') calls.push(event.call);
          if (event.type === 'request') run.call.progress.stage(`round ${event.round}: ${event.model}`);
          if (event.type === 'tool_call') run.call.progress.stage(`round ${event.round}: ${event.name}`);
        },
        limits: {
          toolMs: Math.max(agentLimits.toolMs, parts.commandMs + graceMs),
          ...(typeof call.args.max_rounds === 'number' && { rounds: call.args.max_rounds }),
        },
        ...(call.common.temperature !== undefined && { temperature: call.common.temperature }),
        signal,
      },
    );
  } finally {
    await servers.close();
  }
}

/** Two servers may have tools of one name; vendors refuse that. */
function unique(tools: readonly AgentTool[]): AgentTool[] {
  return [...new Map(tools.toReversed().map(tool => [tool.name, tool])).values()].reverse().slice(0, mostTools);
}
