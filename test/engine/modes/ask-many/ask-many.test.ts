import { expect, it } from 'vitest';
import { documentTokens, fitTexts } from '../../../../src/calls/format-reply.ts';
import { AppError } from '../../../../src/core/errors.ts';
import { askEach, type Target } from '../../../../src/engine/modes/ask-many/ask-many.ts';
import { testProduct, vendorEnv } from '../../../support/product.ts';
import { tempProject } from '../../../support/temp-project.ts';
import { startOpenAi } from '../../../support/vendors/start-open-ai.ts';

const error = new AppError('model', 'no', { code: 'API_ERROR', class: 'bad_request' });
const targets = Array.from(
  { length: 8 },
  (_, at): Target => ({ model: `m${at}`, who: { failure: error }, warnings: [] }),
);
const stages: string[] = [];
const progress = { stage: (text: string) => void stages.push(text), note() {}, streamed() {} };
// Of a call nothing else is looked at.
const run = { call: { progress } } as unknown as Parameters<typeof askEach>[0];

it('makes all questions ready in their order before the first is asked, five at a time, and answers in their order', async () => {
  const seen: string[] = [];
  let [atOnce, most] = [0, 0];
  const responses = await askEach(run, targets, ({ model }) => {
    seen.push(`ready ${model}`);
    return {
      async ask() {
        seen.push(`ask ${model}`);
        most = Math.max(most, ++atOnce);
        await new Promise(resolve => setTimeout(resolve, model === 'm0' ? 30 : 1));
        atOnce--;
        return { status: 'error', error, latencyMs: 1 };
      },
    };
  });
  expect(responses.map(({ target }) => target)).toEqual(targets);
  expect(seen.slice(0, 9)).toEqual([...targets.map(({ model }) => `ready ${model}`), 'ask m0']);
  expect(most).toBe(5);
  expect(stages).toHaveLength(8);
  expect(stages.at(-1)).toBe('m0 failed (8 of 8)');
});

it.each(['the first is asked', 'all are ready'])(
  'frees what was reserved where the call ends before %s',
  async when => {
    const released: string[] = [];
    const ended = askEach(run, targets, async ({ model }) => {
      if (when === 'all are ready' && model === 'm3') throw new Error('cancelled');
      return { ask: () => Promise.reject(new Error('cancelled')), release: () => void released.push(model) };
    });
    await expect(ended).rejects.toThrow('cancelled');
    expect(released).toHaveLength(when === 'all are ready' ? 3 : 8);
  },
);

it('cuts texts fairly: short ones stay whole, long ones get equal parts', () => {
  const texts = ['short', 'long text '.repeat(2_000), 'other text '.repeat(3_000)];
  const document = fitTexts(texts, 2_000, shown => ({ shown: [...shown] }));
  expect(documentTokens(document)).toBeLessThanOrEqual(2_000);
  const [short, long, other] = Object(document).shown;
  expect(short).toBe('short');
  for (const part of [long, other]) expect(part.length).toBeGreaterThan(2_000);
});

it('continues an answer that was cut for one text to several models, and not for a panel', async () => {
  const [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  const env = { ...vendorEnv({ openai: vendor.url }), POLYLOGUE_TOOLSETS: 'core,wrapper' };
  const polylogue = await testProduct({ root: project.root, env });
  try {
    vendor.byDefault({ answer: '## Verdict\nYes, and so on', finish: 'length' });
    const prompt = await polylogue.call('prompt', { text: 'Why?', models: ['openai:gpt-5-mini'] });
    expect(vendor.requests.filter(({ dialect }) => dialect !== 'models')).toHaveLength(2);
    expect(prompt.result.responses).toMatchObject([
      { partial: true, response: expect.stringMatching(/so on.*so on/s) },
    ]);
    const panel = await polylogue.call('consensus', { prompt: 'Keep it?', models: ['gpt-5-mini'] });
    expect(vendor.requests.filter(({ dialect }) => dialect !== 'models')).toHaveLength(3);
    expect(panel.responses).toMatchObject([{ partial: true, status: 'success' }]);
    expect(vendor.violations).toEqual([]);
  } finally {
    await polylogue.close();
    await Promise.all([vendor.close(), project.dispose()]);
  }
});
