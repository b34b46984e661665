import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { efforts } from '../../../src/core/model.ts';
import { createModelService, type ModelService } from '../../../src/models/call/models.ts';
import { loadCatalogue } from '../../../src/models/catalogue/model-sources.ts';
import { providers } from '../../../src/providers/index.gen.ts';
import { realClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startDeepSeek } from '../../support/vendors/start-deepseek.ts';
import { startGroq } from '../../support/vendors/start-groq.ts';
import { startMinimax } from '../../support/vendors/start-minimax.ts';
import { startMinimaxChat } from '../../support/vendors/start-minimax-chat.ts';
import { startXai } from '../../support/vendors/start-xai.ts';
import { noPolicy } from '../routing-fixtures.ts';
import { say } from '../scripted-model.ts';

const fakes = [
  ['xai', 'Responses', startXai],
  ['groq', 'chat', startGroq],
  ['deepseek', 'chat', startDeepSeek],
  ['minimax', 'Messages', startMinimax],
  ['minimax', 'chat', startMinimaxChat],
] as const;

describe.each(fakes)('the catalogue of %s (%s)', (provider, _dialect, start) => {
  let vendor: FakeVendor;
  let team: ModelService;
  const rows = loadCatalogue().filter(model => model.provider === provider);

  beforeAll(async () => {
    vendor = await start();
    team = createModelService({
      definitions: providers,
      settings: { [provider]: { apiKey: 'test-key', baseUrl: vendor.url } },
      policy: noPolicy,
      maxThinkingTokens: 16_000,
      clock: realClock(),
      random: seededRandom(),
      emit: () => {},
    });
  });
  afterAll(() => vendor.close());

  const routed = async (name: string) => {
    const { candidates } = await team.route({ name, category: 'balanced', needs: {} });
    return candidates.map(({ model }) => `${model.provider}:${model.id}`);
  };

  it('is reached by provider and id, and by each alias', async () => {
    expect(rows.length).toBeGreaterThan(0);
    for (const { id, aliases } of rows) {
      const exact = `${provider}:${id}`;
      expect((await routed(exact))[0]).toBe(exact);
      for (const alias of aliases) expect((await routed(alias))[0], alias).toBe(exact);
    }
  });

  it('is asked for each effort, and for none, in a way that the vendor takes', async () => {
    for (const model of rows) {
      for (const effort of [undefined, ...efforts]) {
        const answer = await team.ask({
          reqId: 'r',
          tool: 'chat',
          candidates: [{ model, effort, reason: 'test' }],
          messages: [say('system', 'Be brief.'), say('user', 'x')],
          maxOutputTokens: 100,
          temperature: 0.5,
          cacheKey: 'thread',
          signal: new AbortController().signal,
        });
        expect(answer.finish.kind).toBe('stop');
      }
    }
    expect(vendor.violations).toEqual([]);
  });
});
