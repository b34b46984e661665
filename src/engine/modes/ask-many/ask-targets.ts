import { continueTruncated, questionBase } from '../../../calls/ask/ask.ts';
import { createMaskedStream, maskAnswer, withoutSecrets } from '../../../calls/ask/redaction.ts';
import type { ParsedCall } from '../../../calls/call-record.ts';
import { inParallel } from '../../../core/concurrency.ts';
import { type AppError, isAppError, limitError, throwIfAborted } from '../../../core/errors.ts';
import { type Message, textOf } from '../../../core/message.ts';
import type { Candidate } from '../../../core/model.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../../core/tokens.ts';
import { noUsage } from '../../../core/usage.ts';
import type { ModelAnswer, ModelQuestion } from '../../../models/ask-model.ts';
import { planBudget } from '../../../threads/compaction.ts';
import { said } from '../../../threads/transcript.ts';
import type { ModeServices } from '../mode.ts';
import { addSpending, emptyAnswer, type Spending } from './ask-panelist.ts';
import { maxConcurrentModels } from './panel-prompts.ts';
import { type Candidates, modelName, type Panelist } from './panelists.ts';

/** One model that was asked for, and who that is; or why it can't be asked. */
export interface FanoutTarget extends Pick<Panelist, 'who' | 'warnings'> {
  /** As the caller, or the operator's default, named it. */
  requested: string;
}

/** `answer` has its secrets masked; `said` is what the model wrote, for files alone. */
export type TargetOutcome = { answer: ModelAnswer; said: string } | { error: AppError; latencyMs: number };

export interface TargetResponse {
  target: FanoutTarget;
  outcome: TargetOutcome;
}

/** One call with what all its questions have in common. */
export interface FanoutRun {
  services: ModeServices;
  /** With its secrets masked. */
  call: ParsedCall;
  /** What every model is asked. */
  text: string;
  spent: Spending;
}

export function startFanout(services: ModeServices, call: ParsedCall, text: string): FanoutRun {
  return { services, call, text, spent: { usage: noUsage } };
}

export interface TargetPrompt {
  messages: readonly Message[];
  /** Tokens of the messages by o200k, counted once for all models, and only where estimates can't decide. */
  counted(): Promise<number>;
  onText?: (delta: string) => void;
  /** How many models, this one included, are still to be asked. */
  sharers?: number;
}

/** The text as it is, without a word of ours but the language that the operator wants. */
export function promptForTargets({ services }: FanoutRun, text: string): TargetPrompt {
  const { language } = services.fanout;
  const messages = [...(language ? [said('system', 'preamble', language)] : []), said('user', 'turn', text)];
  let count: Promise<number> | undefined;
  return {
    messages,
    counted() {
      count ??= services.countTokens(messages.map(textOf));
      return count;
    },
  };
}

/** Asks one model. Never throws for a model that fails; a call that was cancelled does. */
export async function askTarget(run: FanoutRun, { who }: FanoutTarget, prompt: TargetPrompt): Promise<TargetOutcome> {
  if (!('candidates' in who)) return { error: who.failure, latencyMs: 0 };
  const { services, call } = run;
  const { clock, mask } = services;
  const began = clock.monotonic();
  try {
    throwIfAborted(call.signal);
    const answer = await ask(run, who.candidates, prompt);
    addSpending(run.spent, answer);
    return answer.text.trim() === ''
      ? { error: emptyAnswer(answer), latencyMs: answer.latencyMs }
      : { answer: await maskAnswer(mask, call.reqId, answer), said: answer.text.toWellFormed() };
  } catch (error) {
    throwIfAborted(call.signal);
    // One model's failure is reported in its own entry; the others are asked all the same.
    if (!isAppError(error) || error.kind === 'bug') throw error;
    return { error: await withoutSecrets(mask, call.reqId, error), latencyMs: clock.monotonic() - began };
  }
}

async function ask({ services, call }: FanoutRun, candidates: Candidates, prompt: TargetPrompt): Promise<ModelAnswer> {
  const { tokens, room } = await roomFor(candidates[0], prompt);
  const stream = prompt.onText && createMaskedStream(services.mask, call.reqId, prompt.onText);
  const question: ModelQuestion = {
    ...questionBase(call),
    candidates,
    messages: prompt.messages,
    // The text can't be made shorter: it fits, or another one is asked.
    promptFor: async candidate => ({ maxOutputTokens: (await roomFor(candidate, prompt)).room }),
    sharers: prompt.sharers,
    maxOutputTokens: room,
    onText: stream?.push,
  };
  const answer = await continueTruncated(services.askModel, question, await services.askModel(question), tokens);
  await stream?.end();
  return answer;
}

/** Tokens of the prompt, and of the answer's room beside it. Throws LIMIT with the numbers when the prompt does not fit. */
async function roomFor(
  candidate: Candidate,
  { messages, counted }: TargetPrompt,
): Promise<{ tokens: number; room: number }> {
  const { window, maxOutput, id } = candidate.model;
  const factor = tokenFactor(id);
  const { answer: room } = planBudget({ window, maxOutput, reserved: 0 });
  const overhead = messages.length * tokensPerMessage;
  const free = window - room - overhead;
  const texts = messages.map(textOf);
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  // Bytes bound tokens: no need to look closer at what is short.
  if (bytes * factor <= free) return { tokens: Math.ceil(bytes * factor) + overhead, room };
  const estimated = texts.reduce((sum, text) => sum + estimateTokens(text, factor), 0);
  const tokens = estimated > free ? estimated : Math.ceil((await counted()) * factor);
  if (tokens > free) throw tooLong(candidate, tokens, { free, room });
  return { tokens: tokens + overhead, room };
}

function tooLong(candidate: Candidate, tokens: number, { free, room }: { free: number; room: number }): AppError {
  const { window, provider, id } = candidate.model;
  return limitError(
    'tokens',
    `The text has about ${tokens} tokens; ${modelName(candidate)} has room for ${free} beside an answer of ${room}.`,
    {
      provider,
      model: id,
      next: 'Shorten the text, or name a model with a larger window ("listmodels" shows them).',
      data: { window, tokens, answer: room },
    },
  );
}

/** Puts the text to every model, a few at a time; responses come in the order of the targets. */
export async function askTargets(run: FanoutRun, targets: readonly FanoutTarget[]): Promise<TargetResponse[]> {
  const { call, text } = run;
  // Only one answer can be shown while it comes.
  const onText = targets.length === 1 ? call.request.onText : undefined;
  const prompt = { ...promptForTargets(run, text), onText };
  const [only] = targets;
  call.progress.stage(targets.length === 1 && only ? `asking ${nameOf(only)}` : `asking ${targets.length} models`);
  let ready = 0;
  let sharers = targets.length;
  return inParallel(targets, maxConcurrentModels, async target => {
    const outcome = await askTarget(run, target, { ...prompt, sharers: sharers-- });
    call.progress.stage(`${outcomeText(target, outcome)} (${++ready} of ${targets.length})`);
    return { target, outcome };
  });
}

function outcomeText(target: FanoutTarget, outcome: TargetOutcome): string {
  if ('error' in outcome) return `${nameOf(target, outcome)} failed`;
  return `${nameOf(target, outcome)} answered in ${(outcome.answer.latencyMs / 1_000).toFixed(1)} s`;
}

/** The model that answered, or that would have: as it is served, else as it was named. */
export function nameOf({ who, requested }: FanoutTarget, outcome?: TargetOutcome): string {
  if (outcome && 'answer' in outcome) return modelName(outcome.answer.candidate);
  return 'candidates' in who ? modelName(who.candidates[0]) : requested;
}
