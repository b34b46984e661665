import type { Candidate, ModelInfo } from '../../src/core/model.ts';
import type { ModelAnswer, ModelQuestion } from '../../src/models/ask-model.ts';
import { createAskModel } from '../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../src/models/catalogue/connections.ts';
import type { ProviderDefinition, ProviderSettings } from '../../src/models/provider.ts';
import { say } from '../models/scripted-model.ts';
import { realClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';

type More = Partial<ModelQuestion> & Pick<Candidate, 'effort'>;

/** Asks models of one provider over one connection, without waits between attempts. */
export async function providerAsker(definition: ProviderDefinition, settings: ProviderSettings) {
  const ask = createAskModel({
    connection: createConnections(configureProviders([definition], { [definition.id]: settings })),
    clock: { ...realClock(), sleep: () => Promise.resolve() },
    random: seededRandom(),
    emit: () => {},
    isLocal: () => false,
    limits: { firstByteMs: 5000, idleMs: 5000, totalMs: 10_000 },
  });
  return (model: ModelInfo, { effort, ...more }: More = {}): Promise<ModelAnswer> =>
    ask({
      reqId: 'r',
      tool: 'chat',
      candidates: [{ model, effort, reason: 'test' }],
      messages: [say('user', 'What is this?')],
      maxOutputTokens: 1000,
      signal: new AbortController().signal,
      ...more,
    });
}

/** The same for a single question. */
export async function askProvider(
  definition: ProviderDefinition,
  settings: ProviderSettings,
  model: ModelInfo,
  more?: More,
): Promise<ModelAnswer> {
  return (await providerAsker(definition, settings))(model, more);
}
