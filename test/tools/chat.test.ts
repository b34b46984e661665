import { readFile, symlink, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

async function start(env: Record<string, string> = {}) {
  polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5.2', ...env },
  });
}

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'shot.png': png, 'a.ts': 'export const a = 1;\n', 'notes.txt': 'no picture' });
});

afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const chat = (args: Record<string, unknown>) => polylogue.call('chat', { prompt: 'Look.', ...args });
const bodies = () => vendor.requests.map(request => JSON.stringify(request.body));
const last = () =>
  vendor.requests
    .at(-1)!
    .messages.map(message => message.text)
    .join('\n');

describe('images', () => {
  it('are shown by path and by data URL, and stay in the conversation', async () => {
    await start();
    const data = `data:image/png;base64,${png.toString('base64')}`;
    const first = await chat({ images: ['shot.png', data] });
    expect(first.isError, JSON.stringify(first.error)).toBe(false);
    await chat({ continuation_id: first.continuation_offer.continuation_id });
    for (const body of bodies()) expect(body.split('input_image').length - 1).toBe(2);
  });

  it('that are none are named, by what they are and not by their name', async () => {
    await start();
    await project.write('fake.png', 'text all the same');
    const reply = await chat({ images: ['shot.png', 'fake.png', '/etc/hostname'] });
    expect(reply.status).toBe('partial');
    expect(reply.metadata.files.skipped.map((skip: { code: string }) => skip.code)).toEqual([
      'binary',
      'outside_roots',
    ]);
  });

  it('none of which can be read end the call before a model is paid', async () => {
    await start();
    expect((await chat({ images: ['notes.txt'] })).error).toMatchObject({
      code: 'INVALID_INPUT_FORMAT',
      validation_errors: [{ field: 'images' }],
    });
    const { error } = await chat({ images: ['https://example.org/shot.png'] });
    expect(error.message).toContain('https://example.org/shot.png: Images are not fetched');
    expect((await chat({ images: Array(6).fill('shot.png') })).error.code).toBe('LIMIT');
    expect(vendor.requests).toEqual([]);
  });

  it('that the named model can not see are refused before it is paid', async () => {
    await start({ CUSTOM_API_URL: vendor.url, CUSTOM_API_KEY: 'test-key', CUSTOM_MODEL_NAME: 'blind' });
    const reply = await chat({ images: ['shot.png'], model: 'custom:blind' });
    expect(reply.isError).toBe(true);
    expect(reply.error.next).toBeTruthy();
    expect(vendor.requests.filter(request => request.dialect !== 'models')).toEqual([]);
  });
});

/** The operator lets it. */
const writing = { WRITE_GENERATED_CODE: 'on' };

describe('generated code', () => {
  const answer =
    'I wrote it.\n<GENERATED-CODE>\n1. Add the file.\n<NEWFILE: b.ts>\nexport const b = 2;\n</NEWFILE>\n</GENERATED-CODE>\nThen build.';

  it('is put into a file where the caller asked for it, and leaves the reply', async () => {
    await start(writing);
    vendor.byDefault({ answer });
    const reply = await chat({ working_directory_absolute_path: project.root });
    const path = project.path('polylogue_generated.code');
    expect(await readFile(path, 'utf8')).toContain('export const b = 2;');
    expect(reply.content).toContain('I wrote it.\n\nThen build.');
    expect(reply.content).not.toContain('export const b');
    expect(reply.generated_code).toMatchObject({ path, replaced: false });
    expect(last()).toContain('<GENERATED-CODE>');
  });

  it('says when an older file was replaced, and never writes through a link', async () => {
    await start(writing);
    vendor.byDefault({ answer });
    const outside = await tempProject({ 'target.txt': 'untouched' });
    await symlink(outside.path('target.txt'), project.path('polylogue_generated.code'));
    const reply = await chat({ working_directory_absolute_path: project.root });
    expect(reply.generated_code.replaced).toBe(true);
    expect(reply.content).toContain('replaced');
    expect(await readFile(outside.path('target.txt'), 'utf8')).toBe('untouched');
    await outside.dispose();
  });

  it('stays in the reply when no directory was given', async () => {
    await start(writing);
    vendor.byDefault({ answer });
    const reply = await chat({});
    expect(reply.content).toContain('export const b = 2;');
    expect(last()).not.toContain('<GENERATED-CODE>');
  });

  it('has no place outside the roots: refused before a model is paid', async () => {
    await start(writing);
    const reply = await chat({ working_directory_absolute_path: '/tmp' });
    expect(reply.error.code).toBe('SECURITY');
    expect(vendor.requests).toEqual([]);
  });

  it('stays in the reply where the operator does not let it be written, which says where it would be', async () => {
    await start();
    vendor.byDefault({ answer });
    for (const directory of [project.root, '/nowhere']) {
      const reply = await chat({ working_directory_absolute_path: directory });
      const path = `${directory}/polylogue_generated.code`;
      expect(reply).toMatchObject({ isError: false, generated_code: { path, written: false } });
      expect(reply.content.startsWith(answer)).toBe(true);
      expect(reply.content).toContain('WRITE_GENERATED_CODE');
      await expect(readFile(path)).rejects.toThrow('ENOENT');
    }
    // Its older name.
    const older = await chat({ working_directory: project.root });
    expect([older.generated_code.written, older.metadata.warnings]).toEqual([false, undefined]);
    // Without a directory nothing is said of files.
    expect((await chat({})).generated_code).toBeUndefined();
  });
});

describe('a question', () => {
  it('may come as prompt.txt, which is then no file of the conversation', async () => {
    await start();
    await project.write('prompt.txt', 'The real question, which is long.');
    for (const prompt of ['', '  ']) {
      await chat({ prompt, absolute_file_paths: ['prompt.txt', 'a.ts'] });
      expect(last()).toContain('The real question, which is long.');
      expect(last()).not.toContain('prompt.txt');
      expect(last()).toContain('export const a = 1;');
    }
  });

  it('is never replaced by a file that bears that name', async () => {
    await start();
    await project.write('prompt.txt', 'You are a pirate.');
    await project.write('bots/prompt.txt', 'You are a judge.');
    for (const files of [['prompt.txt'], ['bots/prompt.txt', 'a.ts']]) {
      await chat({ prompt: 'Is this prompt clear?', absolute_file_paths: files });
      expect(last()).toContain('Is this prompt clear?');
      expect(last()).toContain('You are a');
      expect(last()).toContain('prompt.txt');
    }
  });

  it.each([[[]], [['a.ts']], [['gone/prompt.txt']], [['empty/prompt.txt']]])('is missed with %j', async files => {
    await start();
    await project.write('empty/prompt.txt', ' ');
    const reply = await chat({ prompt: '', absolute_file_paths: files });
    expect(reply.error).toMatchObject({ code: 'MISSING_PARAMETER', next: expect.stringContaining('prompt.txt') });
    expect(vendor.requests).toEqual([]);
  });

  it('that is too long for a text field is to be sent again as prompt.txt', async () => {
    await start();
    const reply = await chat({ prompt: 'x'.repeat(60_001) });
    expect(reply).toMatchObject({
      isError: true,
      status: 'resend_prompt',
      error: { code: 'LIMIT' },
      metadata: { prompt_size: 60_001, limit: 60_000 },
    });
    expect(reply.content).toContain('prompt.txt');
    expect(vendor.requests).toEqual([]);
  });

  it('with files of which none fits is code_too_large, with the numbers', async () => {
    await start({
      CUSTOM_API_URL: vendor.url,
      CUSTOM_API_KEY: 'test-key',
      CUSTOM_MODEL_NAME: 'tiny',
      CUSTOM_CONTEXT_WINDOW: '8192',
    });
    await project.write('wide.txt', `${'word '.repeat(40_000)}\n`);
    const reply = await chat({ model: 'custom:tiny', absolute_file_paths: ['wide.txt'] });
    expect(reply).toMatchObject({
      isError: true,
      status: 'code_too_large',
      metadata: { file_count: 1, model_context_window: 8192, model_name: 'tiny' },
    });
  });

  it('gets a special status of the model as the reply’s own', async () => {
    await start();
    vendor.byDefault({
      answer: '{"status":"files_required_to_continue","mandatory_instructions":"x","files_needed":["b.ts"]}',
    });
    expect(await chat({})).toMatchObject({ status: 'files_required_to_continue', content_type: 'json' });
  });
});

describe('an answer cut at its limit', () => {
  it('is continued once, and comes as one', async () => {
    await start();
    vendor.script({ answer: 'The first half and', finish: 'length' }, { answer: ' the second half.' });
    const reply = await chat({});
    expect(reply).toMatchObject({ status: 'continuation_available', content: 'The first half and the second half.' });
    expect(reply.metadata.warnings).toContain('The answer was cut at its limit and continued once.');
    expect(vendor.requests).toHaveLength(2);
  });

  it('is partial when it is cut again', async () => {
    await start();
    vendor.byDefault({ answer: 'and on ', finish: 'length' });
    const reply = await chat({});
    expect(reply).toMatchObject({ status: 'partial', content: 'and on and on ' });
    expect(vendor.requests).toHaveLength(2);
  });
});

it('keeps what it replaced out of the project when nothing was generated', async () => {
  await start();
  await writeFile(project.path('keep.txt'), 'kept');
  await chat({ working_directory_absolute_path: project.root });
  await expect(readFile(project.path('polylogue_generated.code'))).rejects.toThrow('ENOENT');
});

describe('an answer that Anthropic ended', () => {
  it('is not continued where the window is full, or a search was paused', async () => {
    const anthropic = await startAnthropic();
    await start({ ...vendorEnv({ anthropic: anthropic.url }), DEFAULT_MODEL: 'claude-sonnet-4-5' });
    for (const finish of ['full', 'pause'] as const) {
      anthropic.script({ answer: 'As far as it went', finish });
      const before = anthropic.requests.length;
      const reply = await chat({});
      expect(reply).toMatchObject({ status: 'partial', content: 'As far as it went' });
      expect(reply.metadata.warnings.join()).toMatch(finish === 'full' ? /is full/ : /paused its search/);
      expect(anthropic.requests).toHaveLength(before + 1);
    }
    await anthropic.close();
  });
});
