import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { clockAhead, type McpSession, startSession } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

/** Takes 40 tokens, and says so only when it is sent more. */
let narrow: FakeVendor;
let openAi: FakeVendor;
let anthropic: FakeVendor;
let project: TempProject;
let homes: TempProject;
let keys: Record<string, string>;
let session: McpSession;

const custom = (vendor: FakeVendor, model: string) => ({
  CUSTOM_API_URL: vendor.url,
  CUSTOM_API_KEY: 'test-key',
  CUSTOM_MODEL_NAME: model,
});
const start = (name: string, env: Record<string, string>, nodeArgs: string[] = []) =>
  startSession({ root: project.root, home: homes.path(name), env, nodeArgs });

beforeAll(async () => {
  [narrow, openAi, anthropic] = await Promise.all([startOpenAi({ window: 40 }), startOpenAi(), startAnthropic()]);
  project = await tempProject({ 'src/a.ts': 'export const a = 1;\n', '.env': 'WORD=1\n' });
  homes = await tempProject();
  keys = { ...vendorEnv({ openai: openAi.url, anthropic: anthropic.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  session = await start('whole', { ...keys, ...custom(narrow, 'narrow'), MAX_NAMED_FILES: '3' });
});

afterAll(async () => {
  await session.close();
  await Promise.all([openAi, anthropic, narrow].map(vendor => vendor.close()));
  await Promise.all([project.dispose(), homes.dispose()]);
});

/** Requests to models; listings are free. */
const paid = () =>
  [openAi, anthropic, narrow].flatMap(({ requests }) => requests).filter(({ dialect }) => dialect !== 'models').length;

let before: number;
beforeEach(() => {
  before = paid();
});
const nobodyWasAsked = () => expect(paid()).toBe(before);

const rpcCodes: Record<string, number> = {
  SECURITY: -32001,
  API_ERROR: -32603,
  LIMIT: -32603,
  STORAGE: -32000,
  CONFIG: -32000,
};

/** The one shape of every error; answers the error itself. */
function errorOf(reply: Document, code: string, kind: string, tool = 'chat'): Document {
  expect(reply).toMatchObject({ isError: true, status: 'error', tool_name: tool, error: { code, class: kind } });
  const { error, req_id } = reply;
  expect(req_id).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  expect(reply.metadata).toMatchObject({ tool_name: tool, req_id });
  expect(error.rpc_code).toBe(rpcCodes[code] ?? -32602);
  expect(error.message.length).toBeGreaterThan(10);
  expect(error.next.length).toBeGreaterThan(10);
  expect(typeof error.retryable).toBe('boolean');
  expect(JSON.stringify(reply)).not.toContain('test-key');
  return error;
}

const chat = (args: Record<string, unknown> = {}, by = session) => by.call('chat', { prompt: 'Hello.', ...args });
const step = { step: 'Look.', step_number: 1, total_steps: 1, next_step_required: false, findings: 'Nothing yet.' };

describe('what the caller got wrong costs nothing', () => {
  it.each<[string, string, Record<string, unknown>, string, string[] | undefined]>([
    ['a value of the wrong type', 'chat', { absolute_file_paths: [{ path: 'a' }] }, 'absolute_file_paths.0', undefined],
    ['a number that is none', 'debug', { ...step, step_number: 'one' }, 'step_number', undefined],
    ['an unknown choice', 'analyze', { ...step, confidence: 'sure' }, 'confidence', ['certain', 'low']],
    ['a misspelt field', 'chat', { modell: 'gpt-5' }, 'modell', ['model']],
    ['a malformed continuation_id', 'chat', { continuation_id: 'thread-1' }, 'continuation_id', ['last']],
    ['an unknown suffix', 'chat', { model: 'gpt-5:ultra' }, 'model', [':high', ':low']],
    [
      'a malformed continuation_id of a step',
      'debug',
      { ...step, continuation_id: 'thread-1' },
      'continuation_id',
      ['last'],
    ],
  ])('INVALID_INPUT_FORMAT for %s', async (_what, tool, args, field, allowed) => {
    const reply = await session.call(tool, tool === 'chat' ? { prompt: 'Hello.', ...args } : args);
    const error = errorOf(reply, 'INVALID_INPUT_FORMAT', 'validation', tool);
    expect(error.validation_errors[0].field).toBe(field);
    if (allowed) expect(error.validation_errors[0].allowed).toEqual(expect.arrayContaining(allowed));
    nobodyWasAsked();
  });

  it.each<[string, Record<string, unknown>, string[]]>([
    ['chat', {}, ['prompt']],
    ['debug', { step: 'Look.' }, ['step_number', 'total_steps', 'next_step_required', 'findings']],
    ['analyze', step, ['relevant_files']],
    ['threads', {}, ['action']],
    ['threads', { action: 'read' }, ['continuation_id']],
    ['threads', { action: 'search' }, ['query']],
  ])('MISSING_PARAMETER names what %s %j lacks', async (tool, args, fields) => {
    const error = errorOf(await session.call(tool, args), 'MISSING_PARAMETER', 'validation', tool);
    expect(error.validation_errors.map(({ field }: Document) => field)).toEqual(fields);
    for (const field of fields) expect(`${error.message} ${error.next}`).toContain(field);
    nobodyWasAsked();
  });

  it('TOOL_NOT_FOUND names the nearest tools', async () => {
    const error = errorOf(await session.call('chta', { prompt: 'Hello.' }), 'TOOL_NOT_FOUND', 'validation', 'chta');
    expect(error.validation_errors[0].allowed).toHaveLength(3);
    expect(error.validation_errors[0].allowed[0]).toBe('chat');
  });

  it('PROVIDER_NOT_FOUND names those that are configured', async () => {
    const error = errorOf(await chat({ model: 'bedrock:no-such-thing' }), 'PROVIDER_NOT_FOUND', 'unknown');
    for (const id of ['openai', 'anthropic', 'custom']) expect(error.next).toContain(id);
    nobodyWasAsked();
  });

  it('MODEL_NOT_FOUND suggests three models that would work', async () => {
    const error = errorOf(await chat({ model: 'gpt-5-ultramax' }), 'MODEL_NOT_FOUND', 'unknown');
    expect(error.data.suggestions).toHaveLength(3);
    for (const name of error.data.suggestions) expect(error.next).toContain(name);
    expect(error.data.suggestions.every((name: string) => name.startsWith('gpt-'))).toBe(true);
    nobodyWasAsked();
  });

  it('THREAD_NOT_FOUND for unknown and deleted threads, and for "last" where there is none', async () => {
    const empty = await start('empty', keys);
    errorOf(await chat({ continuation_id: 'last' }, empty), 'THREAD_NOT_FOUND', 'validation');
    await empty.close();
    const unknown = randomUUID();
    const error = errorOf(await chat({ continuation_id: unknown }), 'THREAD_NOT_FOUND', 'validation');
    expect(error.message).toContain(unknown);
    nobodyWasAsked();
    const continuation_id = (await chat()).continuation_offer.continuation_id;
    await session.call('threads', { action: 'delete', continuation_id, confirm: true });
    const deleted = errorOf(await chat({ continuation_id }), 'THREAD_NOT_FOUND', 'validation');
    expect(deleted.message).toContain('deleted');
    expect(paid()).toBe(before + 1);
  });
});

describe('what is refused or does not fit costs nothing', () => {
  it.each([
    ['outside of the project', '/etc/passwd', 'outside_roots'],
    ['with secrets', '.env', 'secret'],
  ])('SECURITY for a file %s', async (_what, path, why) => {
    const error = errorOf(await chat({ absolute_file_paths: [path] }), 'SECURITY', 'files');
    expect(error.validation_errors[0].error).toBe(`${why}: ${path}`);
    nobodyWasAsked();
  });

  it('SECURITY for deleting without a confirmation, and the thread stays', async () => {
    const continuation_id = (await chat()).continuation_offer.continuation_id;
    const reply = await session.call('threads', { action: 'delete', continuation_id });
    expect(errorOf(reply, 'SECURITY', 'confirmation', 'threads').next).toContain('confirm: true');
    errorOf(await session.call('threads', { action: 'delete_all' }), 'SECURITY', 'confirmation', 'threads');
    const read = await session.call('threads', { action: 'read', continuation_id });
    expect(read).toMatchObject({ isError: false, turns: 2 });
  });

  it('LIMIT with the numbers: too many files, a text that is too long', async () => {
    const files = errorOf(await chat({ absolute_file_paths: ['a', 'b', 'c', 'd'] }), 'LIMIT', 'files');
    expect(files.data).toEqual({ named: 4, limit: 3 });
    const long = await chat({ prompt: 'x'.repeat(60_001) });
    // The one status of its own that an error has: callers know it as the word to send a file instead.
    expect(long).toMatchObject({ status: 'resend_prompt', metadata: { prompt_size: 60_001 } });
    const text = errorOf({ ...long, status: 'error' }, 'LIMIT', 'size');
    expect(text.message).toContain('60001');
    nobodyWasAsked();
  });
});

describe('what a vendor failed at', () => {
  it('API_ERROR auth, once, with the variable to set; the key is not tried again', async () => {
    const other = await start('refused', keys);
    openAi.script({ fault: 'status', status: 401 });
    const error = errorOf(await chat({}, other), 'API_ERROR', 'auth');
    expect(error).toMatchObject({ status: 401, provider: 'openai', model: 'gpt-5-mini', attempt: 1, retryable: false });
    expect(error.next).toContain('OPENAI_API_KEY');
    const again = errorOf(await chat({}, other), 'API_ERROR', 'auth');
    expect(again.next).toMatch(/OPENAI_API_KEY.*doctor/);
    expect(paid()).toBe(before + 1);
    await other.close();
  });

  it('API_ERROR rate_limit with the wait that the vendor named', async () => {
    const other = await start('too much', keys);
    openAi.script({ fault: 'status', status: 429, headers: { 'retry-after': '7200' } });
    const error = errorOf(await chat({}, other), 'API_ERROR', 'rate_limit');
    expect(error).toMatchObject({ status: 429, retryable: true, retry_after_s: 7_200 });
    const again = errorOf(await chat({}, other), 'API_ERROR', 'rate_limit');
    expect(again.retry_after_s).toBeGreaterThan(250);
    expect(paid()).toBe(before + 1);
    await other.close();
  });

  it('API_ERROR bad_upstream after three attempts, and the thread can go on', async () => {
    const down = { fault: 'status', status: 503 } as const;
    anthropic.script(down, down, down);
    const reply = await chat({ model: 'claude-sonnet-4-5' });
    const error = errorOf(reply, 'API_ERROR', 'bad_upstream');
    expect(error).toMatchObject({ status: 503, provider: 'anthropic', attempt: 3, retryable: true });
    expect(paid()).toBe(before + 3);
    const next = await chat({ continuation_id: reply.continuation_id });
    expect(next).toMatchObject({ isError: false, continuation_offer: { continuation_id: reply.continuation_id } });
  });

  it('API_ERROR content_filter and context_length, once each', async () => {
    openAi.script({ answer: '', finish: 'content_filter' });
    errorOf(await chat(), 'API_ERROR', 'content_filter');
    const error = errorOf(await chat({ model: 'custom:narrow' }), 'API_ERROR', 'context_length');
    expect(error).toMatchObject({ status: 400, provider: 'custom', retryable: false });
    expect(paid()).toBe(before + 2);
  });

  it('claims no finished work when the expert fails, and says where it is kept', async () => {
    openAi.script({ answer: '', finish: 'content_filter' });
    const reply = await session.call('analyze', { ...step, relevant_files: ['src/a.ts'] });
    expect(reply).toMatchObject({ status: 'error', isError: true, content_type: 'text', tool_name: 'analyze' });
    expect(Object.keys(reply)).not.toContain('analysis_complete');
    expect(Object.keys(reply)).not.toContain('complete_analysis');
    expect(reply.content).toContain(reply.error.next);
    expect(reply.continuation_offer.continuation_id).toBe(reply.continuation_id);
  });
});

describe('what the operator set', () => {
  it('restricts models, divides a small window, ends a call in time, and lets threads expire', async () => {
    const env = {
      ...keys,
      ...custom(openAi, 'tiny'),
      OPENAI_ALLOWED_MODELS: 'gpt-5-mini, gpt-4o',
      CUSTOM_CONTEXT_WINDOW: '1024',
      CALL_TIMEOUT_SECONDS: '1',
      CONVERSATION_TIMEOUT_HOURS: '0.01',
    };
    const tight = await start('tight', env);
    const restricted = errorOf(await chat({ model: 'gpt-5' }, tight), 'MODEL_NOT_FOUND', 'restricted');
    expect(restricted.next).toContain(restricted.data.best);

    const small = await chat({ model: 'custom:tiny', prompt: 'word '.repeat(2_000) }, tight);
    const { data } = errorOf(small, 'LIMIT', 'tokens');
    expect(data.window).toBe(1_024);
    expect(data.answer + data.reserved).toBeGreaterThan(data.window);
    nobodyWasAsked();

    const first = await chat({}, tight);
    openAi.script({ fault: 'hang_before_headers' });
    const began = performance.now();
    const late = errorOf(await chat({ model: 'gpt-4o' }, tight), 'API_ERROR', 'timeout');
    expect(performance.now() - began).toBeLessThan(20_000);
    expect(late.data).toEqual({ clock: 'total', limitMs: 1_000 });
    expect(late).toMatchObject({
      message: expect.stringContaining('CALL_TIMEOUT_SECONDS'),
      next: expect.stringMatching(/^Raise CALL_TIMEOUT_SECONDS/),
    });
    await openAi.requests.at(-1)!.aborted;
    await tight.close();

    const later = await start('tight', env, clockAhead(3_600_000));
    const { continuation_id } = first.continuation_offer;
    const asked = paid();
    const expired = errorOf(await chat({ continuation_id }, later), 'THREAD_EXPIRED', 'validation');
    expect(expired.next).toContain('CONVERSATION_TIMEOUT_HOURS');
    expect(paid()).toBe(asked);
    await later.close();
  });

  it('STORAGE when threads can’t be kept: nobody is paid for an answer that would be lost', async () => {
    await mkdir(homes.path('blocked/threads.sqlite'), { recursive: true });
    const blocked = await start('blocked', keys);
    const error = errorOf(await chat({}, blocked), 'STORAGE', 'unavailable');
    expect(error.message).toContain(homes.path('blocked/threads.sqlite'));
    const pause = await blocked.call('debug', { ...step, total_steps: 2, next_step_required: true });
    errorOf(pause, 'STORAGE', 'unavailable', 'debug');
    nobodyWasAsked();
    expect((await blocked.call('listmodels')).isError).toBe(false);
    await blocked.close();
  });

  it('CONFIG without any key: which variables to set, and how to try it without', async () => {
    const bare = await start('bare', {});
    const { next } = errorOf(await chat({}, bare), 'CONFIG', 'no_provider');
    for (const word of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'CUSTOM_API_URL', '--offline'])
      expect(next).toContain(word);
    errorOf(await chat({ model: 'gpt-5' }, bare), 'CONFIG', 'no_provider');
    const analysis = await bare.call('analyze', { ...step, relevant_files: ['src/a.ts'] });
    expect(analysis).toMatchObject({ isError: false, status: 'local_work_complete', analysis_complete: true });
    expect((await bare.call('version')).isError).toBe(false);
    await bare.close();
  });
});

describe('what hosts add and models slip in', () => {
  it('is understood: nulls, empty strings, lists and numbers as text, fields of the host', async () => {
    const reply = await chat({
      model: null,
      continuation_id: '',
      absolute_file_paths: '["src/a.ts"]',
      thinking_mode: '',
      toolCallId: 'call_1',
    });
    expect(reply).toMatchObject({ isError: false, metadata: { model_used: 'gpt-5-mini' } });
    expect(reply.metadata.files.embedded).toEqual([project.path('src/a.ts')]);
    expect(reply.metadata.warnings).toEqual([expect.stringContaining('toolCallId')]);

    const slip = {
      ...step,
      step_number: '1',
      total_steps: '2',
      next_step_required: 'true',
      relevant_files: 'src/a.ts',
    };
    const pause = await session.call('analyze', slip);
    expect(pause).toMatchObject({ isError: false, step_number: 1, analysis_status: { relevant_files: 1 } });

    const renamed = await chat({ prompt: undefined, question: 'Older name?', files: ['src/a.ts'] });
    expect(renamed).toMatchObject({ isError: false });
    expect(openAi.requests.at(-1)!.messages.some(({ text }) => text.includes('Older name?'))).toBe(true);
  });
});
