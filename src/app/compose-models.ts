import { join } from 'node:path';
import { concurrency, listVariable, routingPolicy } from '../config/derived-settings.ts';
import { readModelFiles } from '../config/endpoints/read-model-files.ts';
import { nearName } from '../config/near-name.ts';
import { readIfPresent } from '../config/settings-files.ts';
import type { Clock, Emit, Random, SharedState, TellComms } from '../core/ports.ts';
import { createKeptTexts } from '../memory/shared-state/kept-texts.ts';
import { createTeam, type Team } from '../models/call/models.ts';
import type { ProviderDefinition } from '../models/provider.ts';
import type { UnknownName } from '../models/survey/unknown-names.ts';
import { type Programs, programProviderId } from '../providers/external-cli/program.ts';
import { programProvider } from '../providers/external-cli/provider.ts';
import { providers } from '../providers/index.gen.ts';
import { ownEndpoints } from '../providers/shared/own-server.ts';
import type { AppConfig } from './settings.ts';

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

export interface WiredTeam extends Team {
  /** A sentence for each word of the operator's lists that means no model, by the vendors' lists of now. */
  namesOfNone(): Promise<string[]>;
}

/** Agents are whole programs: more of them at once would only wait for the processor. */
const programsAtOnce = 4;

/** Settings → the models that may be asked, and how. What is wrong with the operator's files about them is told as warnings. */
export async function wireModels(
  config: AppConfig,
  { isPrivate, extraProviders = [], programs, ...around }: ModelSurroundings,
): Promise<WiredTeam> {
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
    const ids = definitions.map(({ id }) => id);
    const near = nearName(name, ids);
    const hint = near === undefined ? '' : ` Did you mean ${near}?`;
    const message = `MAX_CONCURRENT_PER_PROVIDER: there is no provider "${name}"; there are ${ids.join(', ')}.${hint}`;
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
  const namesOfNone = async (fresh: boolean) => (await team.unknownNames({ fresh })).map(textOf);
  for (const message of await namesOfNone(false)) around.emit({ type: 'warning', where: namesOfNoneAt, message });
  return { ...team, warnings: all, namesOfNone: () => namesOfNone(true) };
}

/** Where the start warns of such names; whoever asks for them anew need not repeat it. */
const namesOfNoneAt = 'lists of models';

function textOf({ provider, name, near }: UnknownName): string {
  const hint = near === undefined ? '' : ` The nearest that is known is ${near}.`;
  return `${listVariable(provider)}: no model that is known is meant by "${name}", so that it has no effect.${hint}`;
}
