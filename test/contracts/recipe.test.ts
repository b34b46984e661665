import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { ProviderDefinition } from '../../src/models/provider.ts';
import { modelInfo } from '../models/scripted-model.ts';
import { derivedCase } from './derived-case.ts';
import { providerSuite } from './provider-suite.ts';

/** Here and not in a folder of the system: the file has to find the packages. */
const folder = await mkdtemp(new URL('.recipe-', import.meta.url).pathname);
afterAll(() => rm(folder, { recursive: true }));

async function providerOfTheRecipe(): Promise<ProviderDefinition> {
  const recipe = await readFile(new URL('../../docs/recipes/add-a-provider.md', import.meta.url), 'utf8');
  const [, block = ''] = /```ts\n([\s\S]*?)```/.exec(recipe) ?? [];
  const source = block.replace(/^ {5}/gm, '').replaceAll("'./shared/", "'../../../src/providers/shared/");
  await writeFile(`${folder}/acme.ts`, source);
  const { acme } = await import(`${folder}/acme.ts`);
  return acme;
}

const acme = await providerOfTheRecipe();
const rows = [modelInfo({ provider: 'acme', id: 'acme-large', reasoning: true, efforts: ['low', 'high'] })];

// What the recipe shows is driven as any provider without a case of its own is.
providerSuite(derivedCase(acme, rows));

describe('a provider without a case of its own', () => {
  it('is held to have a key, an address and a model', () => {
    expect(() => derivedCase({ ...acme, options: {} }, rows)).toThrow('no base address');
    expect(() => derivedCase(acme, [])).toThrow('no models');
  });
});
