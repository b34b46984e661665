import { readdirSync } from 'node:fs';
import type { OptionSpec } from '../../src/domain/option.ts';
import { loadCatalogue } from '../../src/models/catalogue.ts';
import type { ProviderDefinition } from '../../src/models/provider.ts';
import { providers } from '../../src/models/providers/index.gen.ts';
import type { FakeVendor, FakeVendorOptions } from './vendors/fake-vendor.ts';

/** A provider with a fake of its own that is running. */
export interface RunningVendor {
  id: string;
  fake: FakeVendor;
  /** A model that it serves, as the fake knows it. */
  model: string;
  /** What sends the provider's calls to the fake. */
  env: Record<string, string>;
}

const folder = new URL('./vendors/', import.meta.url);

/** Starts the fake of every provider that has one: `start-<id>.ts`, hyphens in its name not counted. New ones join by themselves. */
export async function startEveryVendor(): Promise<RunningVendor[]> {
  const catalogue = await loadCatalogue();
  const starting = providers.flatMap(definition => {
    const file = readdirSync(folder).find(
      name => name.startsWith('start-') && name.slice(6, -3).replaceAll('-', '') === definition.id,
    );
    if (!file) return [];
    const known = catalogue.filter(({ provider, status }) => provider === definition.id && status === 'active');
    const best = known.toSorted((a, b) => b.score - a.score || a.id.localeCompare(b.id))[0];
    return [startOne(definition, file, best?.id ?? 'llama3.2:latest')];
  });
  return Promise.all(starting);
}

async function startOne({ id, options }: ProviderDefinition, file: string, model: string): Promise<RunningVendor> {
  const module: Record<string, (options: FakeVendorOptions) => Promise<FakeVendor>> = await import(
    new URL(file, folder).href
  );
  const start = Object.entries(module).find(([name]) => name.startsWith('start'))?.[1];
  if (!start) throw new Error(`${file} starts nothing`);
  const fake = await start({ models: [{ id: model }] });
  const specs: OptionSpec[] = Object.values(options);
  const key = specs.find(({ secret }) => secret)?.env[0];
  const address = specs.flatMap(({ env }) => env).find(name => /(_URL|_HOST|_ENDPOINT)$/.test(name));
  return { id, fake, model, env: { ...(key && { [key]: 'test-key' }), ...(address && { [address]: fake.url }) } };
}
