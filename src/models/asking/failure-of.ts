import { AppError, bugError } from '../../core/errors.ts';
import type { Run } from '../call/call-run.ts';

/** What is thrown when nobody answered: the one failure as it is, or all of them by name. */
export function failureOf(run: Run): AppError {
  const [first, ...more] = run.failures;
  if (!first) return bugError('A model was to be asked without any candidate.');
  if (more.length === 0) return first;
  const told = run.failures.map(
    ({ message, details }) => `${details.provider}:${details.model} (${details.class}): ${message}`,
  );
  const waits = run.failures.map(error => error.details.retryAfterSeconds).filter(wait => wait !== undefined);
  return new AppError('model', `All ${told.length} models that were asked failed. ${told.join(' · ')}`, {
    code: 'API_ERROR',
    class: 'exhausted_fallback_chain',
    next: `Call again in a while or name another model. About the first: ${first.details.next ?? first.message}`,
    provider: first.details.provider,
    model: first.details.model,
    retryable: run.failures.some(error => error.details.retryable === true),
    retryAfterSeconds: waits.length > 0 ? Math.min(...waits) : undefined,
    data: { attempts: run.attempts },
  });
}
