import { routingPolicy } from './config/derive.ts';
import type { Config } from './config/load.ts';
import { options } from './config/options.ts';
import type { Clock, Emit, Random, SharedState } from './domain/ports.ts';
import { providers } from './models/providers/index.gen.ts';
import { createTeam, type Team } from './models/team.ts';

/** All options there are: the product's own and each provider's, by its id. */
export const tables = { ...Object.fromEntries(providers.map(({ id, options: table }) => [id, table])), app: options };
export type AppConfig = Config<typeof tables>;

export interface ModelSurroundings {
  clock: Clock;
  random: Random;
  emit: Emit;
  state: SharedState;
}

/** Settings → the models that may be asked, and how. */
export function wireModels(config: AppConfig, around: ModelSurroundings): Team {
  const { callTimeoutSeconds, maxThinkingTokens } = config.values.app;
  const settings = Object.fromEntries(providers.map(({ id }) => [id, config.textsOf(id)]));
  const totalMs = callTimeoutSeconds === undefined ? undefined : callTimeoutSeconds * 1_000;
  const policy = routingPolicy(config.values.app);
  return createTeam({ definitions: providers, settings, policy, totalMs, maxThinkingTokens, ...around });
}
