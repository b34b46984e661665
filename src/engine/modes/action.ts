import type { ActionContext } from '../../calls/action-context.ts';
import type { ParsedCall } from '../../calls/call-record.ts';
import { localMetadata, successReply } from '../../calls/reply.ts';
import type { ActionMode, PassThroughMode } from '../../calls/tool.ts';
import { isRecord } from '../../core/json.ts';
import type { Mode, ModeServices } from './mode.ts';

type Arguments = Record<string, unknown>;

/** The tool's handler does the work; no model is asked. */
export const action: Mode<ActionMode<Arguments>> = {
  thread: 'none',
  async execute(definition, call, services) {
    const document = await definition.run(call.args, contextOf(services, call));
    const facts = localMetadata(call, services.clock.monotonic() - call.startedAt);
    const own = document.metadata;
    return successReply({ ...document, metadata: isRecord(own) ? { ...facts, ...own } : facts });
  },
};

/** The reply of another call, unchanged. */
export const passThrough: Mode<PassThroughMode<Arguments>> = {
  thread: 'none',
  execute: (definition, call, services) => definition.run(call.args, contextOf(services, call)),
};

const contextOf = (services: ModeServices, { request, signal, reqId, tool }: ParsedCall): ActionContext =>
  services.actionContext({ principal: request.principal, signal, reqId, tool: tool.name });
