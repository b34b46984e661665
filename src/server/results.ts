import type { ToolReply } from '../core/tool-host.ts';

/** A reply as the protocol's result of a call. */
export function resultOf({ text, structured, isError }: ToolReply) {
  return { content: [{ type: 'text' as const, text }], isError, ...(structured && { structuredContent: structured }) };
}
