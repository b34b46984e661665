import { askAnew, type Exchange, finishTurn, inExchange, prepareTurn, storeQuestion } from '../../../calls/ask/ask.ts';
import { isNamed } from '../../../calls/ask/route-call.ts';
import type { CallServices } from '../../../calls/ask/services.ts';
import { withThread } from '../../../calls/ask/with-thread.ts';
import type { ParsedCall, PreparedCall, ThreadedCall } from '../../../calls/call-record.ts';
import { type Reply, successReply } from '../../../calls/reply.ts';
import type { AppEvent } from '../../../core/events.ts';
import type { ThreadId } from '../../../core/ids.ts';
import { type Candidate, type Candidates, modelName } from '../../../core/model.ts';
import type { Random, SharedState } from '../../../core/ports.ts';
import { printablePath, safeCut } from '../../../core/text.ts';
import type { UserQuestion } from '../../../core/tool-host.ts';
import { callLimit } from '../../../models/budget.ts';
import type { ModelRequest } from '../../../models/routing/roster.ts';
import type { Meter } from '../../../models/spend-meter.ts';
import { scopesOf } from '../../../threads/threads.ts';
import { isSkip } from '../../../workspace/paths.ts';
import type { AgentRunner } from '../mode.ts';
import { type AgentInput, agentLimits, newMark } from './agent.ts';
import type { LocalToolServices } from './local-tools/local-tool.ts';
import { createLocalTools } from './local-tools/local-tools.ts';
import { openServers, type ServerEntry } from './mcp-servers.ts';
import {
  type ApprovalPolicy,
  chooseAble,
  createApprovals,
  createRefresher,
  createTriage,
  finishRun,
  maxQuestions,
  promptOf,
  type RunRecord,
  runDocument,
  runTurn,
  taskIn,
  toModelAnswer,
  toolCallDocument,
} from './plan-run.ts';
import { runUntilStopped } from './run-agent.ts';
import type { Run, StoredRun, WaitingRun, WaitingRuns } from './waiting-runs.ts';
import { cannotContinue, createWaitingRuns, restoreRun } from './waiting-runs.ts';

export interface RunnerParts
  extends Omit<LocalToolServices, 'reqId' | 'scope' | 'earlierScopes' | 'tool' | 'owner' | 'root'>,
    Pick<CallServices, 'threads' | 'askModel' | 'route'> {
  state: SharedState;
  meter: Pick<Meter, 'begin' | 'spent'>;
  random: Random;
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
const maxTools = 120;
/** A tool gets a little longer than the command that it runs. */
const graceMs = 5_000;
const maxWatched = 100;

export function createAgentRunner(parts: RunnerParts): AgentRunner {
  const waitingRuns = createWaitingRuns(parts);

  async function execute(call: ParsedCall, services: CallServices): Promise<Reply> {
    const { request, args } = call;
    const named = typeof args.run_id === 'string' ? args.run_id : undefined;
    const found = await waitingRuns.find(request.principal.owner, named, request.answers?.keys() ?? []);
    if (found) return goOn(found, call, services);
    // Before a thread is begun for it.
    taskIn(args);
    await parts.commandSandbox.describe(request.principal.root);
    return withThread(services, call, threaded => {
      const id = `${threaded.thread.id}-${parts.random.uuid().slice(0, 8)}`;
      const record: RunRecord = { calls: [], changed: [] };
      const nothing = { gate: { allowed: [], asked: 0, decided: {} }, spentUsd: 0, elapsedMs: 0 };
      const run = { ...nothing, id, record, mark: newMark(parts.random), maxCostUsd: args.max_cost_usd };
      return work({ ...parts, waitingRuns }, run, threaded, services);
    });
  }

  async function goOn(found: WaitingRun, call: ParsedCall, services: CallServices): Promise<Reply> {
    const answer = call.request.answers?.get(found.key);
    if (found.state === 'waiting' && !answer) return asking((await waitingRuns.open(found)).run, found.thread, call);
    return waitingRuns.alone(found, call.signal, async () => {
      const stored = await waitingRuns.open(found);
      const { run } = stored;
      const { open, ...gate } = run.gate;
      run.gate = { ...gate, ...(open && answer && { given: { ...open, answer } }) };
      const threaded = await callHere(parts, stored, found, call);
      const options = { signal: call.signal, onWait: () => call.progress.stage('waiting for the thread') };
      const continued = () => work({ ...parts, waitingRuns }, run, threaded, services, { stored, found });
      return services.threads.exclusively(found.thread, options, continued);
    });
  }

  return { execute, close: waitingRuns.close };
}

/** The call that began a run, made by the one that continues it. Throws where this process can't. */
async function callHere(parts: RunnerParts, stored: StoredRun, { id, thread, owner }: WaitingRun, call: ParsedCall) {
  const { sandbox, commandSandbox, threads } = parts;
  const { args, common, warnings } = stored.call;
  const { run } = stored;
  const found = await threads.find(thread, { owner, workspace: call.request.principal.root });
  const root = found.workspace;
  if (isSkip(await sandbox.locate(root)))
    throw cannotContinue(id, `${printablePath(root)} is not in the directories of this server`);
  const runsIn = await commandSandbox.describe(root);
  if (runsIn !== run.record.sandbox)
    throw cannotContinue(id, `its commands run in "${run.record.sandbox}", and would run in "${runsIn}"`);
  const request = { ...call.request, principal: { ...call.request.principal, root } };
  return { ...call, request, args, common, warnings, thread: found, startedAt: call.startedAt - run.elapsedMs };
}

/** Of the models that a run may ask those that this process can. Throws where the one that it works with is missing. */
async function candidatesHere({ route }: RunnerParts, id: string, all: readonly Candidate[]): Promise<Candidates> {
  const found = all.map(async candidate => {
    const name = modelName(candidate);
    // One that nobody knows here is not asked, like one that may not be.
    const known = await route({ name, category: 'balanced', needs: {} }).catch(() => undefined);
    const here = known?.candidates[0];
    return here && modelName(here) === name ? [{ ...candidate, model: here.model }] : [];
  });
  const [[first] = [], ...others] = await Promise.all(found);
  if (first) return [first, ...others.flat()];
  throw cannotContinue(id, `its model ${all.slice(0, 1).map(modelName)} cannot be used`);
}

function asking({ id, gate }: Run, thread: ThreadId, { tool, reqId }: ParsedCall): Reply {
  const question = gate.open?.question;
  return {
    ...successReply({
      status: 'approval_required',
      run_id: id,
      continuation_id: thread,
      question: question?.message,
      next: 'The user has to decide this, in the form that the host shows. Where none was shown, call this tool again with this run_id alone to have it shown.',
      metadata: { tool_name: tool.name, req_id: reqId },
    }),
    questions: question ? [question] : [],
  };
}

interface Earlier {
  stored: StoredRun;
  found: WaitingRun;
}

type WorkParts = RunnerParts & { waitingRuns: WaitingRuns };

async function work(parts: WorkParts, run: Run, call: ThreadedCall, services: CallServices, earlier?: Earlier) {
  const { record } = run;
  const emit = (event: AppEvent) => {
    const isNew = event.type === 'files.written' && event.code === undefined && !record.changed.includes(event.path);
    if (isNew) record.changed.push(event.path);
    parts.emit(event);
  };
  const exchange: Exchange = {
    services,
    // Read when the reply is made: the caller must not lose what was done until then.
    get local() {
      return record.calls.length > 0 ? runDocument(record) : {};
    },
  };
  const reply = await inExchange(exchange, call, async () => {
    const plan = runTurn(call, parts.language);
    const choose = (request: ModelRequest) => chooseAble(parts.route, request, isNamed(call.common.model));
    let prepared: PreparedCall;
    if (earlier) {
      const { stopped, call: kept } = earlier.stored;
      const candidates = await candidatesHere(parts, run.id, stopped.candidates);
      prepared = { ...call, ...kept, candidates, plan, messages: [], blobs: [] };
    } else {
      prepared = await prepareTurn(services, call, plan, choose);
      await storeQuestion(exchange, prepared);
    }
    const promptFor = async (candidate: Candidate) => {
      prepared = await askAnew(exchange, prepared, candidate);
      return promptOf(prepared);
    };
    // Uses the answer up that a run waited for. Throws where this process can't continue it with these tools.
    const begin = async (names: readonly string[]) => {
      if (!earlier) return;
      const { found, stored } = earlier;
      const missing = stored.tools.filter(name => !names.includes(name));
      if (missing.length > 0) throw cannotContinue(run.id, `these of its tools are missing: ${missing.join(', ')}`);
      await parts.waitingRuns.claim(found);
      const { turn } = stored.call;
      services.attempts(call.reqId).push(...stored.stopped.attempts);
      exchange.pending = await restoreRun(services.threads, { thread: call.thread, turn, sent: stored.sent });
      const { seq, content: text } = exchange.pending.turn;
      call.request.onThread?.({ id: found.thread, seq: seq - 1, text });
      // The limits on the cost of one call hold for the run as a whole.
      const limit = callLimit(parts.perRequest, run.maxCostUsd);
      parts.meter.begin(call.reqId, limit && Math.max(0, limit.usd - run.spentUsd), undefined, run.spentUsd);
    };
    const around = { promptFor, exchange, earlier, begin, latest: () => prepared };
    const result = await perform({ ...parts, emit }, run, prepared, around);
    if (!result) return asking(run, call.thread.id, call);
    const answer = toModelAnswer(result, record, run.elapsedMs);
    return finishTurn(exchange, { ...prepared, answer, said: answer.text }, () => finishRun(result, record));
  });
  // Its answer was used, for it has an exchange again. The reply is worth more than the word that it was.
  if (earlier && exchange.pending && !reply.questions) await parts.waitingRuns.end(run.id).catch(() => undefined);
  return reply;
}

interface Performance extends Pick<AgentInput, 'promptFor'> {
  exchange: Exchange;
  earlier: Earlier | undefined;
  begin(tools: readonly string[]): Promise<void>;
  /** The call as its last prompt was made. */
  latest(): PreparedCall;
}

/** Undefined where the run stopped, and waits. */
async function perform(parts: WorkParts, run: Run, gathered: PreparedCall, around: Performance) {
  const { promptFor, exchange, earlier, begin, latest } = around;
  const { services } = exchange;
  const { request, reqId, thread, tool, args, common, candidates, signal, progress } = gathered;
  const { owner, root } = request.principal;
  const { gate, record, mark } = run;
  const began = parts.clock.monotonic() - run.elapsedMs;
  const [scope, ...earlierScopes] = await scopesOf(services.store, thread);
  const toolServices: LocalToolServices = { ...parts, reqId, scope, earlierScopes, tool: tool.name, owner, root };
  const { mask, waitingRuns } = parts;
  const refresh = createRefresher({ ...toolServices, signal });
  if (earlier) for (const file of earlier.stored.watched) await refresh.resume(file);
  else for (const path of shownIn(gathered)) await refresh.saw(path);
  record.sandbox = await parts.commandSandbox.describe(root);
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const waiting = waitingRuns.serversOf(run.id);
  const servers = waiting ?? (await openServers({ ...parts, root, warn, signal }));
  let isOurs = !waiting;
  const later = async (question: UserQuestion) => {
    if (request.ask) return request.ask(question);
    return request.answers && gate.asked <= maxQuestions ? 'later' : undefined;
  };
  try {
    const offered = [...(await createLocalTools(toolServices)), ...servers.tools];
    // Two servers may have tools of one name; vendors refuse that.
    const byName = new Map(offered.toReversed().map(tool => [tool.name, tool]));
    const tools = [...byName.values()].reverse().slice(0, maxTools);
    const left = offered.filter(tool => !tools.includes(tool)).map(({ name }) => name);
    if (left.length > 0)
      warn(safeCut(`Tools were left out, of the same name or beyond the first ${maxTools}: ${left.join(', ')}`, 500));
    const names = tools.map(({ name }) => name);
    await begin(names);
    isOurs = true;
    const result = await runUntilStopped(
      {
        ...{ ask: parts.askModel, clock: parts.clock, emit: parts.emit, mask, refresh },
        triage: createTriage(parts, parts.askModel, toolServices),
      },
      {
        ...promptOf(gathered),
        promptFor,
        ...{ mark, reqId, scope, tool: tool.name, candidates, signal, tools },
        payer: { owner, thread: thread.id },
        cacheKey: thread.id,
        onToolCall: createApprovals(parts.policy, run.id, gate, later),
        // Without a listener, an answer that breaks off can be asked for again.
        ...(request.onText && { onText: request.onText }),
        onProgress: delta => progress.streamed(delta),
        onEvent: event => {
          if (event.type === 'tool_result') {
            const { id } = event.call;
            record.calls.push(toolCallDocument(event.call, gate.decided[id]));
            delete gate.decided[id];
            // A call that its tool refused comes to no gate, and a later one may have its id.
            if (gate.given?.callId === id) gate.given = undefined;
          }
          if (event.type === 'request') progress.stage(`round ${event.round}: ${event.model}`);
          if (event.type === 'tool_call') progress.stage(`round ${event.round}: ${event.name}`);
        },
        limits: {
          toolMs: Math.max(agentLimits.toolMs, parts.commandMs + graceMs),
          ...(typeof args.max_rounds === 'number' && { rounds: args.max_rounds }),
        },
        temperature: common.temperature,
      },
      earlier && { ...earlier.stored.stopped, candidates },
    );
    run.elapsedMs = parts.clock.monotonic() - began;
    if (!('stopped' in result)) return { ...result, warnings: [...warnings, ...result.warnings] };
    const { pending } = exchange;
    if (!pending || !gate.open) throw new TypeError('a run stopped without a question');
    // The call that continues it brings its own of these.
    const { reqId: _1, request: _2, signal: _3, progress: _4, startedAt: _5, tool: _6, thread: _7, ...rest } = latest();
    const { plan: _8, messages: _9, blobs: _10, compaction: _11, ...kept } = rest;
    const call = { ...kept, turn: pending.turn };
    run.spentUsd += parts.meter.spent(reqId);
    // Those of lent tools too.
    const stopped = { ...result.stopped, attempts: [...services.attempts(reqId)] };
    const stored = { run, call, sent: pending.sent, tools: names, watched: refresh.watched(), stopped };
    await waitingRuns.keep({ id: run.id, owner, thread: thread.id }, stored, gate.open, servers);
    isOurs = false;
    return undefined;
  } finally {
    if (isOurs) await servers.close();
  }
}

/** Files whose text the model has seen before its first call, the newest last. */
function shownIn({ thread, turn, common }: PreparedCall): string[] {
  const before = common.context === 'thread' ? thread.turns.filter(({ status }) => status === 'done') : [];
  const shown = [...before, turn].flatMap(({ files }) => files).filter(({ form }) => form !== 'deleted');
  return [...new Set(shown.map(({ path }) => path).toReversed())].slice(0, maxWatched).toReversed();
}
