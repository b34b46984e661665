import { isAppError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import type { ToolReply } from '../core/tool-host.ts';
import type { CommandContext } from './command/command.ts';

/** Tells why a tool's call failed and what to do next; answers the exit code. */
export function showFailure({ out, around }: CommandContext, { document }: ToolReply): number {
  const error = isRecord(document.error) ? document.error : {};
  out.status('');
  if (out.json) out.document(document);
  around.writeError(`polylogue: ${String(error.message ?? 'The call failed.')}\n`);
  if (typeof error.next === 'string') around.writeError(`${error.next}\n`);
  return error.code === 'INVALID_INPUT_FORMAT' || error.code === 'MISSING_PARAMETER' ? 2 : 1;
}

/** The same for an error that the product threw: the command line was right, what it asked for failed. */
export function tellFailure({ out, around }: CommandContext, error: unknown): number {
  if (!isAppError(error)) throw error;
  const { code, class: kind, next } = error.details;
  out.status('');
  if (out.json) out.document({ status: 'error', error: { code, class: kind, message: error.message, next } });
  around.writeError(`polylogue: ${error.message}\n${next ? `${next}\n` : ''}`);
  return 1;
}
