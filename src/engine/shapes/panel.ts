import { isAppError } from '../../domain/error.ts';
import type { Resumed } from '../call-record.ts';
import type { PanelShape } from '../define.ts';
import { panelCallOf } from '../panel/arguments.ts';
import type { PanelOptions } from '../panel/consult.ts';
import { failure, type Reply } from '../reply.ts';
import { panelAtOnce } from './panel-at-once.ts';
import { panelStep } from './panel-steps.ts';

export type { PanelSettings } from '../panel/consult.ts';

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
