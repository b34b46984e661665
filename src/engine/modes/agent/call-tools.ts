import { orAbort, withDeadline } from '../../../core/concurrency.ts';
import { asError, isAppError, throwIfAborted } from '../../../core/errors.ts';
import { isRecord } from '../../../core/json.ts';
import type { ToolCall, ToolResult } from '../../../core/message.ts';
import { cutMiddle, safeCut } from '../../../core/text.ts';
import type { AgentInput, AgentLimits, AgentParts, AgentToolCall } from './agent.ts';
import { headed, hintHeading, stripForgedMarks } from './agent.ts';
import { type AgentTool, everyCall, type ToolOutput } from './local-tools/agent-tool.ts';

/** What is kept of a result for the record of the run. */
const maxRecordedLength = 2_000_000;
/** Characters of a round's outputs together; the request has to stay one that vendors take. */
const roundChars = 400_000;
const leastShare = 2_000;

/** A call with what came of it: for the record, and for the model. */
export interface CallOutcome {
  record: AgentToolCall;
  result: ToolResult;
  seen: readonly string[];
}

/** What the calls of one round have in common. */
interface Round {
  parts: AgentParts;
  input: AgentInput;
  number: number;
  limits: AgentLimits;
  /** Bytes that the run may still bring. */
  left: number;
}

/** Of each call of a round, in their order; null: it was not made yet. */
export type RoundOutcomes = (CallOutcome | null)[];

/** Makes the calls of a round that have no outcome: reads at the same time, others one by one, none behind one that waits. */
export async function callTools(round: Round, calls: readonly ToolCall[], earlier: RoundOutcomes) {
  const outcomes = calls.map((_, index) => earlier[index] ?? null);
  let batch: [index: number, call: ToolCall][] = [];
  let waits = false;
  const flush = async () => {
    const made = async ([index, call]: (typeof batch)[number]) => {
      outcomes[index] = await callTool(round, call, calls.length);
      waits ||= outcomes[index] === null;
    };
    if (!waits) await Promise.all(batch.map(made));
    batch = [];
  };
  for (const [index, call] of calls.entries()) {
    if (outcomes[index]) continue;
    const { effect = 'read' } = round.input.tools.find(({ name }) => name === call.name) ?? {};
    const alone = effect === 'write' || effect === 'run';
    if (alone || batch.length >= round.limits.parallel) await flush();
    if (index >= round.limits.callsARound)
      outcomes[index] = refusal(round, call, { outcome: 'refused', problem: tooMany(round.limits), args: call.args });
    else batch.push([index, call]);
    if (alone) await flush();
  }
  await flush();
  return outcomes;
}

const tooMany = ({ callsARound }: AgentLimits) =>
  `Not run: one round may have ${callsARound} calls. Retry it in the next round.`;

/** A call that is not run, and why. */
interface Refused {
  outcome: 'refused' | 'invalid';
  problem: string;
  args: unknown;
}

const refusal = (round: Round, { id, name }: ToolCall, { args, outcome, problem: text }: Refused): CallOutcome => ({
  record: { round: round.number, id, name, args, outcome, result: text, elapsedMs: 0 },
  result: { id, name, text: stripForgedMarks(text), failed: true },
  seen: [],
});

async function callTool(round: Round, call: ToolCall, calls: number) {
  const { parts, input, number } = round;
  throwIfAborted(input.signal);
  const began = parts.clock.monotonic();
  const { id, name, broken, args } = call;
  input.onEvent?.({ type: 'tool_call', round: number, id, name, args: broken ?? copyOf(args) });
  const judged = await judge(input, call);
  if (judged === 'wait') return null;
  const outcome =
    'problem' in judged
      ? refusal(round, call, { ...judged, problem: await hidden(round, judged.problem) })
      : await run(round, call, judged, calls);
  outcome.record.elapsedMs = parts.clock.monotonic() - began;
  reportCall(round, outcome.record);
  return outcome;
}

/** A call that may be run, with its arguments as they were checked last. */
interface Allowed {
  tool: AgentTool;
  args: Record<string, unknown>;
}

/** Whether the call may be run at all: it names a tool, its arguments are sound, and the gate lets it. */
async function judge(input: AgentInput, call: ToolCall): Promise<Allowed | Refused | 'wait'> {
  const { name } = call;
  const tool = input.tools.find(each => each.name === name);
  const invalid = (problem: string): Refused => ({ outcome: 'invalid', problem, args: call.broken ?? call.args });
  if (!tool) {
    const names = input.tools.map(each => each.name).join(', ');
    return invalid(`Unknown tool "${safeCut(name, 100)}". Known tools: ${names}.`);
  }
  if (call.broken !== undefined)
    return invalid(`The arguments were no JSON object: ${safeCut(call.broken, 300)}. Call ${name} again with one.`);
  const sound = await check(input, tool, call.args);
  if ('problem' in sound) return invalid(`${sound.problem} Correct the arguments and call ${name} again.`);
  const refused = (why: string, args: unknown): Refused => {
    return { outcome: 'refused', problem: `Refused, and not run: ${why}`, args };
  };
  const approval = await approvalOf(input, tool, call.id, sound.args);
  if ('problem' in approval) return refused(approval.problem, sound.args);
  if (!input.onToolCall && approval.asked !== undefined)
    return refused(`it needs an approval (${approval.asked}), and nobody is asked here.`, sound.args);
  // Who is asked may never answer: the end of the run does not wait for that.
  const pending = { args: copyOf(sound.args), tool, id: call.id, name, signal: input.signal, approval };
  const asked = Promise.resolve(input.onToolCall?.(pending));
  const verdict = (await orAbort(asked, input.signal)) ?? { action: 'allow' };
  throwIfAborted(input.signal);
  if (verdict.action === 'wait') return verdict.action;
  if (verdict.action === 'deny') return refused(verdict.reason, sound.args);
  if (!verdict.args) return { tool, args: sound.args };
  const edited = await check(input, tool, verdict.args);
  if ('problem' in edited) return invalid(`The edited arguments don't fit: ${edited.problem}`);
  const wrong = await approvalOf(input, tool, call.id, edited.args);
  return 'problem' in wrong ? refused(wrong.problem, edited.args) : { tool, args: edited.args };
}

/** For those who look at a call: what they change in it is not run. */
function copyOf(args: Record<string, unknown>): Record<string, unknown> {
  try {
    return structuredClone(args);
  } catch {
    // A check of a program may make functions of them.
    return { ...args };
  }
}

/** What the code of a tool, or of a program that uses the library, says of a call; the model is told why where it fails. */
async function said<Said>(
  { signal }: AgentInput,
  say: () => Said | Promise<Said>,
): Promise<Said | { problem: string }> {
  try {
    return await orAbort(Promise.resolve(say()), signal);
  } catch (error) {
    throwIfAborted(signal);
    return { problem: failureText(error) };
  }
}

const check = (input: AgentInput, tool: AgentTool, args: Record<string, unknown>) =>
  said(input, () => tool.check?.(args) ?? { args });

/** What an approval of a call covers, or what the tool itself has against it. */
const approvalOf = (input: AgentInput, tool: AgentTool, callId: string, args: Record<string, unknown>) =>
  said(input, async () => {
    const covered = (await tool.approval?.(args, { callId, signal: input.signal })) ?? everyCall(tool.name);
    if (typeof covered === 'object') return covered;
    throw new TypeError(`"approval" of ${tool.name} has to bring an object.`);
  });

async function run(round: Round, { id, name }: ToolCall, allowed: Allowed, calls: number): Promise<CallOutcome> {
  const { parts, number, limits, left } = round;
  const { args } = allowed;
  const brought = await outputOf(round, id, allowed);
  // The second half of a secret is known by its line alone.
  const whole = await hidden(round, cutMiddle(brought.text, maxRecordedLength, true));
  const share = Math.min(limits.outputChars, Math.max(leastShare, Math.floor(Math.min(roundChars, left) / calls)));
  const shown = cutMiddle(stripForgedMarks(whole), share);
  const hint = brought.failed && parts.triage ? await hintFor(round, { name, args, text: shown }) : '';
  const outcome = brought.refused ? 'refused' : brought.failed ? 'failed' : 'ok';
  return {
    record: { round: number, id, name, args, outcome, result: whole, elapsedMs: 0 },
    result: { id, name, text: shown + hint, ...(brought.failed && { failed: true }) },
    seen: brought.seen ?? [],
  };
}

/** What a tool brought, whatever it did: one that throws or hangs has failed, and the run goes on. */
async function outputOf({ parts, input, limits }: Round, callId: string, { tool, args }: Allowed) {
  const ms = tool.ms ?? limits.toolMs;
  const run = async (signal: AbortSignal): Promise<ToolOutput & { refused?: boolean }> => {
    try {
      return soundOutput(await orAbort(Promise.resolve(tool.run(args, { callId, signal })), signal));
    } catch (error) {
      throwIfAborted(input.signal);
      if (signal.aborted)
        return { text: `It took longer than ${Math.round(ms / 1_000)} s and was ended.`, failed: true };
      // The model is told, and decides what to do about it.
      return { text: failureText(error), failed: true, refused: isAppError(error) && error.kind === 'security' };
    }
  };
  return withDeadline(parts.clock, ms, run, input.signal);
}

/** Programs without types may bring anything. */
function soundOutput(output: unknown): ToolOutput {
  if (isRecord(output) && Symbol.asyncIterator in output)
    throw new TypeError('The tool brought an iterator. Its "run" has to return a text.');
  if (!isRecord(output) || typeof output.text !== 'string')
    return { text: typeof output === 'string' ? output : (JSON.stringify(output) ?? '') };
  const seen: unknown[] = Array.isArray(output.seen) ? output.seen : [];
  return { text: output.text, failed: output.failed === true, seen: seen.filter(path => typeof path === 'string') };
}

function failureText(error: unknown): string {
  if (isAppError(error)) return [error.message, error.details.next].filter(Boolean).join(' ');
  return `It failed: ${asError(error).message}`;
}

async function hintFor({ parts, input }: Round, failure: { name: string; args: unknown; text: string }) {
  const { signal, mark } = input;
  try {
    const hint = await parts.triage?.(failure, signal);
    return hint ? `\n\n${headed(hintHeading, mark)}\n${stripForgedMarks(hint)}` : '';
  } catch (error) {
    throwIfAborted(signal);
    // A hint is no part of the work: without one the model goes on as well.
    if (!isAppError(error)) throw error;
    return '';
  }
}

const hidden = async ({ parts, input: { reqId, scope = reqId } }: Round, text: string): Promise<string> =>
  (await parts.mask(text.toWellFormed(), scope)).text;

function reportCall({ parts, input: { reqId, tool, onEvent } }: Round, record: AgentToolCall): void {
  const { name, outcome, args, round, result } = record;
  onEvent?.({ type: 'tool_result', round, call: record });
  const refused = outcome === 'refused' || outcome === 'invalid';
  const reason = refused && { reason: safeCut(result, 300) };
  const asked = safeCut(JSON.stringify(args) ?? '', 500);
  parts.emit({ type: 'agent.call', reqId, tool, name, outcome, args: asked, ...reason });
}
