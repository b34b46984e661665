import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const openai = 'openai:gpt-4.1';
const anthropic = 'anthropic:claude-sonnet-4-5';
const files = { openai: 'q_openai_gpt-4.1.md', anthropic: 'q_anthropic_claude-sonnet-4-5.md' };
const tool = 'prompt_from_file_to_file';

let vendors: { openai: FakeVendor; anthropic: FakeVendor };
let project: TempProject;
let outside: TempProject;
let polylogue: TestProduct;

const asked = () =>
  Object.values(vendors).flatMap(({ requests }) => requests.filter(({ dialect }) => dialect !== 'models'));
const call = (args: Record<string, unknown>) => polylogue.call(tool, { file_path: 'q.txt', models: [openai], ...args });
const text = (path: string) => readFile(path, 'utf8');

async function start(env: Record<string, string> = {}) {
  const urls = { openai: vendors.openai.url, anthropic: vendors.anthropic.url };
  polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv(urls), POLYLOGUE_TOOLSETS: 'core,wrapper', ...env },
  });
}

beforeEach(async () => {
  const [openAi, claude] = await Promise.all([startOpenAi(), startAnthropic()]);
  vendors = { openai: openAi, anthropic: claude };
  openAi.byDefault({ answer: 'Paris, says OpenAI.' });
  claude.byDefault({ answer: 'Paris, says Anthropic.' });
  project = await tempProject({ 'q.txt': 'What is the capital of France?' });
  outside = await tempProject({ 'theirs.md': 'theirs' });
  await start();
});

afterEach(async () => {
  await polylogue.close();
  await Promise.all(Object.values(vendors).map(vendor => vendor.close()));
  await project.dispose();
  await outside.dispose();
});

describe('answers in files', () => {
  it('are one a model, named after the prompt, the provider and the model, in a folder beside the prompt', async () => {
    const reply = await call({ models: [openai, anthropic] });
    const paths = [files.openai, files.anthropic].map(name => project.path(`responses/${name}`));
    expect(reply).toMatchObject({ tool_name: tool, status: 'success', isError: false });
    expect(reply.result.files).toEqual(paths);
    expect(reply.result.responses).toMatchObject([
      { model: openai, requested: openai, file: paths[0] },
      { model: anthropic, requested: anthropic, file: paths[1] },
    ]);
    expect(JSON.stringify(reply)).not.toContain('Paris');
    expect(await Promise.all(paths.map(text))).toEqual(['Paris, says OpenAI.', 'Paris, says Anthropic.']);
    expect(await readdir(project.path('responses'))).toHaveLength(2);
  });

  it('go into the named directory, made where it is missing, with the named ending, by older names too', async () => {
    const { result } = await call({ abs_output_dir: project.path('a/b/c'), output_extension: '.txt' });
    expect(result.files).toEqual([project.path('a/b/c/q_openai_gpt-4.1.txt')]);
    const relative = await call({ output_dir: 'a/b', output_extension: 'json' });
    expect(relative.result.files).toEqual([project.path('a/b/q_openai_gpt-4.1.json')]);
  });

  it('of one model go to the one path that is named', async () => {
    const { result } = await call({ output_path: 'out/answer.markdown' });
    expect(result.files).toEqual([project.path('out/answer.markdown')]);
    expect(await text(project.path('out/answer.markdown'))).toBe('Paris, says OpenAI.');
  });

  it('of several models have no one path, and a path goes with no directory', async () => {
    for (const args of [
      { output_path: 'out.md', models: [openai, anthropic] },
      { output_path: 'out.md', output_dir: 'out' },
      { output_extension: '../x' },
      { output_extension: 'a/b' },
    ])
      expect((await call(args)).error).toMatchObject({ code: 'INVALID_INPUT_FORMAT' });
    expect(asked()).toHaveLength(0);
  });

  it('have names that every platform takes, and never one name for two', async () => {
    vendors.openai.byDefault({ answer: ({ body }) => JSON.stringify(body).match(/"effort":"(\w+)"/)?.[1] ?? 'plain' });
    await project.write('What: a *question*?.txt', 'Why?');
    const models = [openai, openai, 'openai:gpt-5:low', 'openai:gpt-5:high', 'openai:what/is:this'];
    const { result } = await call({ file_path: 'What: a *question*?.txt', models });
    const names = result.files.map((path: string) => basename(path));
    expect(names).toEqual([
      'What-a-question_openai_gpt-4.1.md',
      'What-a-question_openai_gpt-4.1-2.md',
      'What-a-question_openai_gpt-5_low.md',
      'What-a-question_openai_gpt-5_high.md',
      'What-a-question_openai_what-is-this_error.md',
    ]);
    const texts = await Promise.all(result.files.slice(0, 4).map(text));
    expect(texts).toEqual(['plain', 'plain', 'low', 'high']);
  });

  it('are error files for models that failed, and the others keep theirs', async () => {
    vendors.anthropic.byDefault({
      fault: 'status',
      status: 400,
      body: { type: 'error', error: { type: 'invalid_request_error', message: 'not today' } },
    });
    const { isError, result } = await call({ models: [anthropic, openai] });
    expect(isError).toBe(false);
    const [failed, answered] = result.files;
    expect(basename(failed)).toBe('q_anthropic_claude-sonnet-4-5_error.md');
    expect(await text(failed)).toMatch(/No answer of anthropic:claude-sonnet-4-5[\s\S]*API_ERROR: .*not today/);
    expect(result.responses[0]).toMatchObject({ file: failed, error: { code: 'API_ERROR' } });
    expect(await text(answered)).toBe('Paris, says OpenAI.');
  });

  it('are none where no model answered', async () => {
    const { isError, status, error, result } = await call({ models: ['openai:gpt-99', 'nope:x'] });
    expect({ isError, status }).toEqual({ isError: true, status: 'error' });
    expect(error.code).toBe('MODEL_NOT_FOUND');
    expect(result.responses).toHaveLength(2);
    expect(await readdir(project.root)).toEqual(['q.txt']);
  });
});

describe('what is there already', () => {
  it('stays: the new answer gets a number', async () => {
    await call({});
    vendors.openai.byDefault({ answer: 'Lyon.' });
    const second = await call({});
    const third = await call({});
    expect([second, third].map(({ result }) => basename(result.files[0]))).toEqual([
      'q_openai_gpt-4.1-2.md',
      'q_openai_gpt-4.1-3.md',
    ]);
    expect(second.result.responses[0].overwritten).toBeUndefined();
    expect(await text(project.path(`responses/${files.openai}`))).toBe('Paris, says OpenAI.');
    expect(await text(second.result.files[0])).toBe('Lyon.');
  });

  it('is replaced only when the call says so, and the reply says that it was', async () => {
    await call({});
    vendors.openai.byDefault({ answer: 'Lyon.' });
    const { result } = await call({ overwrite: true, models: [openai, anthropic] });
    expect(result.responses.map(({ overwritten }: Document) => overwritten)).toEqual([true, undefined]);
    expect(basename(result.files[0])).toBe(files.openai);
    expect(await text(result.files[0])).toBe('Lyon.');
  });

  it('at the one named path is refused before anybody is asked, unless the call says so', async () => {
    await project.write('answer.md', 'mine');
    const { error } = await call({ output_path: 'answer.md' });
    expect(error).toMatchObject({
      code: 'INVALID_INPUT_FORMAT',
      class: 'exists',
      next: expect.stringContaining('overwrite'),
    });
    expect(asked()).toHaveLength(0);
    expect(await text(project.path('answer.md'))).toBe('mine');
    const { result } = await call({ output_path: 'answer.md', overwrite: true });
    expect(result.responses[0]).toMatchObject({ file: project.path('answer.md'), overwritten: true });
    expect(await text(project.path('answer.md'))).toBe('Paris, says OpenAI.');
  });

  it('stays too when it appears while the model answers', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    vendors.openai.byDefault({ answer: 'Paris, says OpenAI.', when: promise });
    const call_ = call({ output_path: 'answer.md' });
    while (asked().length === 0) await new Promise(resolve => setTimeout(resolve, 5));
    await project.write('answer.md', 'mine');
    resolve();
    const { result } = await call_;
    expect(result.files).toEqual([project.path('answer-2.md')]);
    expect(await text(project.path('answer.md'))).toBe('mine');
  });

  it('is never a directory that is replaced', async () => {
    await mkdir(project.path(`responses/${files.openai}`), { recursive: true });
    for (const overwrite of [false, true]) {
      const { result } = await call({ overwrite });
      expect(basename(result.files[0])).toMatch(/^q_openai_gpt-4\.1-[23]\.md$/);
      expect(result.responses[0].overwritten).toBeUndefined();
    }
    await mkdir(project.path('dir.md'));
    expect((await call({ output_path: 'dir.md', overwrite: true })).error.code).toBe('SECURITY');
  });

  it('is replaced where it is a link, and what it leads to is left alone', async () => {
    await mkdir(project.path('responses'));
    const target = outside.path('theirs.md');
    await symlink(target, project.path(`responses/${files.openai}`));
    const kept = await call({});
    expect(basename(kept.result.files[0])).toBe('q_openai_gpt-4.1-2.md');
    expect(await readlink(project.path(`responses/${files.openai}`))).toBe(target);
    const replaced = await call({ overwrite: true });
    expect(replaced.result.responses[0].overwritten).toBe(true);
    expect((await lstat(project.path(`responses/${files.openai}`))).isFile()).toBe(true);
    expect(await text(target)).toBe('theirs');
  });
});

describe('the roots', () => {
  it('are not left: not by "..", an absolute path, a link, a link on the way or one that leads nowhere', async () => {
    await symlink(outside.root, project.path('link'));
    await symlink(outside.path('nothing-yet'), project.path('dangling'));
    await symlink(outside.path('theirs.md'), project.path('theirs.md'));
    await project.write('file', 'a file');
    const places = [
      { output_dir: '../elsewhere' },
      { output_dir: `${project.root}-sibling` },
      { output_dir: outside.root },
      { output_dir: 'link' },
      { output_dir: 'link/deeper' },
      { output_dir: 'dangling' },
      { output_dir: 'dangling/deeper' },
      { output_dir: 'file' },
      { output_dir: 'file/deeper' },
      { output_dir: '/etc' },
      { output_dir: 'a\0b' },
      { output_path: '../answer.md' },
      { output_path: outside.path('theirs.md'), overwrite: true },
      { output_path: 'link/theirs.md', overwrite: true },
      { output_path: 'theirs.md', overwrite: true },
    ];
    for (const place of places) expect([place, (await call(place)).error?.code]).toEqual([place, 'SECURITY']);
    expect(asked()).toHaveLength(0);
    expect(await readdir(outside.root)).toEqual(['theirs.md']);
    expect(await text(outside.path('theirs.md'))).toBe('theirs');
  });

  it('hold places that are not written all the same: secret files, and what belongs to git', async () => {
    await project.write('.env', 'KEY=1');
    for (const output_path of ['.env', 'keys/id_rsa', '.git/hooks/pre-commit', 'sub/.GIT/config'])
      expect((await call({ output_path, overwrite: true })).error.code).toBe('SECURITY');
    expect((await call({ output_dir: '.git/answers' })).error.code).toBe('SECURITY');
    expect(await text(project.path('.env'))).toBe('KEY=1');
    expect(asked()).toHaveLength(0);
  });

  it('hold the data folder of the server without letting anything be written there', async () => {
    await polylogue.close();
    await start({ POLYLOGUE_HOME: project.path('.home') });
    await mkdir(project.path('.home/clis'), { recursive: true });
    await symlink(project.path('.home'), project.path('alias'));
    const places = [
      { output_path: '.home/clis/evil.json' },
      { output_path: '.home/new/deeper.md' },
      { output_path: 'alias/clis/evil.json' },
      { output_dir: '.home/clis' },
      { output_dir: 'sub/../.home' },
    ];
    for (const place of places) expect([place, (await call(place)).error?.code]).toEqual([place, 'SECURITY']);
    expect(await readdir(project.path('.home/clis'))).toEqual([]);
    expect(asked()).toHaveLength(0);
  });

  it('are not left when the directory becomes a link while the model answers; the answer comes in the reply', async () => {
    vendors.openai.byDefault({ answer: 'Paris, says OpenAI.', delayMs: 80 });
    await mkdir(project.path('out'));
    const waiting = call({ output_dir: 'out' });
    while (asked().length === 0) await new Promise(resolve => setTimeout(resolve, 5));
    await project.remove('out');
    await symlink(outside.root, project.path('out'));
    const { status, result } = await waiting;
    expect(status).toBe('success');
    expect(result.files).toEqual([]);
    expect(result.responses[0]).toMatchObject({ response: 'Paris, says OpenAI.', file_error: { code: 'SECURITY' } });
    expect(await readdir(outside.root)).toEqual(['theirs.md']);
  });

  it('that can’t be written are told before anybody is asked', async () => {
    await polylogue.close();
    // A file system that nobody can write, root included.
    await start({ POLYLOGUE_ROOTS: `${project.root},/proc/self/fdinfo` });
    const { error } = await call({ output_dir: '/proc/self/fdinfo' });
    expect(error).toMatchObject({ code: 'STORAGE', next: expect.stringContaining('can be written') });
    expect(asked()).toHaveLength(0);
  });
});

it('is not offered by a read-only server, and prompt_from_file is', async () => {
  await polylogue.close();
  await start({ POLYLOGUE_READ_ONLY: '1' });
  expect((await call({})).error).toMatchObject({ code: 'SECURITY', class: 'read_only' });
  const listed = polylogue.product.host.list().map(({ name }) => name);
  expect(listed).toEqual(expect.arrayContaining(['prompt', 'prompt_from_file', 'list_models']));
  expect(listed).not.toContain('ceo_and_board');
  await writeFile(project.path('q.txt'), 'Why?');
  expect((await polylogue.call('prompt_from_file', { file: 'q.txt', models: [openai] })).status).toBe('success');
});
