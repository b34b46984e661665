import { isRecord, textIn } from '../../../core/json.ts';
import type { ToolReply } from '../../../core/tool-host.ts';
import type { FrameError } from '../../websocket/protocol.ts';

type Code = FrameError['code'];

/** Our codes for what is wrong with the call itself. */
const invalid = new Set([
  'INVALID_INPUT_FORMAT',
  'MISSING_PARAMETER',
  'PROVIDER_NOT_FOUND',
  'MODEL_NOT_FOUND',
  'THREAD_NOT_FOUND',
  'THREAD_EXPIRED',
]);

/** A failed reply as this protocol names it. */
export function errorOfReply({ document }: ToolReply, tool: string): FrameError {
  const told = isRecord(document.error) ? document.error : {};
  const retryAfter = told.retry_after_s;
  return {
    code: codeOf(textIn(told.code), textIn(told.class)),
    error_class: textIn(told.class) || 'unknown',
    message: textIn(told.message) || textIn(document.content) || 'The call failed.',
    tool,
    detail: { ...told, next: textIn(told.next) },
    ...(typeof retryAfter === 'number' && { retry_after: retryAfter }),
  };
}

function codeOf(code: string, kind: string): Code {
  if (code === 'TOOL_NOT_FOUND' || code === 'CANCELLED') return code;
  if (invalid.has(code)) return 'INVALID_REQUEST';
  // Too much at once, or too often: the same call succeeds later.
  if (code === 'LIMIT' && (kind === 'over_capacity' || kind === 'rate')) return 'OVER_CAPACITY';
  return code === 'API_ERROR' ? 'PROVIDER_ERROR' : 'EXEC_ERROR';
}

interface Own {
  code: Code;
  class: string;
  message: string;
  next: string;
  tool?: string;
  retryAfterSeconds?: number;
}

/** An error that this door itself has to tell. */
export function ownError({ code, class: kind, message, next, tool, retryAfterSeconds }: Own): FrameError {
  return {
    code,
    error_class: kind,
    message,
    tool: tool ?? null,
    detail: { next },
    ...(retryAfterSeconds !== undefined && { retry_after: retryAfterSeconds }),
  };
}

export function timedOut(tool: string, seconds: number): FrameError {
  return ownError({
    code: 'TIMEOUT',
    class: 'ceiling',
    tool,
    message: `The call took longer than ${seconds} s and was ended.`,
    next: 'Ask for less at once, or send "timeout" (seconds) with the call.',
  });
}

export function cancelled(tool: string): FrameError {
  return ownError({
    code: 'CANCELLED',
    class: 'cancelled',
    tool,
    message: 'The call was cancelled.',
    next: 'Send the call again when it is wanted after all.',
  });
}
