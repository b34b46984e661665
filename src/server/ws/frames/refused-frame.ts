import type { ServerFrame } from '../../websocket/protocol.ts';
import { ownError } from './frame-error.ts';

export interface RefusedText {
  class: string;
  message: string;
  id?: string;
  tool?: string | undefined;
  /** A call ends by it. */
  isCall?: boolean;
}

/** The answer to a message that is none of the protocol's. */
export function refusedFrame({ class: kind, message, id, tool, isCall }: RefusedText): ServerFrame {
  const next = 'Correct the message and send it again; docs/frame-protocol.md has an example of each.';
  const error = ownError({ code: 'INVALID_REQUEST', class: kind, message, next, ...(tool && { tool }) });
  if (id && isCall)
    return { op: 'call_tool_res', request_id: id, outputs: [{ type: 'text', text: '' }], text: '', error };
  return { op: 'error', ...(id && { request_id: id }), message, error };
}

/** What is wrong with a message, in the schema's words; none of it is quoted. */
export function issueIn(
  error: { issues: readonly { path: readonly PropertyKey[]; message: string }[] } | undefined,
): string {
  const [issue] = error?.issues ?? [];
  return issue ? `${issue.path.join('.') || 'the message'}: ${issue.message}` : 'This is no message of the protocol.';
}
