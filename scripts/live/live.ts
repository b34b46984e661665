/** Asks one real model of each provider with a key in the environment. It costs a little money, so it wants to be told. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProduct } from '../../src/app/app.ts';
import type { Product } from '../../src/app/compose-product.ts';
import { tables } from '../../src/app/settings.ts';
import { systemEnvironment } from '../../src/app/system-environment.ts';
import { loadConfig } from '../../src/config/load.ts';
import { usableSettings } from '../../src/models/catalogue/connections.ts';
import { loadCatalogue } from '../../src/models/catalogue/model-sources.ts';
import type { ProviderDefinition } from '../../src/models/provider.ts';
import { providers } from '../../src/providers/index.gen.ts';
import { checksOf, type LiveCheck } from './checks.ts';

if (process.env.RUN_REAL_AI_TESTS !== '1') {
  console.error('This asks real models and costs a little money. Run it as: RUN_REAL_AI_TESTS=1 npm run test:live');
  process.exit(2);
}

const place = await mkdtemp(join(tmpdir(), 'polylogue-live-'));
let passed = 0;
let failed = 0;

try {
  const around = { ...systemEnvironment(), cwd: place };
  const config = loadConfig({
    tables,
    env: { ...process.env, POLYLOGUE_HOME: place, POLYLOGUE_PRIVATE: 'on', PROJECT_ROOT: place, LOG_LEVEL: 'error' },
    argvFlags: {},
    homeDir: around.homeDir,
    platform: around.platform,
    cwd: place,
    readFile: () => undefined,
  });
  const product = await createProduct(config, around);
  const definitions: readonly ProviderDefinition[] = providers;
  for (const definition of definitions) {
    if (definition.onlyByName) continue;
    const settings = usableSettings(config.textsOf(definition.id));
    if (!definition.configured(settings)) {
      const names = Object.values(definition.options).map(option => option.env[0]);
      console.log(`-     ${definition.title}: not configured (${names.slice(0, 2).join(', ')})`);
      continue;
    }
    const own = definition.models?.(settings, loadCatalogue()) ?? [];
    const checks = checksOf(definition.id, [...own, ...loadCatalogue()]);
    if (checks.length === 0) console.log(`-     ${definition.title}: no model of it is known`);
    for (const check of checks) await run(product, check);
  }
  await product.close();
} finally {
  await rm(place, { recursive: true, force: true });
}

console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;

async function run(product: Product, check: LiveCheck): Promise<void> {
  const args = { prompt: 'What is the capital of France? Answer with one word.', model: check.model };
  const principal = { owner: 'local', root: place, client: 'live' };
  const { document } = await product.host.call(
    { name: 'chat', arguments: args, principal },
    AbortSignal.timeout(120_000),
  );
  const problem = check.problem(document);
  if (problem === undefined) passed++;
  else failed++;
  const { usage, cost_usd: cost, latency_ms: ms } = Object(document.metadata);
  const facts =
    problem ?? `${ms} ms, ${usage?.input} + ${usage?.output} tokens${cost === undefined ? '' : `, ${cost} USD`}`;
  console.log(`${problem === undefined ? 'ok' : 'FAILED'}  ${check.model} (${check.about}): ${facts}`);
}
