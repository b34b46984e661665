import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { manualClock } from '../../support/clock.ts';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let google: FakeVendor;
let openai: FakeVendor;
let anthropic: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeEach(async () => {
  [google, openai, anthropic] = await Promise.all([startGoogle(), startOpenAi(), startAnthropic()]);
  project = await tempProject({ 'a.ts': 'export const a = 1;\n', 'long.txt': 'a line of text\n'.repeat(45_000) });
});

afterEach(async () => {
  for (const vendor of [google, openai, anthropic]) expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await Promise.all([google.close(), openai.close(), anthropic.close(), project.dispose()]);
});

async function start(vendors: ('google' | 'openai' | 'anthropic')[], env: Record<string, string> = {}) {
  const urls = { google: google.url, openai: openai.url, anthropic: anthropic.url };
  const chosen = Object.fromEntries(vendors.map(name => [name, urls[name]]));
  polylogue = await testProduct({ root: project.root, env: { ...vendorEnv(chosen), ...env } });
}

const chat = (prompt: string, args: Record<string, unknown> = {}) => polylogue.call('chat', { prompt, ...args });
const toolsOf = ({ body }: RecordedRequest) => JSON.parse(JSON.stringify(body)).tools;
const pages = [{ url: 'https://news.test/one', title: 'One', quote: 'It rained.', age: 'yesterday' }];

async function crumbs(): Promise<Record<string, unknown>[]> {
  await polylogue.restart();
  const text = await readFile(join(polylogue.home, 'logs', 'breadcrumbs.jsonl'), 'utf8');
  return text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
}

it.each([
  [{}, 'send model "auto" to have one chosen'],
  [{ model: 'custom:any' }, 'leave model out to have one chosen'],
])('a call with images for a model that takes none is told what it has not done: %j', async (args, advice) => {
  const blind = { CUSTOM_API_URL: openai.url, CUSTOM_API_KEY: 'test-key', DEFAULT_MODEL: 'custom:any' };
  await start(['google'], blind);
  await writeFile(project.path('shot.png'), 'x');
  const { error } = await chat('What is it?', { images: ['shot.png'], ...args });
  expect(error.next).toContain(advice);
});

describe('a question about now', () => {
  it('is searched for by itself, and the reply names its sources', async () => {
    await start(['anthropic']);
    anthropic.byDefault({ answer: 'It rained.', finds: pages });
    const reply = await chat('What is the weather in Rome today?');
    expect(toolsOf(anthropic.requests[0]!)).toMatchObject([{ name: 'web_search', max_uses: 3 }]);
    expect(reply.citations).toEqual([
      { title: 'One', url: pages[0]!.url, snippet: 'It rained.', date: 'yesterday', provider: 'anthropic' },
    ]);
    expect(reply.metadata.routing_reason).toContain('search:');
    const told = (await crumbs()).find(({ type }) => type === 'route.plan');
    expect(told).toMatchObject({
      class: 'search',
      web_search: true,
      chosen: expect.arrayContaining([expect.stringContaining('anthropic:')]),
    });
  });

  it('is only searched for where the operator lets it, and as far', async () => {
    await start(['google'], { WEB_SEARCH: 'asked', WEB_SEARCH_MAX_RESULTS: '2' });
    await chat('What is the weather in Rome today?');
    await chat('What is the weather in Rome today?', { use_websearch: true });
    expect(google.requests.map(toolsOf)).toEqual([undefined, [{ googleSearch: {} }]]);
  });

  it('is never searched for with WEB_SEARCH=off', async () => {
    await start(['google'], { WEB_SEARCH: 'off' });
    const reply = await chat('What is the weather in Rome today?', { use_websearch: true });
    expect(google.requests.map(toolsOf)).toEqual([undefined]);
    expect(reply.isError).toBe(false);
  });

  it('is not searched for by a model that the call names, unless it says so', async () => {
    await start(['openai']);
    await chat('What is the weather in Rome today?', { model: 'gpt-5.2' });
    await chat('What is the weather in Rome today?', { model: 'gpt-5.2', use_websearch: 'true' });
    expect(openai.requests.map(toolsOf)).toEqual([undefined, [{ type: 'web_search', search_context_size: 'medium' }]]);
  });
});

describe('use_websearch', () => {
  it('of a model that cannot search is answered with a warning', async () => {
    await start(['openai']);
    const reply = await chat('Anything new?', { model: 'o3-mini', use_websearch: true });
    expect(reply.metadata.warnings).toEqual([expect.stringContaining('o3-mini cannot search the web')]);
    expect(openai.requests.map(toolsOf)).toEqual([undefined]);
  });

  it('goes to another model where the thread’s own cannot search, and says so', async () => {
    await start(['openai', 'google']);
    const first = await chat('Hello', { model: 'o3-mini' });
    const thread = first.continuation_offer.continuation_id;
    const reply = await chat('Anything new?', { continuation_id: thread, use_websearch: true });
    expect(reply.metadata.model_used).not.toBe('o3-mini');
    expect(reply.metadata.warnings).toEqual([expect.stringContaining('which cannot search the web')]);
  });

  it.each(['thinkdeep', 'analyze', 'debug', 'codereview'])('is taken by the expert of %s', async tool => {
    await start(['google']);
    const step = { step: 'Did the driver break?', step_number: 1, total_steps: 1, next_step_required: false };
    const args = { ...step, findings: 'It did.', relevant_files: ['a.ts'], use_assistant_model: true };
    await polylogue.call(tool, { ...args, use_websearch: true });
    expect(google.requests.map(toolsOf)).toEqual([[{ googleSearch: {} }]]);
  });

  it('is taken by every model of a panel, and is not what use_search asks for', async () => {
    await start(['google', 'openai']);
    await chat('Anything?', { use_search: true, model: 'gemini-2.5-flash' });
    expect(google.requests.map(toolsOf)).toEqual([undefined]);
    const models = [{ model: 'gemini-2.5-flash' }, { model: 'gpt-5.2' }];
    await polylogue.call('consensus', { prompt: 'Is it out?', models, use_websearch: true });
    for (const { requests } of [google, openai]) expect(requests.some(request => toolsOf(request))).toBe(true);
  });
});

describe('the tools of a thread’s requests', () => {
  it('stay as they are once its model could search, so that the vendor’s cache holds', async () => {
    await start(['anthropic']);
    anthropic.byDefault({ answer: 'Yes.', finds: pages });
    const first = await chat('What happened in Rome yesterday?');
    const thread = { continuation_id: first.continuation_offer.continuation_id };
    await chat('Explain the word.', { ...thread, absolute_file_paths: ['a.ts'] });
    await polylogue.restart();
    const third = await chat('And its plural?', thread);
    const [one, ...more] = anthropic.requests.map(toolsOf);
    expect(one).toBeDefined();
    expect(more).toEqual([one, one]);
    expect(new Set(anthropic.requests.map(({ parameters }) => parameters)).size).toBe(1);
    expect(third.metadata.warnings).toBeUndefined();
  });

  it('lose the search where the caller says no', async () => {
    await start(['anthropic']);
    const first = await chat('What happened in Rome yesterday?');
    const thread = { continuation_id: first.continuation_offer.continuation_id };
    await chat('Explain the word.', { ...thread, use_websearch: false });
    expect(anthropic.requests.map(request => toolsOf(request) !== undefined)).toEqual([true, false]);
  });

  it('are none for another model in the same thread', async () => {
    await start(['anthropic', 'openai']);
    const first = await chat('What happened in Rome yesterday?', { model: 'claude-sonnet-4-5', use_websearch: true });
    const thread = { continuation_id: first.continuation_offer.continuation_id };
    await chat('Explain the word.', { ...thread, model: 'gpt-5.2' });
    expect(openai.requests.map(toolsOf)).toEqual([undefined]);
  });
});

describe('a long prompt', () => {
  it('goes to a model that holds it, by the size of the named files', async () => {
    await start(['google', 'openai'], {
      OPENAI_ALLOWED_MODELS: 'gpt-4o',
      GOOGLE_ALLOWED_MODELS: 'gemini-2.5-flash',
      ROUTE_PREFER: 'quality',
    });
    const long = await chat('Sum it up', { absolute_file_paths: ['long.txt'] });
    expect(long.metadata).toMatchObject({
      model_used: 'gemini-2.5-flash',
      routing_reason: expect.stringContaining('long_context'),
    });
  });
});

describe('what the rules leave open', () => {
  const open = 'What are the current plans for the bridge?';

  it('is told apart by a small model, whose call is counted and whose answer is kept', async () => {
    await start(['google'], { GOOGLE_ALLOWED_MODELS: 'gemini-2.5-flash' });
    google.script({ answer: '{"class": "search"}' });
    const reply = await chat(open);
    expect(google.requests).toHaveLength(2);
    expect(google.requests.map(toolsOf)).toEqual([undefined, [{ googleSearch: {} }]]);
    expect(reply.metadata.routing_reason).toContain('a model took the question for one about now');
    await chat(open);
    expect(google.requests).toHaveLength(3);
    const told = await crumbs();
    expect(told.filter(({ type }) => type === 'model.attempt')).toHaveLength(3);
    expect(told.find(({ type }) => type === 'route.plan')).toMatchObject({
      classifier: { asked: 'google:gemini-2.5-flash', told: 'search' },
    });
  });

  it('is answered by the rules when the small model fails', async () => {
    await start(['google'], { GOOGLE_ALLOWED_MODELS: 'gemini-2.5-flash' });
    google.script({ fault: 'status', status: 400 });
    const reply = await chat(open);
    expect(reply).toMatchObject({ isError: false, content: 'Answer 1.' });
    expect(google.requests.map(toolsOf)).toEqual([undefined, undefined]);
  });

  it('is answered by the rules when the small model is late', async () => {
    const clock = manualClock();
    const env = { ...vendorEnv({ google: google.url }), GOOGLE_ALLOWED_MODELS: 'gemini-2.5-flash' };
    polylogue = await testProduct({ root: project.root, env, clock });
    google.script({ fault: 'hang_before_headers' });
    const pending = chat(open);
    while (google.requests.length === 0) await new Promise(resolve => setTimeout(resolve, 5));
    await clock.advance(3_100);
    expect(await pending).toMatchObject({ isError: false });
    await google.requests[0]!.aborted;
  });

  it('is not asked about with AI_MANAGER=rules', async () => {
    await start(['google'], { AI_MANAGER: 'rules' });
    await chat(open);
    expect(google.requests).toHaveLength(1);
    const told = (await crumbs()).find(({ type }) => type === 'route.plan');
    expect(told).toMatchObject({ tool: 'chat' });
    expect(told).not.toHaveProperty('classifier');
  });
});
