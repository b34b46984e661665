import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunningVendor, startEveryVendor } from '../support/every-vendor.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../support/vendors/fake-vendor.ts';
import { o200kTokens } from '../support/vendors/o200k-tokens.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const wrapper = { POLYLOGUE_TOOLSETS: 'core,wrapper' };
const names = {
  google: 'google:gemini-2.5-flash',
  openai: 'openai:gpt-4.1',
  mini: 'openai:gpt-4.1-mini',
  anthropic: 'anthropic:claude-sonnet-4-5',
  haiku: 'anthropic:claude-haiku-4-5',
} as const;
const question = 'What is the capital of France?';
const refused = {
  fault: 'status',
  status: 400,
  body: { type: 'error', error: { type: 'invalid_request_error', message: 'no, says the vendor' } },
} as const;

let vendors: { google: FakeVendor; openai: FakeVendor; anthropic: FakeVendor };
let project: TempProject;
let polylogue: TestProduct;

async function start(env: Record<string, string> = {}) {
  const urls = { google: vendors.google.url, openai: vendors.openai.url, anthropic: vendors.anthropic.url };
  polylogue = await testProduct({ root: project.root, env: { ...vendorEnv(urls), ...wrapper, ...env } });
}

const asks = (vendor: FakeVendor) => vendor.requests.filter(({ dialect }) => dialect !== 'models');
const all = (): RecordedRequest[] => Object.values(vendors).flatMap(asks);
const tokensOf = (document: Document) => {
  const { isError: _, ...text } = document;
  return o200kTokens(JSON.stringify(text)).length;
};

beforeEach(async () => {
  const [google, openai, anthropic] = await Promise.all([startGoogle(), startOpenAi(), startAnthropic()]);
  vendors = { google, openai, anthropic };
  google.byDefault({ answer: 'Paris, says Google.' });
  openai.byDefault({ answer: 'Paris, says OpenAI.' });
  anthropic.byDefault({ answer: 'Paris, says Anthropic.' });
  project = await tempProject({ 'q.txt': `${question}\n`, 'src/big.txt': 'word '.repeat(150_000), empty: ' \n' });
});

afterEach(async () => {
  for (const vendor of Object.values(vendors)) expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await Promise.all(Object.values(vendors).map(vendor => vendor.close()));
  await project.dispose();
});

describe('prompt', () => {
  it('gets the capital of France from every provider that there is, in the order of the request', async () => {
    const running: RunningVendor[] = await startEveryVendor();
    const ids = running.map(({ id }) => id);
    const known = [
      'anthropic',
      'azure',
      'custom',
      'deepseek',
      'google',
      'groq',
      'minimax',
      'ollama',
      'openai',
      'openrouter',
    ];
    expect(ids).toEqual(expect.arrayContaining([...known, 'xai']));
    for (const { id, fake } of running) fake.byDefault({ answer: `Paris, says ${id}.` });
    const env = Object.assign({}, ...running.map(vendor => vendor.env));
    polylogue = await testProduct({ root: project.root, env: { ...env, ...wrapper } });
    const models = running.map(({ id, model }) => `${id}:${model}`);
    const reply = await polylogue.call('prompt', { text: question, models_prefixed_by_provider: models });
    expect(reply).toMatchObject({ tool_name: 'prompt', status: 'success', isError: false });
    expect(reply.result.responses.map(({ response, error }: Document) => response ?? error)).toEqual(
      ids.map(id => `Paris, says ${id}.`),
    );
    expect(reply.result.responses.map(({ requested }: Document) => requested)).toEqual(models);
    for (const { fake } of running) {
      expect(asks(fake)).toHaveLength(1);
      // A server of one's own is also asked whether it is an LM Studio, which tells its windows there.
      expect(fake.violations.filter(text => !text.startsWith('GET /api/v0/models'))).toEqual([]);
      await fake.close();
    }
  });

  it('leaves four answers and one error slot when one of five models fails', async () => {
    await start();
    vendors.google.byDefault(refused);
    const models = [names.openai, names.google, names.mini, names.anthropic, names.haiku];
    const { isError, status, result, metadata } = await polylogue.call('prompt', { text: question, models });
    expect({ isError, status }).toEqual({ isError: false, status: 'success' });
    expect(result.responses.map(({ model }: Document) => model)).toEqual(models);
    expect(result.responses.map(({ response }: Document) => response?.slice(0, 5))).toEqual([
      'Paris',
      undefined,
      'Paris',
      'Paris',
      'Paris',
    ]);
    expect(result.responses[1]).toEqual({
      model: names.google,
      requested: names.google,
      error: expect.objectContaining({ code: 'API_ERROR', status: 400, next: expect.any(String), retryable: false }),
    });
    expect(result.responses[0]).toMatchObject({ tokens: { input: expect.any(Number) }, cost_usd: expect.any(Number) });
    const inputs = result.responses.reduce((sum: number, { tokens }: Document) => sum + (tokens?.input ?? 0), 0);
    expect(metadata).toMatchObject({ tool_name: 'prompt', usage: { input: inputs }, cost_usd: expect.any(Number) });
  });

  it('is an error with every slot when all of them fail', async () => {
    await start();
    vendors.google.byDefault(refused);
    vendors.openai.byDefault(refused);
    const reply = await polylogue.call('prompt', { text: question, models: [names.google, names.openai, 'nope:x'] });
    expect(reply).toMatchObject({ isError: true, status: 'error', tool_name: 'prompt' });
    expect(reply.error).toMatchObject({ code: 'API_ERROR', message: expect.stringContaining('None of the 3 models') });
    expect(reply.result.responses.map(({ error }: Document) => error.code)).toEqual([
      'API_ERROR',
      'API_ERROR',
      'PROVIDER_NOT_FOUND',
    ]);
  });

  it('sends the text as it is, and writes no thread', async () => {
    await start();
    await polylogue.call('prompt', { text: question, models: [names.openai, names.anthropic] });
    for (const { messages } of all()) expect(messages).toEqual([{ role: 'user', text: question }]);
    expect((await polylogue.call('threads', { action: 'list' })).threads).toEqual([]);
  });

  it('adds the language that the operator wants, and nothing else', async () => {
    await start({ LOCALE: 'fr-FR' });
    await polylogue.call('prompt', { text: question, models: names.openai });
    const [system, user] = asks(vendors.openai)[0]!.messages;
    expect(system!.text).toMatch(/^Write all .* fr-FR\.$/);
    expect(user!.text).toBe(question);
  });

  it('masks secrets before anybody sees them', async () => {
    await start();
    const key = `sk-ant-api03-${'aB3'.repeat(31)}AA`;
    await polylogue.call('prompt', { text: `What is ${key}?`, models: [names.openai] });
    expect(JSON.stringify(all())).not.toContain(key);
    expect(asks(vendors.openai)[0]!.messages[0]!.text).toMatch(/^What is .+\?$/);
  });

  it('passes effort and temperature on, each model in its own way', async () => {
    await start();
    const models = ['openai:gpt-5:low', 'openai:gpt-5:high', names.openai];
    const { result } = await polylogue.call('prompt', { text: question, models, temperature: 0.3 });
    expect(result.responses.map(({ response }: Document) => response)).toHaveLength(3);
    const bodies = asks(vendors.openai).map(({ body }) => body);
    expect(bodies).toContainEqual(expect.objectContaining({ reasoning: expect.objectContaining({ effort: 'low' }) }));
    expect(bodies).toContainEqual(expect.objectContaining({ reasoning: expect.objectContaining({ effort: 'high' }) }));
    expect(bodies).toContainEqual(expect.objectContaining({ model: 'gpt-4.1', temperature: 0.3 }));
  });

  it('asks a few at a time, and tells of each as it is ready', async () => {
    await start();
    let open = 0;
    let most = 0;
    const answer = () => {
      most = Math.max(most, ++open);
      setTimeout(() => open--, 40);
      return 'Paris.';
    };
    vendors.openai.byDefault({ answer, delayMs: 40 });
    const models = Array.from({ length: 12 }, () => names.openai);
    const stages: string[] = [];
    const onProgress = ({ message }: { message: string }) => void stages.push(message);
    const { result } = await polylogue.call('prompt', { text: question, models }, { onProgress });
    expect(result.responses).toHaveLength(12);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(5);
    expect(stages[0]).toBe('asking 12 models');
    expect(stages.at(-1)).toMatch(/openai:gpt-4\.1 answered in .* \(12 of 12\)/);
  });

  it('ends all of them when the call is cancelled, and asks no more', async () => {
    await start();
    for (const vendor of Object.values(vendors)) vendor.byDefault({ fault: 'hang_before_headers' });
    const stop = new AbortController();
    const models = [names.google, names.openai, names.anthropic, names.mini, names.haiku, names.openai, names.google];
    const call = polylogue.call('prompt', { text: question, models }, { signal: stop.signal });
    while (all().length < 5) await new Promise(resolve => setTimeout(resolve, 5));
    stop.abort();
    expect((await call).error).toMatchObject({ code: 'CANCELLED' });
    await Promise.all(all().map(({ aborted }) => aborted));
    expect(all()).toHaveLength(5);
  });

  it('refuses more models than a call takes, and asks nobody', async () => {
    await start();
    const models = Array.from({ length: 25 }, () => names.openai);
    const { error } = await polylogue.call('prompt', { text: question, models });
    expect(error).toMatchObject({ code: 'LIMIT', message: expect.stringContaining('24') });
    expect(all()).toHaveLength(0);
  });
});

describe('the models of prompt', () => {
  it('are named with their provider; a bare name is refused with what it stands for, before anybody is paid', async () => {
    await start();
    for (const bare of ['gpt-4.1', 'gpt-5:high', 'auto']) {
      const { status, error } = await polylogue.call('prompt', { text: question, models: [names.google, bare] });
      expect(status).toBe('error');
      expect(error).toMatchObject({ code: 'INVALID_INPUT_FORMAT', message: expect.stringContaining(`"${bare}"`) });
      const [{ field, allowed }] = error.validation_errors;
      expect(field).toBe('models');
      if (bare !== 'auto') expect(allowed).toEqual([`openai:${bare.split(':')[0]}`]);
    }
    expect(all()).toHaveLength(0);
  });

  it('may be written with short names, several in one text, and are corrected with a word about it', async () => {
    await start();
    const models = 'o:gpt_4.1, a:claude-sonnet-4-5';
    const { result } = await polylogue.call('prompt', { text: question, models });
    expect(result.responses).toMatchObject([
      { model: names.openai, requested: 'o:gpt_4.1', model_corrected: { from: 'o:gpt_4.1', to: 'gpt-4.1' } },
      { model: names.anthropic, requested: 'a:claude-sonnet-4-5' },
    ]);
    expect(result.responses[1].model_corrected).toBeUndefined();
  });

  it('that nobody serves, or whose provider is unknown or has no key, keep their slots with the reason', async () => {
    await start();
    const models = ['openai:gpt-99', 'mistral:large', 'openrouter:openai/gpt-5', names.openai];
    const { result } = await polylogue.call('prompt', { text: question, models });
    expect(result.responses.map(({ error }: Document) => error && [error.code, error.class])).toEqual([
      ['MODEL_NOT_FOUND', 'unknown'],
      ['PROVIDER_NOT_FOUND', 'unknown'],
      ['MODEL_NOT_FOUND', 'no_key'],
      undefined,
    ]);
    expect(result.responses[1].error.next).toContain('openai (o)');
    expect(result.responses[3].response).toBe('Paris, says OpenAI.');
  });

  it('that the operator forbids are not asked', async () => {
    await start({ DENIED_MODELS: 'gpt-4.1' });
    const { result } = await polylogue.call('prompt', { text: question, models: [names.openai, names.google] });
    expect(result.responses[0].error).toMatchObject({ code: 'MODEL_NOT_FOUND', class: 'restricted' });
    expect(asks(vendors.openai)).toHaveLength(0);
  });

  it('are, where none is named, DEFAULT_MODELS, else the default model, else one that is chosen', async () => {
    await start({ DEFAULT_MODELS: `${names.openai},sonnet,${names.google}`, DEFAULT_MODEL: names.mini });
    const several = await polylogue.call('prompt', { text: question });
    expect(several.result.responses.map(({ requested }: Document) => requested)).toEqual([
      names.openai,
      'sonnet',
      names.google,
    ]);
    for (const { response } of several.result.responses) expect(response).toContain('Paris');
    await polylogue.close();
    await start({ DEFAULT_MODEL: names.mini });
    const one = await polylogue.call('prompt', { text: question });
    expect(one.result.responses).toMatchObject([{ model: names.mini, requested: names.mini }]);
    await polylogue.close();
    await start();
    const chosen = await polylogue.call('prompt', { text: question });
    expect(chosen.result.responses).toMatchObject([{ requested: 'auto', response: expect.stringContaining('Paris') }]);
  });
});

describe('what does not fit', () => {
  it('into one model’s window is that model’s error, with the numbers; the others answer', async () => {
    await start();
    const text = await polylogue.call('prompt_from_file', {
      file_path: 'src/big.txt',
      models: [names.haiku, names.google],
    });
    const [haiku, google] = text.result.responses;
    expect(haiku.error).toMatchObject({ code: 'LIMIT', class: 'tokens', data: { window: 200_000 } });
    expect(haiku.error.data.tokens).toBeGreaterThan(120_000);
    expect(google.response).toContain('Paris');
    expect(asks(vendors.anthropic)).toHaveLength(0);
  });

  it('into a field is refused with the way to send it, in the words of these tools', async () => {
    await start({ MCP_PROMPT_SIZE_LIMIT: '10000' });
    const reply = await polylogue.call('prompt', { text: 'x'.repeat(10_001), models: names.openai });
    expect(reply).toMatchObject({ status: 'error', error: { code: 'LIMIT', class: 'size' } });
    expect(reply.error.next).toContain('prompt_from_file');
  });

  it('into one reply is cut fairly, loses no slot, and can be read to its end', async () => {
    await start({ MAX_MCP_OUTPUT_TOKENS: '4000' });
    const long = (who: string) => Array.from({ length: 2_000 }, (_, line) => `${who} line ${line}.`).join('\n');
    vendors.openai.byDefault({ answer: long('OpenAI') });
    vendors.anthropic.byDefault({ answer: long('Anthropic') });
    const models = [names.openai, names.google, names.anthropic, 'nope:x'];
    const reply = await polylogue.call('prompt', { text: question, models });
    expect(tokensOf(reply)).toBeLessThanOrEqual(Math.floor(4_000 / 1.45));
    const [openai, google, anthropic, nope] = reply.result.responses;
    expect(google.response).toBe('Paris, says Google.');
    expect(nope.error.code).toBe('PROVIDER_NOT_FOUND');
    for (const [slot, who] of [
      [openai, 'OpenAI'],
      [anthropic, 'Anthropic'],
    ]) {
      expect(long(who).startsWith(slot.response)).toBe(true);
      expect(slot.response.length).toBeGreaterThan(1_000);
      expect(slot.truncated.shown_characters).toBe(slot.response.length);
      let rest = '';
      for (let cursor = slot.truncated.next_cursor; cursor && !rest.includes(`${who} line 1999.`); ) {
        const { continuation_id } = reply;
        const page = await polylogue.call('threads', { action: 'read', continuation_id, cursor });
        for (const { content } of page.transcript) rest += content;
        cursor = page.next_cursor;
      }
      expect(`${slot.response}${rest}`).toContain(long(who));
    }
  });
});

describe('prompt_from_file', () => {
  it('sends what the file holds, or the named lines of it, under each name that callers use', async () => {
    await start();
    await project.write('lines.txt', 'one\ntwo\nthree\n');
    for (const [field, path] of [
      ['file_path', 'lines.txt'],
      ['file', project.path('lines.txt')],
      ['abs_file_path', project.path('lines.txt')],
    ] as const) {
      const { result } = await polylogue.call('prompt_from_file', { [field]: path, models: [names.openai] });
      expect(result.responses[0].response).toContain('Paris');
    }
    await polylogue.call('prompt_from_file', { file_path: 'lines.txt:2-2', models: [names.openai] });
    const texts = asks(vendors.openai).map(({ messages }) => messages[0]!.text.trim());
    expect(texts).toEqual(['one\ntwo\nthree', 'one\ntwo\nthree', 'one\ntwo\nthree', 'two']);
  });

  it.each([
    ['../outside.txt', 'SECURITY'],
    ['/etc/passwd', 'SECURITY'],
    ['.env', 'SECURITY'],
    ['src', 'SECURITY'],
    ['missing.txt', 'INVALID_INPUT_FORMAT'],
    ['empty', 'INVALID_INPUT_FORMAT'],
  ])('refuses %s with %s, before anybody is asked', async (file_path, code) => {
    await start();
    await project.write('.env', 'KEY=1');
    const reply = await polylogue.call('prompt_from_file', { file_path, models: [names.openai] });
    expect(reply).toMatchObject({ status: 'error', tool_name: 'prompt_from_file', error: { code } });
    expect(all()).toHaveLength(0);
  });

  it('refuses a file that is larger than allowed, with the limit', async () => {
    await start({ MAX_FILE_BYTES: '100000' });
    const { error } = await polylogue.call('prompt_from_file', { file_path: 'src/big.txt', models: [names.google] });
    expect(error).toMatchObject({ code: 'LIMIT', class: 'size', message: expect.stringContaining('100000') });
  });
});

describe('list_providers and list_models', () => {
  it('tell the names that may stand before and after the colon', async () => {
    await start();
    const { tool_name, status, result } = await polylogue.call('list_providers');
    expect({ tool_name, status }).toEqual({ tool_name: 'list_providers', status: 'success' });
    expect(result.providers).toContainEqual({ name: 'openai', short: 'o', configured: true });
    expect(result.providers).toContainEqual({ name: 'openrouter', short: 'r', configured: false });
    for (const provider of ['anthropic', 'a', 'Anthropic', 'a:']) {
      const listed = await polylogue.call('list_models', { provider });
      expect(listed).toMatchObject({ tool_name: 'list_models', status: 'success', result: { provider: 'anthropic' } });
      expect(listed.result.models).toContain('claude-sonnet-4-5');
    }
  });

  it('say what an unknown provider could have been, and what a known one lacks', async () => {
    await start();
    const { status, error } = await polylogue.call('list_models', { provider: 'mistral' });
    expect({ status, code: error.code }).toEqual({ status: 'error', code: 'PROVIDER_NOT_FOUND' });
    expect(error.next).toContain('anthropic (a)');
    const { metadata } = await polylogue.call('list_models', { provider: 'r' });
    expect(metadata.warnings[0]).toContain('OPENROUTER_API_KEY');
  });
});
