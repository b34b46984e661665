import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { fastClock } from '../support/fast-clock.ts';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startDeepSeek } from '../support/vendors/start-deepseek.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const narrowModels = ['gpt-5.2', 'gpt-5.1', 'gpt-5'];

const linesOf = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => `export const ${name}${at} = (a: number) => a + ${at};`).join('\n');

let wide: FakeVendor;
let narrow: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
let window: number;

beforeAll(async () => {
  project = await tempProject({
    'src/large.ts': linesOf('large', 700),
    'src/larger.ts': linesOf('large', 1_900),
    'src/small.ts': linesOf('small', 20),
  });
});
afterAll(() => project.dispose());

/** `most`: tokens that the models of the one provider take; it refuses what is longer, as vendors do. */
async function start(most = 10_000) {
  window = most;
  const models = narrowModels.map(model_name => ({ model_name, context_window: most, max_output_tokens: most / 5 }));
  await project.write('models.json', JSON.stringify({ models }));
  [wide, narrow] = await Promise.all([startDeepSeek(), startOpenAi({ window })]);
  polylogue = await testProduct({
    root: project.root,
    clock: fastClock(100),
    env: {
      ...vendorEnv({ deepseek: wide.url, openai: narrow.url }),
      OPENAI_ALLOWED_MODELS: narrowModels.join(','),
      OPENAI_MODELS_CONFIG_PATH: project.path('models.json'),
      POLYLOGUE_STORE: 'memory',
      POLYLOGUE_TOOLSETS: 'core,code,agent',
    },
  });
  wide.byDefault({ fault: 'status', status: 500 });
  narrow.byDefault({ answer: 'From the narrow one.' });
}
afterEach(async () => {
  expect(narrow.violations).toEqual([]);
  expect(asked(narrow).every(({ tokens }) => tokens < window)).toBe(true);
  await polylogue.close();
  await Promise.all([wide.close(), narrow.close()]);
});

const asked = ({ requests }: FakeVendor) => requests.filter(({ dialect }) => dialect !== 'models');
const textOf = (vendor: FakeVendor, at = -1) =>
  asked(vendor)
    .at(at)
    ?.messages.map(({ text }) => text)
    .join('\n') ?? '';
const files = ['src/large.ts', 'src/small.ts'];
const shorter = 'The prompt was made shorter for openai:';

describe('while the provider with a large window fails, one with a smaller window is asked', () => {
  it('in a thread, with a prompt made for it, and the thread goes on from what it was shown', async () => {
    await start();
    wide.script({ answer: 'A first answer.' });
    const first = await polylogue.call('chat', { prompt: 'What is small?', absolute_file_paths: ['src/small.ts'] });
    const { continuation_id } = first.continuation_offer;
    const reply = await polylogue.call('chat', { prompt: 'And large?', continuation_id, absolute_file_paths: files });
    expect(reply).toMatchObject({ isError: false, content: 'From the narrow one.' });
    expect(reply.metadata.warnings.join()).toContain(shorter);
    expect(reply.metadata.files.outlined).toEqual([project.path('src/large.ts')]);
    expect(Math.max(...asked(wide).map(({ tokens }) => tokens))).toBeGreaterThan(window);
    for (const words of ['What is small?', 'A first answer.', 'And large?', 'small19']) {
      expect(textOf(narrow), words).toContain(words);
    }
    const last = await polylogue.call('chat', { prompt: 'And then?', continuation_id });
    expect(last).toMatchObject({ isError: false });
    expect(textOf(narrow).split('And large?')).toHaveLength(2);
    expect(textOf(narrow)).toContain('From the narrow one.');
  });

  it('on a panel, in both of its rounds', async () => {
    await start();
    const reply = await polylogue.call('consensus', { proposal: 'Split it.', relevant_files: files, rounds: 2 });
    expect(reply).toMatchObject({ isError: false });
    expect(reply.responses).toHaveLength(3);
    for (const response of reply.responses) {
      expect(response).toMatchObject({ status: 'success', round: 2, metadata: { provider: 'openai' } });
      expect(response.not_revised).toBeUndefined();
    }
    expect(asked(wide)[0]?.tokens).toBeGreaterThan(window);
    expect(asked(narrow).filter(request => request.messages.some(({ text }) => text.includes('large1 ='))).length).toBe(
      6,
    );
  });

  it('for an agent, which works on with what it was shown', async () => {
    await start(34_000);
    narrow.script(
      { calls: [{ name: 'read_file', args: { path: 'src/small.ts' } }], reasoning: 'Look.' },
      { answer: 'Looked.' },
    );
    const reply = await polylogue.call('agent', { task: 'Look at large.', files: ['src/larger.ts', 'src/small.ts'] });
    expect(reply).toMatchObject({ isError: false, content: 'Looked.', tool_calls: [{ outcome: 'ok' }] });
    expect(reply.metadata.warnings.join()).toContain(shorter);
    expect(asked(wide)[0]?.tokens).toBeGreaterThan(window);
    expect(textOf(narrow, 0)).toContain('Look at large.');
    expect(textOf(narrow, 1).startsWith(textOf(narrow, 0))).toBe(true);
    const { continuation_id } = reply.continuation_offer;
    const more = await polylogue.call('agent', { task: 'And small?', continuation_id });
    expect(more).toMatchObject({ isError: false });
    expect(textOf(narrow).split('Look at large.')).toHaveLength(2);
  });

  it('with the very same prompt where that fits', async () => {
    await start();
    const chat = await polylogue.call('chat', { prompt: 'What is it?', absolute_file_paths: ['src/small.ts'] });
    expect(chat).toMatchObject({ isError: false, content: 'From the narrow one.' });
    expect(textOf(narrow)).toBe(textOf(wide));
    expect(chat.metadata.warnings.join()).not.toContain(shorter);
  });

  it('for an agent with the very same prompt where that fits', async () => {
    await start(34_000);
    const reply = await polylogue.call('agent', { task: 'What is it?', files: ['src/small.ts'] });
    expect(reply).toMatchObject({ isError: false });
    expect(textOf(narrow)).toBe(textOf(wide));
    expect(reply.metadata.warnings.join()).not.toContain(shorter);
  });

  it('and where it does not fail, it alone is asked with all of it', async () => {
    await start();
    wide.byDefault({ answer: 'From the wide one.' });
    const reply = await polylogue.call('chat', { prompt: 'What is large?', absolute_file_paths: files });
    expect(reply).toMatchObject({ content: 'From the wide one.' });
    expect(textOf(wide)).toContain('large699');
    expect(asked(narrow)).toEqual([]);
  });
});
