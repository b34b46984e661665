import type { AppError } from '../../../src/core/errors.ts';
import type { AppEvent } from '../../../src/core/events.ts';
import type { ModelInfo } from '../../../src/core/model.ts';
import type { Clock, SharedState } from '../../../src/core/ports.ts';
import type { ModelAnswer, ModelQuestion } from '../../../src/models/ask-model.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../../src/models/catalogue/connections.ts';
import { upstreamOf } from '../../../src/models/resilience/breaker.ts';
import { createResilience } from '../../../src/models/resilience/policy.ts';
import { custom } from '../../../src/providers/custom.ts';
import { openai } from '../../../src/providers/openai.ts';
import { seededRandom } from '../../support/random.ts';
import { modelInfo, say } from '../scripted-model.ts';

export const alpha = modelInfo({ provider: 'openai', id: 'gpt-5' });
export const sibling = modelInfo({ provider: 'openai', id: 'gpt-5-mini' });
export const beta = modelInfo({ provider: 'custom', id: 'spare' });

export interface StormOptions {
  alphaUrl: string;
  betaUrl: string;
  clock: Clock;
  seed?: number;
  state?: SharedState;
  firstByteMs?: number;
  emit?(event: AppEvent): void;
}

/** How a call ended: never otherwise. */
export type Ending = { answer: ModelAnswer; error?: undefined } | { answer?: undefined; error: AppError };

/** The models as the product asks them, with its own policy around. */
export function stormTeam({ alphaUrl, betaUrl, clock, seed = 1, state, firstByteMs = 3_000_000, emit }: StormOptions) {
  const events: AppEvent[] = [];
  const settings = { openai: { apiKey: 'test-key', baseUrl: alphaUrl }, custom: { apiUrl: betaUrl } };
  const definitions = [openai, custom];
  const random = seededRandom(seed);
  const tell = emit ?? (event => void events.push(event));
  const resilience = createResilience({
    clock,
    random,
    emit: tell,
    state,
    upstreams: [upstreamOf(openai, settings.openai), upstreamOf(custom, settings.custom)],
    limits: { total: 256, perProvider: () => 256, queue: 1024 },
  });
  const ask = createAskModel({
    connection: createConnections(configureProviders(definitions, settings)),
    clock,
    random,
    emit: tell,
    // As in the product: the spare one stands on this machine and gets ten times the time.
    isLocal: id => id === 'custom',
    limits: { firstByteMs, idleMs: 3_000_000, totalMs: 3_000_000 },
    resilience,
  });
  let calls = 0;
  const one = async (models: readonly ModelInfo[], more: Partial<ModelQuestion> = {}): Promise<Ending> => {
    const question: ModelQuestion = {
      reqId: `r${++calls}`,
      tool: 'chat',
      candidates: models.map(model => ({ model, reason: 'test' })),
      messages: [say('user', 'hello')],
      maxOutputTokens: 1_000,
      signal: new AbortController().signal,
      ...more,
    };
    return ask(question).then(
      answer => ({ answer }),
      error => ({ error }),
    );
  };
  /** `count` calls, `width` at a time. */
  const storm = async (models: readonly ModelInfo[], count: number, width = 8): Promise<Ending[]> => {
    const endings: Ending[] = [];
    let begun = 0;
    const lane = async () => {
      while (begun < count) {
        begun++;
        endings.push(await one(models));
      }
    };
    await Promise.all(Array.from({ length: width }, lane));
    return endings;
  };
  return { one, storm, events, resilience };
}
