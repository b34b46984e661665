import { continueTruncated, questionBase } from '../../../calls/ask/ask.ts';
import { createMaskedStream } from '../../../calls/ask/redaction.ts';
import { type AppError, limitError } from '../../../core/errors.ts';
import { type Message, textOf } from '../../../core/message.ts';
import type { Candidate } from '../../../core/model.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../../core/tokens.ts';
import type { ModelAnswer, ModelQuestion } from '../../../models/ask-model.ts';
import { planBudget } from '../../../threads/compaction.ts';
import { said } from '../../../threads/transcript.ts';
import {
  askEach,
  type Candidates,
  type ManyRun,
  modelName,
  nameOf,
  outcomeOf,
  type Target,
  type TargetOutcome,
  type TargetResponse,
} from './ask-many.ts';

/** One text for several models. */
export interface FanoutRun extends ManyRun {
  /** What every model is asked. */
  text: string;
}

export interface TargetPrompt {
  messages: readonly Message[];
  /** Tokens of the messages by o200k, counted once for all models, and only where estimates can't decide. */
  counted(): Promise<number>;
  onText?: ((delta: string) => void) | undefined;
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

/** Asks one model, if it can be asked. */
export async function askTarget(run: FanoutRun, { who }: Target, prompt: TargetPrompt): Promise<TargetOutcome> {
  if ('failure' in who) return { status: 'error', error: who.failure, latencyMs: 0 };
  return outcomeOf(run, () => ask(run, who.candidates, prompt));
}

async function ask({ services, call, scope }: FanoutRun, candidates: Candidates, prompt: TargetPrompt) {
  const { tokens, room } = await roomFor(candidates[0], prompt);
  const stream = prompt.onText && createMaskedStream(services.mask, scope, prompt.onText);
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
  const given = await services.askModel(question);
  const answer: ModelAnswer = await continueTruncated(services.askModel, question, given, tokens);
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

/** Puts the text to every model. */
export async function askTargets(run: FanoutRun, targets: readonly Target[]): Promise<TargetResponse[]> {
  const { call, text } = run;
  const [only] = targets.length === 1 ? targets : [];
  // Only one answer can be shown while it comes.
  const prompt = { ...promptForTargets(run, text), onText: only && call.request.onText };
  call.progress.stage(only ? `asking ${nameOf({ target: only })}` : `asking ${targets.length} models`);
  let sharers = targets.length;
  return askEach(run, targets, target => ({ ask: () => askTarget(run, target, { ...prompt, sharers: sharers-- }) }));
}
