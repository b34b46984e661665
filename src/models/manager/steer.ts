import { planRoute } from '../routing/requirements.ts';
import { inOrder } from '../routing/resolve.ts';
import type { ModelRequest, RoutingPolicy } from '../routing/roster.ts';
import type { Scene } from '../routing/scene.ts';

/** The request with the manager's plan, where there is a task to plan. The plan only ever orders and narrows what is open. */
export function steer(scene: Scene, policy: RoutingPolicy, year: number): ModelRequest {
  const { request } = scene;
  const { task } = request;
  if (!task) return request;
  const models = inOrder(scene, scene.open);
  const plan = planRoute({
    ...task,
    models,
    searches: scene.searches,
    isUnwell: id => models.every(model => model.provider !== id || request.ailing?.(model) === true),
    webSearch: policy.webSearch ?? 'auto',
    year,
  });
  return { ...request, plan };
}
