import type { AskPlan, Gathered, Parsed, Resumed } from '../../../calls/call-record.ts';
import { type Reply, success } from '../../../calls/reply.ts';
import type { AppEvent } from '../../../core/events.ts';
import type { Mask, Random } from '../../../core/ports.ts';
import type { Thread } from '../../../core/thread.ts';
import type { AskModel } from '../../../models/ask-model.ts';
import { callLimit } from '../../../models/budget.ts';
import type { Meter } from '../../../models/meter.ts';
import type { Resolution } from '../../../models/routing/resolve.ts';
import type { ModelRequest } from '../../../models/routing/roster.ts';
import type { Threads } from '../../../threads/threads.ts';
import { type ApprovalPolicy, createApprovals } from '../../agent/approve.ts';
import type { HandParts } from '../../agent/hands/hand-parts.ts';
import { newMark } from '../../agent/own-blocks.ts';
import { createRefresher } from '../../agent/refresh-files.ts';
import type { ServerEntry } from '../../agent/servers/server-list.ts';
import { createTriage } from '../../agent/triage.ts';
import { standAgain } from '../../agent/waiting/stand-again.ts';
import { type AgentResult, type AgentTool, agentLimits } from './agent.ts';
import { hands } from './local-tools/local-tools.ts';
import { openServers } from './mcp-servers.ts';
import { planRun, type RunPrompt, type RunRecord, taskIn } from './plan-run.ts';
import { runAgent } from './run-agent.ts';
import { createDesk, type Desk, WaitingRun } from './waiting-runs.ts';

/** What the pipeline of a call does for a run. */
export interface AgentPipeline {
  threads: Threads;
  /** The ids that texts of a thread may have been masked under, its own first. */
  scopesOf(thread: Thread): Promise<string[]>;
  /** Begins or resumes the call's thread; `work` is done under its lease. */
  onThread(work: (call: Resumed) => Promise<Reply>): Promise<Reply>;
  /** The second half: gathers the prompt, stores the question, then the answer. */
  ask(call: Resumed, plan: AskPlan): Promise<Reply>;
}

/** Answers calls of tools that let a model work. */
export interface AgentRunner {
  conduct(call: Parsed, pipeline: AgentPipeline): Promise<Reply>;
  /** Ends the runs that wait for somebody. */
  close(): Promise<void>;
}

export interface RunnerParts extends Omit<HandParts, 'reqId' | 'scope' | 'earlierScopes' | 'tool' | 'root'> {
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
/** As many as are watched at a time. */
const mostWatched = 100;

export function createAgentRunner(parts: RunnerParts): AgentRunner {
  const desk = createDesk(parts);
  const spent = new WeakMap<WaitingRun, number>();

  async function conduct(call: Parsed, pipeline: AgentPipeline): Promise<Reply> {
    const { request, args } = call;
    const id = typeof args.run_id === 'string' ? args.run_id : undefined;
    const earlier = desk.find(request.principal.owner, id, request.answers?.keys() ?? []);
    if (earlier) return goOn(earlier, call, pipeline);
    // Before a thread is begun for it.
    taskIn(args);
    return pipeline.onThread(async resumed => {
      const run = new WaitingRun(parts.random.uuid(), resumed);
      run.start(work(parts, run, resumed, { pipeline, spent }));
      return settled(desk, run);
    });
  }

  /** The limit on the cost of one call holds for the run as a whole. */
  async function goOn(run: WaitingRun, call: Parsed, { threads }: AgentPipeline): Promise<Reply> {
    const limit = callLimit(parts.perRequest, run.maxCostUsd);
    if (limit) parts.meter.begin(call.reqId, Math.max(0, limit.usd - (spent.get(run) ?? 0)));
    run.attach(call);
    const { standing } = run;
    if (!standing) throw new TypeError('a run asked before its question was stored');
    const { id } = standing.thread;
    const onWait = () => call.progress.stage('waiting for the thread');
    try {
      return await threads.exclusively(id, { signal: call.signal, onWait }, async () => {
        await standAgain(threads, standing);
        call.request.onThread?.({ id, seq: standing.turn.seq - 1 });
        for (const [key, answer] of call.request.answers ?? []) if (run.answer(key, answer)) break;
        return settled(desk, run);
      });
    } catch (error) {
      // Nobody would ever come for it again.
      run.abort(error);
      throw error;
    }
  }

  return { conduct, close: desk.close };
}

/** The run's reply, or its question for who called. */
async function settled(desk: Desk, run: WaitingRun): Promise<Reply> {
  const reply = await run.next();
  if (reply !== 'asks') return reply;
  const { question, call, standing } = run;
  desk.keep(run);
  return {
    ...success({
      status: 'approval_required',
      run_id: run.id,
      continuation_id: standing?.thread.id,
      question: question?.message,
      next: 'The user has to decide this, in the form that the host shows. Where none was shown, call this tool again with this run_id alone to have it shown.',
      metadata: { tool_name: call.tool.name, req_id: call.reqId },
    }),
    questions: question ? [question] : [],
  };
}

/** What outlives a call of a run. */
interface Around {
  pipeline: AgentPipeline;
  /** US dollars, by run. */
  spent: WeakMap<WaitingRun, number>;
}

async function work(parts: RunnerParts, run: WaitingRun, call: Resumed, around: Around): Promise<Reply> {
  const record: RunRecord = { calls: [], changed: new Set() };
  // Of the call that is here when something happens: the first one may have been answered long ago.
  const emit = (event: AppEvent) => {
    if (event.type === 'files.written' && event.code === undefined) record.changed.add(event.path);
    parts.emit('reqId' in event ? { ...event, reqId: run.reqId } : event);
  };
  const plan = planRun(call, {
    ...parts,
    record,
    perform(gathered, before, standing) {
      run.standing = standing;
      return perform({ ...parts, emit }, run, gathered, { ...around, before, record });
    },
  });
  return askedBy(run, await around.pipeline.ask({ ...call, signal: run.signal }, plan));
}

/** A reply as the call gets it that is here now. */
function askedBy({ reqId }: WaitingRun, reply: Reply): Reply {
  const { document } = reply;
  const { metadata } = document;
  const facts = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata) ? metadata : {};
  const own = document.req_id === undefined ? {} : { req_id: reqId };
  return { ...reply, document: { ...document, ...own, metadata: { ...facts, req_id: reqId } } };
}

interface Performance extends Around {
  before: RunPrompt;
  record: RunRecord;
}

async function perform(
  parts: RunnerParts,
  run: WaitingRun,
  gathered: Gathered,
  { pipeline, spent, before, record }: Performance,
): Promise<AgentResult> {
  const { signal } = run;
  const { request, thread, tool, args, common, candidates } = gathered;
  const { owner, root } = request.principal;
  const [scope, ...earlierScopes] = await pipeline.scopesOf(thread);
  const reqId = gathered.reqId;
  const handParts: HandParts = { ...parts, reqId, scope: scope ?? thread.id, earlierScopes, tool: tool.name, root };
  const { sandbox, mask, maxFileBytes: maxBytes, triageModel: model } = parts;
  const refresh = createRefresher({ sandbox, mask, scope: handParts.scope, maxBytes, signal });
  for (const path of shownIn(gathered)) await refresh.saw(path);
  const warnings: string[] = [];
  const servers = await openServers({ ...parts, root, warn: message => void warnings.push(message), signal });
  const ask: AskModel = async question => {
    const answer = await parts.askModel({ ...question, reqId: run.reqId });
    spent.set(run, (spent.get(run) ?? 0) + (answer.costUsd ?? 0));
    return answer;
  };
  try {
    const result = await runAgent(
      {
        ...{ ask, clock: parts.clock, emit: parts.emit, mask, refresh },
        ...(model !== undefined && { triage: createTriage({ ...handParts, ...parts, ask, model, owner }) }),
      },
      {
        ...before,
        mark: newMark(parts.random),
        ...{ reqId, scope: handParts.scope, tool: tool.name, candidates, signal },
        payer: { owner, thread: thread.id },
        cacheKey: thread.id,
        tools: unique([...(await hands(handParts, false)), ...servers.tools]),
        onToolCall: createApprovals({ policy: parts.policy, runId: run.id, ask: question => run.ask(question) }),
        // Without a listener, an answer that breaks off can be asked for again.
        ...(request.onText && { onText: (delta: string) => run.call.request.onText?.(delta) }),
        onProgress: delta => run.call.progress.streamed(delta),
        onEvent: event => {
          if (event.type === 'tool_result') record.calls.push(event.call);
          if (event.type === 'request') run.call.progress.stage(`round ${event.round}: ${event.model}`);
          if (event.type === 'tool_call') run.call.progress.stage(`round ${event.round}: ${event.name}`);
        },
        limits: {
          toolMs: Math.max(agentLimits.toolMs, parts.commandMs + graceMs),
          ...(typeof args.max_rounds === 'number' && { rounds: args.max_rounds }),
        },
        ...(common.temperature !== undefined && { temperature: common.temperature }),
      },
    );
    return { ...result, warnings: [...warnings, ...result.warnings] };
  } finally {
    await servers.close();
  }
}

/** Files whose text the model has seen before its first call, the newest last. */
function shownIn({ thread, turn, common }: Gathered): string[] {
  const before = common.context === 'thread' ? thread.turns.filter(({ status }) => status === 'done') : [];
  const shown = [...before, turn].flatMap(({ files }) => files).filter(({ form }) => form !== 'deleted');
  return [...new Set(shown.map(({ path }) => path).toReversed())].slice(0, mostWatched).toReversed();
}

/** Two servers may have tools of one name; vendors refuse that. */
function unique(tools: readonly AgentTool[]): AgentTool[] {
  return [...new Map(tools.toReversed().map(tool => [tool.name, tool])).values()].reverse().slice(0, mostTools);
}
