import type { AppError } from '../../core/errors.ts';
import type { Candidate } from '../../core/model.ts';

/**
 * Who may still be asked. Refused content is not carried from vendor to vendor; a prompt that is too long goes only to wider
 * windows; a request that one vendor calls malformed is our mistake, but for a model that it does not have (404).
 */
export function othersAfter(error: AppError, failed: Candidate, left: Candidate[]): Candidate[] {
  switch (error.details.class) {
    case 'content_filter':
      return [];
    case 'context_length':
      return left.filter(candidate => candidate.model.window > failed.model.window);
    case 'timeout':
      // Not retryable is the total limit: no time is left for anyone.
      return error.details.retryable ? left : [];
    case 'bad_request':
      return error.details.status === 404 ? left : [];
    case 'auth':
    case 'balance':
    case 'quota':
      // The key is refused or spent, not the model: its provider's other models have the same one.
      // Unless it is this model alone that the key may not use.
      if (error.details.fault?.scope === 'key_model') return left;
      return left.filter(candidate => candidate.model.provider !== failed.model.provider);
    case 'over_capacity':
      return [];
    default:
      return left;
  }
}
