import type { ModelInfo } from '../../../core/model.ts';

/** Assumed of a deployment whose model nobody named. */
const assumed = { window: 128_000, maxOutput: 16_384, score: 5 };

/**
 * The deployments that the operator names, `name=model` by comma: what is `known` of OpenAI's model, under the
 * deployment's name. Those in `reasoning` think, whatever is known of them. A name that stands twice counts once.
 */
export function deploymentModels(
  list: string | undefined,
  reasoning: string | undefined,
  known: readonly ModelInfo[],
): ModelInfo[] {
  const thinkers = new Set(entriesOf(reasoning));
  const models = new Map<string, ModelInfo>();
  for (const entry of [...entriesOf(list), ...thinkers]) {
    const [name = '', model = name] = entry.split('=').map(text => text.trim());
    if (name === '' || models.has(name)) continue;
    models.set(name, deployed(name, model === '' ? name : model, thinkers.has(name), known));
  }
  return [...models.values()];
}

function entriesOf(list: string | undefined): string[] {
  return (list ?? '')
    .split(',')
    .map(entry => entry.trim())
    .filter(entry => entry !== '');
}

function deployed(name: string, model: string, thinks: boolean, all: readonly ModelInfo[]): ModelInfo {
  const wanted = model.toLowerCase();
  const known = all.find(
    ({ provider, id, aliases }) => provider === 'openai' && (id.toLowerCase() === wanted || aliases.includes(wanted)),
  );
  const facts = known ?? unknown(model);
  const efforts = thinks && facts.efforts.length === 0 ? (['low', 'medium', 'high'] as const) : facts.efforts;
  const own = { provider: 'azure', id: name, name: `${facts.name} (${name})`, aliases: [] };
  return { ...facts, ...own, efforts, reasoning: thinks || facts.reasoning };
}

function unknown(name: string): ModelInfo {
  return {
    provider: 'azure',
    id: name,
    name,
    aliases: [],
    ...assumed,
    input: ['text'],
    efforts: [],
    reasoning: false,
    temperature: 'range',
    tools: false,
    allowCodeGeneration: false,
    status: 'active',
  };
}
