import { join } from 'node:path';
import { concurrency, routingPolicy } from '../config/derive.ts';
import { readModelFiles } from '../config/endpoints/read-model-files.ts';
import { readIfPresent } from '../config/settings-files.ts';
import type { Clock, Emit, Random, SharedState, TellComms } from '../domain/ports.ts';
import { createKeptTexts } from '../memory/shared-state/kept-texts.ts';
import { type Programs, programProviderId } from '../models/extras/programs/program.ts';
import { programProvider } from '../models/extras/programs/program-provider.ts';
import type { ProviderDefinition } from '../models/provider.ts';
import { providers } from '../models/providers/index.gen.ts';
import { ownEndpoints } from '../models/sources/own-server.ts';
import { createTeam, type Team } from '../models/team.ts';
import type { AppConfig } from './wire-settings.ts';

export interface ModelSurroundings {
  clock: Clock;
  random: Random;
  emit: Emit;
  tellComms?: TellComms;
  state: SharedState;
  /** From outside the package; they come after those of the product. */
  extraProviders?: readonly ProviderDefinition[];
  /** Nothing is written to disk. */
  isPrivate: boolean;
  /** Other vendors' agents, which answer as `cli:name`. */
  programs: Programs;
}

/** Agents are whole programs: more of them at once would only wait for the processor. */
const programsAtOnce = 4;

/** Settings → the models that may be asked, and how. What is wrong with the operator's files about them is told as warnings. */
export async function wireModels(
  config: AppConfig,
  { isPrivate, extraProviders = [], programs, ...around }: ModelSurroundings,
): Promise<Team> {
  const values = config.values.app;
  const { callTimeoutSeconds, maxThinkingTokens } = values;
  const known = [...providers, ...extraProviders];
  const vendors = Object.fromEntries(known.map(({ id }) => [id, config.textsOf(id)]));
  const own = ownEndpoints(config.endpoints, known, Number(config.textsOf('custom').contextWindow) || undefined);
  const { files, warnings } = await readModelFiles(values, readIfPresent);
  const kept = isPrivate ? undefined : createKeptTexts({ folder: join(config.home, 'cache'), random: around.random });
  const { wrong, ...atOnce } = concurrency(values);
  for (const entry of wrong) {
    const message = `MAX_CONCURRENT_PER_PROVIDER: "${entry}" is left out; it takes provider=number.`;
    around.emit({ type: 'warning', where: 'configuration', message });
  }
  const definitions = [...known, ...own.definitions, programProvider(programs)];
  for (const name of Object.keys(atOnce.perProvider).filter(name => !definitions.some(({ id }) => id === name))) {
    const ids = definitions.map(({ id }) => id).join(', ');
    const message = `MAX_CONCURRENT_PER_PROVIDER: there is no provider "${name}"; there are ${ids}.`;
    around.emit({ type: 'warning', where: 'configuration', message });
  }
  const team = createTeam({
    definitions,
    settings: { ...vendors, ...own.settings },
    policy: routingPolicy(values),
    totalMs: callTimeoutSeconds === undefined ? undefined : callTimeoutSeconds * 1_000,
    maxThinkingTokens,
    concurrency: { ...atOnce, perProvider: { [programProviderId]: programsAtOnce, ...atOnce.perProvider } },
    lastAnswer: values.localLastAnswer,
    sources: { files, kept, factsUrl: values.modelsDevUrl },
    ...around,
  });
  const all = [...own.warnings, ...warnings, ...team.warnings];
  for (const message of all) around.emit({ type: 'warning', where: 'models', message });
  return { ...team, warnings: all };
}
