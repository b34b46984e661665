import { isDeepStrictEqual } from 'node:util';
import { createMaskedStream } from '../../../calls/ask/redaction.ts';
import { bugError, throwIfAborted } from '../../../core/errors.ts';
import { type Message, type SaidPart, type ToolCall, textOf } from '../../../core/message.ts';
import { type ModelInfo, modelName } from '../../../core/model.ts';
import { addUsage, noUsage } from '../../../core/usage.ts';
import { type ModelAnswer, pausedTurn } from '../../../models/ask-model.ts';
import { thinksInAnswer } from '../../../models/budget.ts';
import { asMessage } from '../../../threads/transcript.ts';
import type { AgentInput, AgentLimits, AgentParts, AgentResult, AgentStop } from './agent.ts';
import { agentLimits, noticeOf, stripForgedMarks } from './agent.ts';
import { callTools, type RoundOutcomes } from './call-tools.ts';
import type { Conversation, Exchange } from './conversation-window.ts';
import { messagesOf, messagesOfRound, trimConversation } from './conversation-window.ts';

/** What the model said and saw in these rounds, before anything was cut for later ones. */
function bytesBrought(exchanges: readonly Exchange[]): number {
  const messages = exchanges.flatMap(exchange => messagesOfRound(exchange, Number.POSITIVE_INFINITY, ''));
  return messages.reduce((sum, message) => sum + Buffer.byteLength(textOf(message)), 0);
}

const outOfRounds =
  'You have used all your rounds; no tool can be called any more. Answer now: what was done, what came of it, and what is left to do.';

const outOfRoom =
  'The conversation has become too long; no tool can be called any more. Conclude now: what was done, what came of it, and what is left to do.';

const nothingSaid = '(The model gave no closing answer.)';
const outputTokens = 8_192;
/** Thoughts come out of the same room. */
const thinkingOutputTokens = 32_768;

/** What a run came to so far: plain data from which it goes on, in whichever process. */
interface RunState
  extends Pick<AgentResult, 'rounds' | 'toolCalls' | 'usage' | 'attempts' | 'costUsd' | 'warnings'>,
    Pick<AgentInput, 'candidates'> {
  conversation: Conversation;
  /** Everything that was added, whatever was trimmed since. */
  all: Conversation['exchanges'];
  /** Some text went to who listens. */
  spoke: boolean;
}

interface Run extends RunState {
  parts: AgentParts;
  input: AgentInput;
  limits: AgentLimits;
}

/** A run that stopped before a call, for which its gate waits. */
export interface StoppedRun extends RunState {
  round: { said: readonly SaidPart[]; outcomes: RoundOutcomes };
}

/** A run whose gate lets no call wait. */
export async function runAgent(parts: AgentParts, input: AgentInput): Promise<AgentResult> {
  const result = await runUntilStopped(parts, input);
  if ('stopped' in result) throw bugError('A run stopped that nobody can continue.');
  return result;
}

/**
 * Lets a model work with tools until it has nothing more to call: at most `rounds` rounds, then one closing answer without
 * tools; or until a call has to wait. Throws what `ask` throws, and the signal's reason; what the tools did until then is told
 * by `onEvent`.
 */
export async function runUntilStopped(parts: AgentParts, input: AgentInput, earlier?: StoppedRun) {
  const state = earlier ? { ...earlier, conversation: relinked(earlier.conversation) } : newState(input);
  const run: Run = { ...state, parts, input, limits: { ...agentLimits, ...input.limits } };
  for (let open = earlier?.round; ; open = undefined) {
    if (!open) {
      const closing = closingOf(run);
      const answer = await askRound(run, closing);
      if (closing || callsIn(answer).length === 0) return conclude(run, answer, closing ?? stopOf(answer));
      open = { said: answer.said ?? [], outcomes: [] };
    }
    const round = { ...open, outcomes: await work(run, open) };
    if (!round.outcomes.includes(null)) continue;
    const { parts: _parts, input: _input, limits: _limits, ...stopped } = run;
    return { stopped: { ...stopped, round } };
  }
}

/** The exchange that a refresh stands behind, itself, which a copy of it no longer is. */
function relinked({ refresh, ...conversation }: Conversation): Conversation {
  const after = conversation.exchanges.find(each => isDeepStrictEqual(each, refresh?.after));
  return { ...conversation, refresh: after && refresh && { ...refresh, after } };
}

function newState(input: AgentInput): RunState {
  const { mark, history = [] } = input;
  const task = asMessage('user', 'turn', input.message);
  const context = input.context === undefined ? undefined : asMessage('user', 'turn', input.context);
  // Behind the preamble, so that what runs have in common stays their beginning.
  const notice = input.tools.length > 0 ? [asMessage('system', 'preamble', noticeOf(mark))] : [];
  const preamble = [...input.preamble, ...notice];
  return {
    candidates: input.candidates,
    conversation: { preamble, mark, history, task, exchanges: [], ...(context && { context }) },
    all: [],
    rounds: 0,
    toolCalls: [],
    usage: noUsage,
    attempts: [],
    costUsd: 0,
    warnings: [],
    spoke: false,
  };
}

type Closing = 'max_rounds' | 'max_bytes';

/** What was trimmed counts too: a run that goes on for ever must end. */
function closingOf({ rounds, limits, all }: Run): Closing | undefined {
  if (bytesBrought(all) > limits.bytes) return 'max_bytes';
  return rounds >= limits.rounds ? 'max_rounds' : undefined;
}

function stopOf({ partial, finish }: ModelAnswer): AgentStop {
  if (partial || finish.raw === pausedTurn) return 'interrupted';
  return finish.kind === 'length' || finish.kind === 'content_filter' ? finish.kind : 'done';
}

async function askRound(run: Run, closing: Closing | undefined): Promise<ModelAnswer> {
  const { parts, input } = run;
  const { truncLimit } = run.limits;
  throwIfAborted(input.signal);
  const [first] = run.candidates;
  const round = ++run.rounds;
  const answerRoom = input.maxOutputTokens ?? (thinksInAnswer(first) ? thinkingOutputTokens : outputTokens);
  const shorter = trimConversation(run.conversation, first.model, { answer: answerRoom, truncLimit });
  run.conversation = shorter.conversation;
  if (shorter.entries > 0) input.onEvent?.({ type: 'trim', round, entries: shorter.entries });
  input.onEvent?.({ type: 'request', round, model: modelName(first), closing: closing !== undefined });
  const order = closing && (closing === 'max_bytes' ? outOfRoom : outOfRounds);
  const stream =
    input.onText && createMaskedStream(parts.mask, input.scope ?? input.reqId, streamProgress(run, input.onText));
  let made: { model: ModelInfo; conversation: Conversation } | undefined;
  const answer = await parts.ask({
    reqId: input.reqId,
    tool: input.tool,
    payer: input.payer,
    candidates: run.candidates,
    messages: messagesOf(run.conversation, truncLimit, order),
    promptFor: async candidate => {
      const { model } = candidate;
      if (model.window >= first.model.window) return undefined;
      const room = { answer: Math.min(answerRoom, model.maxOutput), truncLimit };
      let { conversation, fits } = trimConversation(run.conversation, model, room);
      if (input.promptFor && !fits) {
        const { history = [], message } = await input.promptFor(candidate);
        made = { model, conversation: { ...run.conversation, history, task: asMessage('user', 'turn', message) } };
        conversation = trimConversation(made.conversation, model, room).conversation;
      }
      return { messages: messagesOf(conversation, truncLimit, order) };
    },
    ...(input.tools.length > 0 && { tools: input.tools }),
    ...(closing && { toolChoice: 'none' }),
    maxOutputTokens: answerRoom,
    temperature: input.temperature,
    cacheKey: input.cacheKey ?? input.reqId,
    signal: input.signal,
    onText: stream?.push,
    onProgress: input.onProgress,
  });
  await stream?.end();
  throwIfAborted(input.signal);
  if (made?.model === answer.candidate.model) run.conversation = made.conversation;
  record(run, answer, round);
  return answer;
}

/** What is said in one round stands apart from what was said before. */
function streamProgress(run: Run, onText: (delta: string) => void): (delta: string) => void {
  let first = true;
  return delta => {
    if (first && run.spoke) onText('\n\n');
    first = false;
    run.spoke = true;
    onText(delta);
  };
}

/** Whoever answered goes on: another vendor could not read its thoughts. */
function record(run: Run, answer: ModelAnswer, round: number): void {
  const { usage, costUsd, candidate, warnings, text } = answer;
  run.usage = addUsage(run.usage, usage);
  run.attempts.push(...answer.attempts);
  run.costUsd = run.costUsd === undefined || costUsd === undefined ? undefined : run.costUsd + costUsd;
  run.candidates = [candidate, ...run.candidates.filter(other => other.model !== candidate.model)];
  run.warnings = [...new Set([...run.warnings, ...warnings])];
  const model = modelName(candidate);
  const cost = costUsd === undefined ? {} : { costUsd };
  run.input.onEvent?.({ type: 'response', round, model, text, calls: callsIn(answer).length, usage, ...cost });
}

const callsIn = ({ said: parts = [] }: Pick<ModelAnswer, 'said'>): ToolCall[] =>
  parts.filter(part => part.type === 'call');

/** Makes the calls of a round that are left; it is over once all have an outcome. */
async function work(run: Run, open: StoppedRun['round']): Promise<RoundOutcomes> {
  const { parts, input, limits } = run;
  const round = { parts, input, limits, number: run.rounds, left: limits.bytes - bytesBrought(run.all) };
  const made = await callTools(round, callsIn(open), open.outcomes);
  const outcomes = made.filter(outcome => outcome !== null);
  if (outcomes.length < made.length) return made;
  run.toolCalls.push(...outcomes.map(({ record }) => record));
  const exchange = { said: open.said, results: outcomes.map(({ result }) => result) };
  run.all = [...run.all, exchange];
  run.conversation = { ...run.conversation, exchanges: [...run.conversation.exchanges, exchange] };
  if (!parts.refresh) return made;
  const changes = await parts.refresh.changes();
  for (const path of outcomes.flatMap(({ seen }) => seen)) await parts.refresh.saw(path);
  if (changes.length === 0) return made;
  const text = changes.map(change => stripForgedMarks(change.text)).join('\n\n');
  run.conversation = { ...run.conversation, refresh: { after: exchange, text } };
  input.onEvent?.({ type: 'refresh', round: round.number, files: changes.map(({ path }) => path) });
  return made;
}

async function conclude(run: Run, answer: ModelAnswer, stopReason: AgentStop): Promise<AgentResult> {
  const { parts, input, limits, rounds, toolCalls, usage, costUsd } = run;
  const whole = answer.text.trim() === '' ? nothingSaid : answer.text.toWellFormed();
  const { text } = await parts.mask(whole, input.scope ?? input.reqId, 'model');
  const { context, task } = run.conversation;
  const exchanges = run.all.flatMap(exchange => messagesOfRound(exchange, limits.truncLimit, ''));
  return {
    text,
    turns: [...(context ? [context] : []), task, ...exchanges, lastMessage(answer)],
    rounds,
    usage,
    ...(costUsd !== undefined && { costUsd }),
    toolCalls,
    stopReason,
    candidate: answer.candidate,
    attempts: run.attempts,
    warnings: run.warnings,
  };
}

/** Without calls: nobody will ever answer them. */
function lastMessage({ text, said: parts }: ModelAnswer): Message {
  const kept = parts?.filter(part => part.type !== 'call') ?? [];
  const last = kept.findLastIndex(part => part.type === 'text');
  if (last === -1) return asMessage('assistant', 'turn', text.trim() === '' ? nothingSaid : text);
  return { role: 'assistant', section: 'turn', parts: [], said: kept.slice(0, last + 1) };
}
