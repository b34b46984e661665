import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { AppError } from '../../core/errors.ts';
import type { Candidate } from '../../core/model.ts';
import type { CommsNote } from '../../core/ports.ts';
import { costOf } from '../../core/usage.ts';
import type { AttemptOutcome } from '../call/attempt.ts';
import type { Run } from '../call/call-run.ts';

/** What a vendor is asked for beside the messages, as its SDK gets it. */
type Settings = Pick<LanguageModelV4CallOptions, 'maxOutputTokens' | 'temperature' | 'tools' | 'providerOptions'>;

/**
 * Tells what one attempt asks, and gives what tells how it ended. The messages are ours, so that they can be sent again to
 * any model; what the vendor gets beside them is told in its own words.
 */
export function tellRequest(run: Run, { model, effort, thinkingBudget }: Candidate, call: Settings) {
  const { tellComms: tell, random, clock } = run.parts;
  if (!tell) return undefined;
  const { reqId, tool, messages, webSearch, tools, toolChoice } = run.question;
  const exchange = random.uuid().replaceAll('-', '').slice(0, 12);
  const about: Pick<CommsNote, 'reqId' | 'exchange' | 'tool' | 'provider' | 'model'> = {
    reqId,
    exchange,
    tool,
    provider: model.provider,
    model: model.id,
  };
  const { maxOutputTokens, temperature, providerOptions } = call;
  const vendorTools = call.tools?.filter(each => each.type !== 'function');
  const wanted = { maxOutputTokens, temperature, effort, thinkingBudget, webSearch, tools, toolChoice };
  const asked = { ...wanted, vendorTools, providerOptions };
  const attempt = run.attempts.length + 1;
  tell({ ...about, direction: 'out', kind: 'request', payload: { attempt, ...asked, messages } });
  const began = clock.monotonic();
  return (outcome: Omit<AttemptOutcome, 'failure' | 'uses'>, error: AppError | undefined): void => {
    const { text, said, finish, usage, costUsd, citations, warnings, reasoningChars } = outcome;
    const cost = costUsd ?? (usage && costOf(usage, model.price));
    const came = { text, said, finish, usage, costUsd: cost, citations, warnings, reasoningChars };
    const kind = error ? 'error' : 'response';
    const elapsedMs = clock.monotonic() - began;
    for (const step of outcome.steps ?? []) {
      tell({ ...about, direction: 'in', kind: step.step === 'tool_use' ? 'tool_call' : 'tool_result', payload: step });
    }
    tell({ ...about, direction: 'in', kind, payload: { attempt, elapsedMs, ...failureOf(error), ...came } });
  };
}

function failureOf(error: AppError | undefined): object {
  if (!error) return {};
  const { code, class: kind, status, next, cause } = error.details;
  return { error: { code, class: kind, message: error.message, status, next, cause } };
}
