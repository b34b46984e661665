import type { Resumed } from '../../../calls/call-record.ts';
import { failure, type Reply } from '../../../calls/reply.ts';
import type { PanelShape } from '../../../calls/tool.ts';
import { isAppError } from '../../../core/errors.ts';
import { panelAtOnce } from '../../shapes/panel-at-once.ts';
import type { PanelOptions } from './consult.ts';
import { panelCallOf } from './panel-arguments.ts';
import { panelStep } from './panel-steps.ts';

export type { PanelSettings } from './consult.ts';

/** Several models judge one proposal, none of them seeing the others: all in one call, or one model a call. */
export async function conductPanel(options: PanelOptions, shape: PanelShape, call: Resumed): Promise<Reply> {
  const { warnings, ...wanted } = panelCallOf(call.args);
  const told = { ...call, warnings: [...call.warnings, ...warnings] };
  try {
    return await (wanted.kind === 'step'
      ? panelStep(options, shape, told, wanted)
      : panelAtOnce(options, shape, told, wanted));
  } catch (error) {
    if (!isAppError(error)) throw error;
    return failure(error, { toolName: call.tool.name, reqId: call.reqId });
  }
}
