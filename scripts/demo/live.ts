import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelInfo } from '../../src/core/model.ts';
import { estimateTokens } from '../../src/core/tokens.ts';
import { loadCatalogue } from '../../src/models/catalogue/model-sources.ts';

const vendors = [
  { provider: 'openai', key: 'OPENAI_API_KEY', extra: ['OPENAI_BASE_URL'] },
  { provider: 'anthropic', key: 'ANTHROPIC_API_KEY', extra: ['ANTHROPIC_BASE_URL'] },
];
const calls = 3;
const answerTokens = 3_000;

/** Picks a cheap model of each vendor with a key, and refuses when the estimate is above the cap. */
export async function chooseLiveModels(project: string, capUsd: number) {
  const usable = vendors.filter(({ key }) => process.env[key]);
  if (usable.length === 0)
    throw new Error(`--live needs a key: set ${vendors.map(vendor => vendor.key).join(' or ')}.`);
  const [first, second = first] = usable.map(({ provider }) => cheapest(provider));
  if (!first || !second) throw new Error('the catalogue has no priced model of these vendors');
  const prompt = await sourceTokens(join(project, 'src/threads'));
  const estimate = [first, first, second].reduce((sum, { price }) => sum + cost(price, prompt), 0);
  console.log(
    `live: ${nameOf(first)} and ${nameOf(second)}; ${calls} calls, estimated ${estimate.toFixed(4)} USD, cap ${capUsd.toFixed(2)} USD`,
  );
  if (estimate > capUsd) throw new Error('the estimate is above the cap; nothing was sent');
  const names = usable.flatMap(({ key, extra }) => [key, ...extra]);
  const keys = Object.fromEntries(names.flatMap(name => (process.env[name] ? [[name, process.env[name]]] : [])));
  return { first: nameOf(first), second: nameOf(second), keys };
}

function cheapest(provider: string): ModelInfo | undefined {
  return loadCatalogue()
    .filter(model => model.provider === provider && model.status === 'active' && model.price && model.score >= 8)
    .toSorted((a, b) => (a.price?.out ?? 0) - (b.price?.out ?? 0))[0];
}

function nameOf({ provider, id }: ModelInfo): string {
  return `${provider}:${id}`;
}

function cost(price: ModelInfo['price'], input: number): number {
  return price ? (input * price.in + answerTokens * price.out) / 1_000_000 : 0;
}

async function sourceTokens(folder: string): Promise<number> {
  const names = (await readdir(folder)).filter(name => name.endsWith('.ts'));
  const texts = await Promise.all(names.map(name => readFile(join(folder, name), 'utf8')));
  return estimateTokens(texts.join('\n'), 1.45);
}
