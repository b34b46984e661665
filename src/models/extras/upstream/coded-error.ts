import { isAppError } from '../../../core/errors.ts';
import { isRecord } from '../../../core/json.ts';
import { readVendorError, type VendorError } from '../../resilience/vendor-error.ts';

/** Finds the word that the classifier knows for a vendor's own code or sentence; undefined: it needs none. */
export type CodeOf = (error: VendorError) => string | undefined;

/**
 * The same failure with a code that the classifier understands beside the vendor's own, which may be a number or a word of
 * its own. What is no error object stays as it is.
 */
export function codedError(error: unknown, codeOf: CodeOf): unknown {
  if (!isRecord(error) || isAppError(error)) return error;
  const code = codeOf(readVendorError(error));
  if (code === undefined) return error;
  const { name, statusCode, responseHeaders, responseBody, message } = error;
  return Object.assign(new Error(String(message)), { name, statusCode, responseHeaders, responseBody, code });
}
