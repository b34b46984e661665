import { inspect } from 'node:util';

/** Who must act: the caller, the operator, a provider, nobody (a budget is used up), or us. */
export type ErrorKind = 'input' | 'security' | 'config' | 'model' | 'limit' | 'storage' | 'cancelled' | 'bug';

/** What failed; docs/troubleshooting.md says for each code what to do. */
export type ErrorCode =
  | 'INVALID_INPUT_FORMAT'
  | 'MISSING_PARAMETER'
  | 'TOOL_NOT_FOUND'
  | 'PROVIDER_NOT_FOUND'
  | 'MODEL_NOT_FOUND'
  | 'THREAD_NOT_FOUND'
  | 'THREAD_EXPIRED'
  | 'SECURITY'
  | 'API_ERROR'
  | 'LIMIT'
  | 'CANCELLED'
  | 'INTERRUPTED'
  | 'STORAGE'
  | 'CONFIG'
  | 'INTERNAL_SERVER_ERROR';

/** One field that was refused, and what it takes instead. */
export interface FieldError {
  field: string;
  error: string;
  allowed?: string[];
}

/**
 * What did not work at a provider: the way to it and the key (`key`), the account behind the key, one model there (`model`),
 * or one model for this key alone (`key_model`).
 */
export type FaultScope = 'key' | 'account' | 'model' | 'key_model';

/** A failure as the breakers count it. */
export interface Fault {
  scope: FaultScope;
  /** It stays until somebody changes the configuration: a refused key. */
  lasting: boolean;
}

/** What a program needs to react to an error. */
export interface ErrorDetails {
  /** What failed, coarsely. */
  code: ErrorCode;
  /** Finer than the code: `rate_limit`, `restricted`, `files`, `storage_full`… One word a program can switch on. */
  class: string;
  /** What the caller can do now, as one sentence. */
  next?: string;
  /** Provider at which it failed. */
  provider?: string;
  /** Model at which it failed. */
  model?: string;
  /** Which attempt failed, counted from 1; absent: not counted. */
  attempt?: number;
  /** True: the same call may succeed later. */
  retryable?: boolean;
  /** Seconds after which the same call may succeed; absent: not known. */
  retryAfterSeconds?: number;
  /** HTTP status of the upstream answer; absent: there was none. */
  status?: number;
  /** Absent: nobody's fault at the provider. */
  fault?: Fault;
  /** Fields that were refused; absent: no field is at fault. */
  validationErrors?: FieldError[];
  /** The reply's `status` where callers know another word for this than `error`, and the `content` that goes with it. */
  replyStatus?: string;
  /** The text that goes with `replyStatus`. */
  replyContent?: string;
  /** Anything else for the reply, such as the numbers of a limit. */
  data?: Record<string, unknown>;
  /** What was thrown first, such as the vendor's error without keys. */
  cause?: unknown;
}

const marker = Symbol.for('polylogue.error');

/** The one error of the product. Anything else that is thrown is a bug of ours and is reported as one. */
export class AppError extends Error {
  /** Where an error is printed, whatever a bundler calls the class. */
  static override readonly name = 'AppError';
  /** Who must act. */
  readonly kind: ErrorKind;
  /** Code, class, next step and facts of the failure. */
  readonly details: ErrorDetails;

  /** `message`: what failed and why, in one sentence; `details.cause` becomes the error's `cause`. */
  constructor(kind: ErrorKind, message: string, details: ErrorDetails) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    // Where errors are printed, it is not.
    Object.defineProperty(this, marker, { value: true });
    this.name = 'AppError';
    this.kind = kind;
    this.details = details;
  }
}

/** Whether `error` is an `AppError`. Survives two copies of this module in one process, which `instanceof` does not. */
export const isAppError = (error: unknown): error is AppError =>
  typeof error === 'object' && error !== null && marker in error;

/** What was thrown, as an error: anything may be thrown. */
export const asError = (thrown: unknown): Error =>
  thrown instanceof Error
    ? thrown
    : new Error(typeof thrown === 'string' ? thrown : inspect(thrown, { breakLength: Infinity }));

/** The code of a failed call of the system or of Node, such as `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** The caller sent something wrong: `message` says what, `details` replace code `INVALID_INPUT_FORMAT` and class `validation`. */
export const inputError = (message: string, details: Partial<ErrorDetails> = {}): AppError =>
  new AppError('input', message, { code: 'INVALID_INPUT_FORMAT', class: 'validation', ...details });

/** A field that is needed was not sent: `message` says what it is for. */
export const missingError = (field: string, message: string, next: string): AppError =>
  inputError(message, { code: 'MISSING_PARAMETER', next, validationErrors: [{ field, error: 'missing' }] });

/** No provider has this name; `allowed`: what the field `provider` takes, where that is the one at fault. */
export const unknownProvider = (name: string, next: string, allowed?: string[]): AppError =>
  inputError(`Unknown provider "${name.slice(0, 60)}".`, {
    code: 'PROVIDER_NOT_FOUND',
    class: 'unknown',
    next,
    validationErrors: allowed && [{ field: 'provider', error: 'unknown', allowed }],
  });

/** Something is not allowed: `message` names the rule, `details` replace code and class `security`. */
export const securityError = (message: string, details: Partial<ErrorDetails> = {}): AppError =>
  new AppError('security', message, { code: 'SECURITY', class: 'security', ...details });

/** Something that can't be taken back was not confirmed: `what` says what would be gone, `more` what can be sent besides. */
export const unconfirmed = (what: string, more = ''): AppError =>
  securityError(`This would permanently delete ${what}.`, {
    class: 'confirmation',
    next: `Ask the user, then send the same call with confirm: true${more}.`,
    validationErrors: [{ field: 'confirm', error: 'must be true', allowed: ['true'] }],
  });

/** A maximum was reached: `kind` becomes the class, `message` names the limit, `details` are added to code `LIMIT`. */
export const limitError = (
  kind: 'size' | 'files' | 'tokens' | 'cost' | 'rate' | 'over_capacity',
  message: string,
  details: Partial<ErrorDetails> = {},
): AppError => new AppError('limit', message, { code: 'LIMIT', class: kind, ...details });

/** A store failed: `kind` becomes the class, `message` says how, `details` are added to code `STORAGE`. */
export const storageError = (
  kind: 'storage_full' | 'unavailable' | 'corrupt' | 'conflict',
  message: string,
  details: Partial<ErrorDetails> = {},
): AppError => new AppError('storage', message, { code: 'STORAGE', class: kind, ...details });

/** A setting is missing or wrong: `message` names it, `details` replace code `CONFIG` and class `config`. */
export const configError = (message: string, details: Partial<ErrorDetails> = {}): AppError =>
  new AppError('config', message, { code: 'CONFIG', class: 'config', ...details });

export const cancelledError = (message = 'The call was cancelled.', details: Partial<ErrorDetails> = {}): AppError =>
  new AppError('cancelled', message, { code: 'CANCELLED', class: 'cancelled', ...details });

/** The work was ended from outside before its answer came; the same call may be sent again. */
export const interruptedError = (message: string, details: Partial<ErrorDetails> = {}): AppError =>
  new AppError('cancelled', message, { code: 'INTERRUPTED', class: 'interrupted', retryable: true, ...details });

export const bugError = (message: string, cause?: unknown): AppError =>
  new AppError('bug', message, { code: 'INTERNAL_SERVER_ERROR', class: 'bug', cause });

/** Why a signal was aborted, as an error of ours. */
export const abortError = (signal: AbortSignal | undefined): AppError =>
  isAppError(signal?.reason) ? signal.reason : cancelledError(undefined, { cause: signal?.reason });

/** Throws when the signal was aborted; call it between the steps of a long piece of work. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal);
}

/** Reports an error that stops nothing. */
export const warnFrom =
  (emit: (event: { type: 'warning'; where: string; message: string }) => void, where: string) =>
  (error: unknown): void =>
    emit({ type: 'warning', where, message: isAppError(error) ? error.message : String(error) });
