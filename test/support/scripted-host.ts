import type { ToolHost, ToolReply, ToolRequest } from '../../src/core/tool-host.ts';

export type ScriptedCall = (request: ToolRequest, signal: AbortSignal) => Promise<ToolReply>;

const listing = (name: string) => ({
  name,
  title: name,
  description: `The tool ${name}.`,
  inputSchema: { type: 'object' as const, properties: {} },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
});

export function replyOf(document: ToolReply['document'], more: Partial<ToolReply> = {}): ToolReply {
  return { isError: false, document, text: JSON.stringify(document), ...more };
}

export function failureOf(code: string, kind: string, more: Record<string, string | number> = {}): ToolReply {
  const document = { status: 'error', error: { code, class: kind, message: `It is ${kind}.`, next: 'Wait.', ...more } };
  return replyOf(document, { isError: true });
}

/** A host whose calls do what a test says; `echo` answers its arguments. */
export function scriptedHost(
  call: ScriptedCall = async ({ arguments: args }) => replyOf({ echo: JSON.stringify(args) }),
) {
  const host: ToolHost = {
    list: () => ['echo', 'slow'].map(listing),
    call,
    prompts: { list: () => [], text: () => undefined },
    resources: { templates: () => [], list: async () => [], read: async () => undefined, watch: async () => {} },
    jobs: {
      find: () => Promise.reject(new Error('none')),
      cancel: () => Promise.reject(new Error('none')),
      stage: () => undefined,
      questions: () => [],
      answer() {},
      show: reply => replyOf(reply.document),
      keep: async () => undefined,
    },
    complete: async () => [],
  };
  return host;
}
