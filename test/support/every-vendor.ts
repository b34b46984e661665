import { readdirSync } from 'node:fs';
import type { OptionSpec } from '../../src/core/option.ts';
import { loadCatalogue } from '../../src/models/catalogue/model-sources.ts';
import type { ProviderDefinition } from '../../src/models/provider.ts';
import { providers } from '../../src/providers/index.gen.ts';
import type { FakeVendor, FakeVendorOptions } from './vendors/fake-vendor.ts';
import { startAzure } from './vendors/start-azure.ts';

/** A provider whose calls go to a fake that is running. */
export interface RunningVendor {
  id: string;
  fake: FakeVendor;
  /** A model that it serves, as the fake knows it. */
  model: string;
  /** What sends the provider's calls to the fake. */
  env: Record<string, string>;
}

type Start = (options: FakeVendorOptions) => Promise<FakeVendor>;

/** Providers that serve what their operator put there. */
const arranged: Readonly<Record<string, { start: Start; model: string; env: Record<string, string> }>> = {
  azure: {
    start: options => startAzure({ prod: 'gpt-5.1' }, options),
    model: 'prod',
    env: { AZURE_OPENAI_DEPLOYMENTS: 'prod=gpt-5.1' },
  },
};

const folder = new URL('./vendors/', import.meta.url);

/**
 * Starts a fake for every provider with an address that can be set: `start-<id>.ts`, hyphens in its name not counted, or
 * OpenAI's where there is none. New providers join by themselves.
 */
export function startEveryVendor(keyOf: (id: string) => string = () => 'test-key'): Promise<RunningVendor[]> {
  const vendors: readonly ProviderDefinition[] = providers;
  return Promise.all(
    vendors.filter(({ onlyByName }) => !onlyByName).flatMap(each => startOne(each, keyOf(each.id)) ?? []),
  );
}

function startOne({ id, options }: ProviderDefinition, ownKey: string): Promise<RunningVendor> | undefined {
  const specs: OptionSpec[] = Object.values(options);
  const key = specs.find(({ secret }) => secret)?.env[0];
  const address = specs.flatMap(({ env }) => env).find(name => /(_URL|_HOST|_ENDPOINT)$/.test(name));
  if (address === undefined) return undefined;
  const known = loadCatalogue().filter(({ provider, status }) => provider === id && status === 'active');
  const best = known.toSorted((a, b) => b.score - a.score || a.id.localeCompare(b.id))[0];
  const own = arranged[id];
  const model = own?.model ?? best?.id ?? 'llama3.2:latest';
  const running = async () => {
    const start = own?.start ?? (await startOf(id));
    const fake = await start({ models: [{ id: model }], ...(key && { keys: [ownKey] }) });
    return { id, fake, model, env: { ...own?.env, [address]: fake.url, ...(key && { [key]: ownKey }) } };
  };
  return running();
}

async function startOf(id: string): Promise<Start> {
  const files = readdirSync(folder).filter(name => name.startsWith('start-'));
  const named = (wanted: string) => files.find(name => name.slice(6, -3).replaceAll('-', '') === wanted);
  const file = named(id.replaceAll('-', '')) ?? 'start-open-ai.ts';
  const module: Record<string, Start> = await import(new URL(file, folder).href);
  const start = Object.entries(module).find(([name]) => name.startsWith('start'))?.[1];
  if (!start) throw new Error(`${file} starts nothing`);
  return start;
}
