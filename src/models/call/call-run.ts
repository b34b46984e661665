import type { AppError } from '../../core/errors.ts';
import type { Candidate, ModelInfo } from '../../core/model.ts';
import type { Clock, Emit, Random, TellComms } from '../../core/ports.ts';
import type { Fees } from '../../domain/fees.ts';
import type { AttemptRecord, CallLimits, ModelQuestion } from '../ask-model.ts';
import type { Connection } from '../provider.ts';
import type { Resilience } from '../resilience/policy.ts';
import type { AttemptOutcome } from './attempt.ts';

export interface AskModelParts {
  connection(providerId: string): Promise<Connection>;
  clock: Clock;
  random: Random;
  emit: Emit;
  /** Gets each question as it is sent, and what came of it; absent: nobody wants to know. */
  tellComms?: TellComms;
  /** Endpoints on this machine or network get wider limits. */
  isLocal(providerId: string): boolean;
  /** Whether a model can search the web by itself; absent: none can. */
  searches?(model: ModelInfo): boolean;
  /** The configured limits; reasoning models and local endpoints get a multiple. */
  limits: CallLimits;
  /** A provider's own limits for a model, which nothing widens; absent: the configured ones. */
  limitsOf?(model: ModelInfo): CallLimits | undefined;
  /** Environment variable of a provider's key, for the advice in errors. */
  keyName?(providerId: string): string | undefined;
  /** Breakers, the budget of retries and the queue. Absent: nothing stands between a call and its vendors. */
  resilience?: Resilience;
  /** When nobody answers a chat, the caller gets a text that says so instead of an error. */
  lastAnswer?: boolean;
}

/** One attempt, told in our words. */
export interface Try extends Omit<AttemptOutcome, 'failure' | 'uses'> {
  /** What the vendor charges for beside tokens; part of `usage` where there is one. */
  fees?: Fees;
  candidate: Candidate;
  error?: AppError;
  /** It was not asked at all: a breaker is open, or too many are waiting. */
  skipped?: boolean;
  /** Our own side did not get as far as asking: says nothing about the vendor. */
  unasked?: boolean;
}

/** The state of one question on its way through its candidates. */
export interface Run {
  parts: AskModelParts;
  question: ModelQuestion;
  /** Monotonic milliseconds. */
  started: number;
  /** Milliseconds that its attempts waited for places to run in. */
  queuedMs: number;
  /** The widest total limit among the candidates; the call ends then. */
  totalMs: number;
  attempts: AttemptRecord[];
  failures: AppError[];
  /** The longest text that came before a stream broke. */
  broken?: Try;
}
