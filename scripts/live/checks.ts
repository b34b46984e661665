import type { JsonObject } from '../../src/core/json.ts';
import type { ModelInfo } from '../../src/core/model.ts';

/** One question to one real model, and what its reply must be like. */
export interface LiveCheck {
  /** As a caller would type it. */
  model: string;
  about: string;
  /** What is wrong with the reply; undefined when nothing is. */
  problem(reply: JsonObject): string | undefined;
}

/** A cheap model of the provider that is good enough to know the answer, asked plainly, misspelt, and told how to think. */
export function checksOf(provider: string, models: readonly ModelInfo[]): LiveCheck[] {
  const [model] = models
    .filter(candidate => candidate.provider === provider && candidate.status === 'active')
    .toSorted((a, b) => rank(a) - rank(b));
  if (!model) return [];
  const name = `${provider}:${model.id}`;
  const checks: LiveCheck[] = [
    { model: name, about: 'plain', problem: reply => wrong(reply, model) },
    { model: `${provider}:${misspelt(model.id)}`, about: 'corrected', problem: reply => wrong(reply, model) },
  ];
  if (model.efforts.includes('low')) {
    checks.push({
      model: `${name}:low`,
      about: 'effort',
      problem: reply => wrong(reply, model) ?? expected(reply, 'effort', 'low'),
    });
  }
  if (model.thinkingBudget) {
    const budget = Math.max(model.thinkingBudget.min, 1_024);
    checks.push({ model: `${name}:${budget}`, about: 'budget', problem: reply => wrong(reply, model) });
  }
  return checks;
}

/** Cheap first, but not so small that it might not know. */
function rank({ price, score }: ModelInfo): number {
  return (price?.out ?? 1_000) + (score < 6 ? 10_000 : 0);
}

/** Another case and another separator: what people type. */
function misspelt(id: string): string {
  return id.toUpperCase().replace('-', '_');
}

function wrong(reply: JsonObject, model: ModelInfo): string | undefined {
  if (reply.status === 'error') return JSON.stringify(reply.error);
  if (!/paris/i.test(String(reply.content))) return `it said: ${String(reply.content).slice(0, 200)}`;
  return expected(reply, 'model_used', model.id);
}

function expected(reply: JsonObject, key: string, value: string): string | undefined {
  const found: unknown = Object(reply.metadata)[key];
  return found === value ? undefined : `${key} is ${JSON.stringify(found)}, not ${value}`;
}
