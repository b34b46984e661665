import { hash } from 'node:crypto';
import { type AppError, type ErrorDetails, inputError, limitError, securityError } from '../core/errors.ts';
import type { SkipCode } from '../core/file.ts';
import { isRecord } from '../core/json.ts';
import type { Clock, SharedState } from '../core/ports.ts';
import { safeCut } from '../core/text.ts';
import type { ToolRequest } from '../core/tool-host.ts';

/** No tool has half as many; what comes beyond is no slip of a caller. */
const maxFields = 100;

const maxFieldNameLength = 200;

/** Levels of lists and objects within one field. */
const deepest = 32;

/** Values within all fields together, at every level. */
const maxValues = 20_000;

/** Lists and objects hold more text than one field of text does: paths, findings. */
const nestedTextFactor = 4;

/**
 * Refuses arguments whose form alone would cost the process its stack or seconds of its time. Walks without recursion, and
 * no further than it has to. A text of more than `textLimit` characters is too long for one message of the protocol and comes as a
 * file instead; callers know the word for it.
 */
export function assertArgumentShape(tool: string, args: Record<string, unknown>, textLimit = Infinity): void {
  const names = Object.keys(args);
  if (names.length > maxFields) {
    throw inputError(`${tool} was given ${names.length} fields; no tool has that many.`, {
      next: "Send the tool's own fields alone; tools/list has them.",
    });
  }
  let values = 0;
  let tooLong: AppError | undefined;
  for (const [field, value] of Object.entries(args)) {
    if (field.length > maxFieldNameLength)
      throw inputError(`A field of ${tool} has a name of ${field.length} characters ("${safeCut(field, 40)}…").`, {
        next: "Send the tool's own fields alone; tools/list has them.",
      });
    let level: unknown[] = [value];
    // Of all texts in the value, the names in it included.
    let length = 0;
    for (let depth = 0; level.length > 0; depth++) {
      if (depth > deepest)
        throw inputError(`"${field}" of ${tool} is nested more than ${deepest} levels deep.`, {
          next: `Send "${field}" with fewer levels; findings and issues are plain lists.`,
          validationErrors: [{ field, error: 'nested too deep', allowed: [`at most ${deepest} levels`] }],
        });
      values += level.length;
      if (values > maxValues)
        throw limitError(
          'size',
          `The arguments of ${tool} have more than ${maxValues} values, most of them in "${field}".`,
          {
            next: `Shorten "${field}"; name the directory instead of each of its files.`,
            validationErrors: [{ field, error: 'too many values', allowed: [`at most ${maxValues}`] }],
          },
        );
      const inner: unknown[] = [];
      for (const each of level) {
        if (typeof each === 'string') length += each.length;
        else if (Array.isArray(each)) for (const item of each) inner.push(item);
        else if (isRecord(each)) {
          for (const [name, item] of Object.entries(each)) {
            length += name.length;
            inner.push(item);
          }
        }
      }
      level = inner;
    }
    const isText = typeof value === 'string';
    const max = isText ? textLimit : textLimit * nestedTextFactor;
    // Images have a limit of their own, in bytes.
    if (length > max && (isText || field !== 'images')) tooLong ??= overlong(tool, field, length, max);
  }
  if (tooLong) throw tooLong;
}

function overlong(tool: string, field: string, length: number, limit: number): AppError {
  const way =
    field === 'prompt'
      ? 'Save the exact text as prompt.txt in the project, then resend the call with that file in absolute_file_paths and an empty prompt.'
      : field === 'text'
        ? 'Save the text as a file of the project, and send it with "prompt_from_file".'
        : `Shorten "${field}"; put the details into files of the project and name those.`;
  return limitError('size', `"${field}" of ${tool} is too long: ${length} characters, limit ${limit}.`, {
    next: way,
    // Who sends a text to several models knows no other status than error.
    ...(field !== 'text' && { replyStatus: 'resend_prompt', replyContent: way }),
    data: { prompt_size: length, limit, instructions: way },
    validationErrors: [{ field, error: `${length} characters`, allowed: [`at most ${limit} characters`] }],
  });
}

/** Files that cannot be read, as an error: one that may not be read makes it a refusal. */
export function fileError(codes: readonly SkipCode[], message: string, details: Partial<ErrorDetails>): AppError {
  const isRefused = codes.some(code => code === 'outside_roots' || code === 'secret' || code === 'not_regular');
  return (isRefused ? securityError : inputError)(message, { class: 'files', ...details });
}

/** Counts a call before its work begins; throws LIMIT, class `rate`, when there were too many. */
export type Admit = (request: Pick<ToolRequest, 'name' | 'principal' | 'rateLimited'>) => Promise<void>;

const windowMs = 60_000;

/** `limits`: calls a minute of one client, by tool; others are not counted. Processes on one store count together. */
export function createRateLimits(limits: ReadonlyMap<string, number>, state: SharedState, clock: Clock): Admit {
  return async ({ name, principal, rateLimited }) => {
    const limit = limits.get(name);
    if (!rateLimited || limit === undefined) return;
    const now = clock.storeTime();
    let waitMs = 0;
    // Clients name themselves as they like.
    const { owner, client = '' } = principal;
    const key = `rate/${name}/${hash('sha256', JSON.stringify([owner, client])).slice(0, 32)}`;
    await state.change(key, windowMs, before => {
      const times: unknown[] = Array.isArray(before?.at) ? before.at : [];
      const at = times.filter(time => typeof time === 'number').filter(time => Math.abs(now - time) < windowMs);
      const [oldest = now] = at.slice(-limit);
      waitMs = at.length < limit ? 0 : oldest + windowMs - now;
      return { at: waitMs === 0 ? [...at, now] : at };
    });
    const seconds = Math.ceil(waitMs / 1_000);
    if (seconds > 0)
      throw limitError('rate', `${name} may be called ${limit} times a minute, and was.`, {
        next: `Retry in ${seconds} s. The operator can raise RATE_LIMITS.`,
        retryable: true,
        retryAfterSeconds: seconds,
        data: { limit_per_minute: limit },
      });
  };
}
