import { throwIfAborted } from '../../../core/errors.ts';
import type { Message, ToolCall } from '../../../core/message.ts';
import type { Candidate } from '../../../core/model.ts';
import { addUsage, noUsage } from '../../../core/usage.ts';
import type { ModelAnswer } from '../../../models/ask-model.ts';
import { bytesOf, type Conversation, messagesOf, said, turnsOf } from '../../agent/conversation.ts';
import { noticeOf, withoutImitations } from '../../agent/own-blocks.ts';
import { trimmed } from '../../agent/trim.ts';
import { createMaskedStream } from '../../secrets/masked-stream.ts';
import { thinksInAnswer } from '../../spend/quote.ts';
import {
  type AgentInput,
  type AgentLimits,
  type AgentParts,
  type AgentResult,
  type AgentStop,
  type AgentToolCall,
  agentLimits,
} from './agent.ts';
import { callTools } from './call-tools.ts';

const outOfRounds =
  'You have used all your rounds; no tool can be called any more. Answer now: what was done, what came of it, and what is left to do.';
const outOfRoom =
  'The conversation has become too long; no tool can be called any more. Conclude now: what was done, what came of it, and what is left to do.';
const nothingSaid = '(The model gave no closing answer.)';
const outputTokens = 8_192;
/** Thoughts come out of the same room. */
const thinkingOutputTokens = 32_768;

interface Run {
  parts: AgentParts;
  input: AgentInput;
  limits: AgentLimits;
  candidates: readonly Candidate[];
  conversation: Conversation;
  /** Everything that was added, whatever was trimmed since. */
  all: Conversation['exchanges'];
  rounds: number;
  toolCalls: AgentToolCall[];
  usage: AgentResult['usage'];
  costUsd: number | undefined;
  warnings: Set<string>;
  /** Some text went to who listens. */
  spoke: boolean;
}

/**
 * Lets a model work with tools until it has nothing more to call: at most `rounds` rounds, then one closing answer without
 * tools. Throws what `ask` throws, and the signal's reason; what the tools did until then is told by `onEvent`.
 */
export async function runAgent(parts: AgentParts, input: AgentInput): Promise<AgentResult> {
  const task = said('user', 'turn', input.message);
  const run: Run = {
    parts,
    input,
    limits: { ...agentLimits, ...input.limits },
    candidates: input.candidates,
    conversation: { preamble: preambleOf(input), mark: input.mark, history: input.history ?? [], task, exchanges: [] },
    all: [],
    rounds: 0,
    toolCalls: [],
    usage: noUsage,
    costUsd: 0,
    warnings: new Set(),
    spoke: false,
  };
  for (;;) {
    const closing = closingOf(run);
    const answer = await askRound(run, closing);
    const calls = callsIn(answer);
    if (closing || calls.length === 0) return conclude(run, answer, closing ?? stopOf(answer));
    await work(run, answer, calls);
  }
}

/** The same for all of a run. Behind it, so that what runs have in common stays their beginning. */
function preambleOf({ preamble, mark, tools }: AgentInput): Message[] {
  return tools.length > 0 ? [...preamble, said('system', 'preamble', noticeOf(mark))] : [...preamble];
}

type Closing = 'max_rounds' | 'max_bytes';

/** What was trimmed counts too: a run that goes on for ever must end. */
function closingOf({ rounds, limits, conversation, all }: Run): Closing | undefined {
  const brought = messagesOf({ ...conversation, preamble: [], history: [], exchanges: all }, limits.truncLimit).slice(
    1,
  );
  if (bytesOf(brought) > limits.bytes) return 'max_bytes';
  return rounds >= limits.rounds ? 'max_rounds' : undefined;
}

function stopOf({ partial, finish }: ModelAnswer): AgentStop {
  if (partial) return 'interrupted';
  return finish.kind === 'length' || finish.kind === 'content_filter' ? finish.kind : 'done';
}

async function askRound(run: Run, closing: Closing | undefined): Promise<ModelAnswer> {
  const { parts, input, limits } = run;
  throwIfAborted(input.signal);
  const [first] = run.candidates;
  const round = ++run.rounds;
  const answerRoom = input.maxOutputTokens ?? (first && thinksInAnswer(first) ? thinkingOutputTokens : outputTokens);
  if (first) {
    const shorter = trimmed(run.conversation, first.model, { answer: answerRoom, truncLimit: limits.truncLimit });
    run.conversation = shorter.conversation;
    if (shorter.entries > 0) input.onEvent?.({ type: 'trim', round, entries: shorter.entries });
    const model = `${first.model.provider}:${first.model.id}`;
    input.onEvent?.({ type: 'request', round, model, closing: closing !== undefined });
  }
  const order = closing && (closing === 'max_bytes' ? outOfRoom : outOfRounds);
  const stream = input.onText && createMaskedStream(parts.mask, input.scope ?? input.reqId, told(run, input.onText));
  const answer = await parts.ask({
    reqId: input.reqId,
    tool: input.tool,
    payer: input.payer,
    candidates: run.candidates,
    messages: messagesOf(run.conversation, limits.truncLimit, order),
    ...(input.tools.length > 0 && { tools: input.tools }),
    ...(closing && { toolChoice: 'none' }),
    maxOutputTokens: answerRoom,
    temperature: input.temperature,
    cacheKey: input.cacheKey ?? input.reqId,
    limits: input.callLimits,
    signal: input.signal,
    onText: stream?.push,
    onProgress: input.onProgress,
  });
  await stream?.end();
  throwIfAborted(input.signal);
  record(run, answer, round);
  return answer;
}

/** What is said in one round stands apart from what was said before. */
function told(run: Run, onText: (delta: string) => void): (delta: string) => void {
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
  run.costUsd = run.costUsd === undefined || costUsd === undefined ? undefined : run.costUsd + costUsd;
  run.candidates = [candidate, ...run.candidates.filter(other => other.model !== candidate.model)];
  for (const warning of warnings) run.warnings.add(warning);
  run.input.onEvent?.({ type: 'response', round, text, calls: callsIn(answer).length, usage });
}

function callsIn({ said: parts = [] }: ModelAnswer): ToolCall[] {
  return parts.filter(part => part.type === 'call');
}

async function work(run: Run, answer: ModelAnswer, calls: readonly ToolCall[]): Promise<void> {
  const { parts, input, limits } = run;
  const number = run.rounds;
  const outcomes = await callTools(parts, input, calls, { number, limits });
  run.toolCalls.push(...outcomes.map(({ record }) => record));
  const exchange = { said: answer.said ?? [], results: outcomes.map(({ result }) => result) };
  run.all = [...run.all, exchange];
  run.conversation = { ...run.conversation, exchanges: [...run.conversation.exchanges, exchange] };
  if (!parts.refresh) return;
  const changes = await parts.refresh.changes(input.signal);
  for (const path of outcomes.flatMap(({ seen }) => seen)) await parts.refresh.saw(path);
  if (changes.length === 0) return;
  const text = changes.map(change => withoutImitations(change.text)).join('\n\n');
  run.conversation = { ...run.conversation, refresh: { after: exchange, text } };
  input.onEvent?.({ type: 'refresh', round: number, files: changes.map(({ path }) => path) });
}

async function conclude(run: Run, answer: ModelAnswer, stopReason: AgentStop): Promise<AgentResult> {
  const { parts, input, limits, rounds, toolCalls, usage, costUsd } = run;
  const whole = answer.text.trim() === '' ? nothingSaid : answer.text.toWellFormed();
  const { text } = await parts.mask(whole, input.scope ?? input.reqId, 'model');
  return {
    text,
    turns: turnsOf({ ...run.conversation, exchanges: run.all }, limits.truncLimit, lastMessage(answer)),
    rounds,
    usage,
    ...(costUsd !== undefined && { costUsd }),
    toolCalls,
    stopReason,
    candidate: answer.candidate,
    warnings: [...run.warnings],
  };
}

/** Without calls: nobody will ever answer them. */
function lastMessage({ text, said: parts }: ModelAnswer): Message {
  const kept = parts?.filter(part => part.type !== 'call') ?? [];
  const last = kept.findLastIndex(part => part.type === 'text');
  if (last === -1) return said('assistant', 'turn', text.trim() === '' ? nothingSaid : text);
  return { role: 'assistant', section: 'turn', parts: [], said: kept.slice(0, last + 1) };
}
