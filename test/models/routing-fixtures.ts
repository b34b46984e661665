import { isAppError } from '../../src/core/errors.ts';
import { loadCatalogue } from '../../src/models/catalogue/model-sources.ts';
import { eligibleModels } from '../../src/models/routing/eligible-models.ts';
import { resolveIn } from '../../src/models/routing/resolve.ts';
import type { ModelRequest, Roster, RosterProvider, RoutingPolicy } from '../../src/models/routing/roster.ts';

export const noPolicy: RoutingPolicy = {
  allowed: {},
  denied: [],
  localOnly: false,
  prefer: 'quality',
  allowUnknown: false,
  offline: false,
};

const shortNames: Record<string, string[]> = {
  google: ['g', 'gemini'],
  openai: ['o'],
  azure: [],
  xai: ['x'],
  anthropic: ['a'],
  groq: ['q'],
  deepseek: ['d'],
  moonshot: ['k', 'kimi'],
  zhipu: ['z', 'glm', 'zai'],
  minimax: ['m'],
  custom: [],
  ollama: ['l'],
  openrouter: ['r'],
  'offline-east': [],
  'offline-west': [],
};

export const everyProvider = Object.keys(shortNames);
export const vendors = everyProvider.filter(id => !id.startsWith('offline') && id !== 'azure');

function rosterProvider(id: string, configured: boolean): RosterProvider {
  return {
    id,
    names: shortNames[id] ?? [],
    configured,
    local: ['custom', 'ollama'].includes(id) || id.startsWith('offline'),
    onlyByName: id.startsWith('offline'),
    listComplete: !['custom', 'openrouter', 'azure', 'dial'].includes(id),
  };
}

const offline = ['east', 'west'].map(side => ({
  ...loadCatalogue()[0]!,
  provider: `offline-${side}`,
  id: `echo-${side}`,
  name: `Echo ${side}`,
  aliases: [],
  status: 'active' as const,
}));

/** Every provider we know of, with these configured; the offline ones always are. */
export function rosterOf(configured: readonly string[], models = [...loadCatalogue(), ...offline]): Roster {
  const providers = everyProvider.map(id => rosterProvider(id, configured.includes(id) || id.startsWith('offline')));
  return { providers, models };
}

/** Chooses the models for one call, as the service does. */
export function resolveModel(request: ModelRequest, roster: Roster, policy: RoutingPolicy) {
  return resolveIn(eligibleModels(request, roster, policy));
}

export interface Situation extends Partial<ModelRequest> {
  configured?: readonly string[];
  policy?: Partial<RoutingPolicy>;
  roster?: Roster;
}

export function resolve(name: string | undefined, situation: Situation = {}) {
  const { configured = vendors, policy = {}, roster = rosterOf(configured), ...request } = situation;
  return resolveModel(
    { category: 'balanced', needs: {}, ...(name === undefined ? {} : { name }), ...request },
    roster,
    { ...noPolicy, ...policy },
  );
}

/** The candidates as `provider/id`. */
export function namesOf(resolution: ReturnType<typeof resolve>): string[] {
  return resolution.candidates.map(({ model }) => `${model.provider}/${model.id}`);
}

/** The error of a resolution that must fail. */
export function refusalOf(name: string | undefined, situation: Situation = {}) {
  try {
    const { candidates } = resolve(name, situation);
    throw new Error(`resolved to ${candidates[0]?.model.id}`);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { kind: error.kind, message: error.message, ...error.details };
  }
}
