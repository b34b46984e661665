import type { Emit } from '../../core/ports.ts';
import { routeTask } from '../../engine/routing/route-task.ts';
import type { SearchSettings } from '../../engine/routing/web-search.ts';
import type { Classify, Opinion } from '../../models/routing/classifier.ts';
import type { Resolution } from '../../models/routing/resolve.ts';
import type { ModelRequest } from '../../models/routing/roster.ts';
import type { AskPlan, Resumed } from '../call-record.ts';
import type { ComposeOptions } from './options.ts';

export interface RouteOptions {
  route(request: ModelRequest): Promise<Resolution>;
  /** Asked where the rules leave a question open. */
  classify: Classify;
  webSearch: SearchSettings;
  compose: ComposeOptions;
}

/**
 * Routing for one call: the AI manager gets to know what it is about, and where its rules leave that open, a small model is
 * asked. Told to the observers. Several requests of one call share what was found out.
 */
export function planCall(
  options: RouteOptions,
  call: Resumed,
  plan: AskPlan,
): (request: ModelRequest) => Promise<Resolution> {
  const finding = once(() => routeTask(options.compose, call, plan));
  const opining = once(async () => {
    const { text } = await finding();
    return options.classify(text, { reqId, tool: tool.name, payer, signal });
  });
  const { reqId, tool, signal, request, thread } = call;
  const payer = { owner: request.principal.owner, thread: thread.id };
  return async asked => {
    const task = await finding();
    let resolution = await options.route({ ...asked, task });
    let opinion: Opinion | undefined;
    if (resolution.plan?.unclear) {
      opinion = await opining();
      if (opinion?.told) resolution = await options.route({ ...asked, task: { ...task, told: opinion.told } });
    }
    tell(options.compose.emit, call, resolution, opinion);
    return resolution;
  };
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

function tell(emit: Emit, { reqId, tool }: Resumed, resolution: Resolution, opinion: Opinion | undefined): void {
  const { plan, candidates, requested } = resolution;
  if (!plan) return;
  emit({
    type: 'route.plan',
    reqId,
    tool: tool.name,
    class: plan.class,
    reasons: plan.reasons,
    requested,
    chosen: candidates.map(({ model }) => `${model.provider}:${model.id}`),
    webSearch: plan.tools.webSearch,
    ...(opinion && { classifier: { ...opinion } }),
  });
}
