import { readdir, readFile, stat, symlink } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { recordsOf, sealedFile } from '../threads/transfer/transfer-rig.ts';

let project: TempProject;
let outside: TempProject;
let polylogue: TestProduct;
let id: string;

const env = { POLYLOGUE_TOOLSETS: 'core,code,ops', POLYLOGUE_OFFLINE: 'true', DEFAULT_MODEL: 'offline-echo' };
const late = (kind: unknown) => kind === 'blob' || kind === 'end';
const exported = (args: Record<string, unknown>) => polylogue.call('export_thread', { continuation_id: id, ...args });
const imported = (args: Record<string, unknown>) => polylogue.call('import_thread', args);

beforeEach(async () => {
  project = await tempProject({ 'a.ts': 'const a = 1;\n', 'sub/.keep': '' });
  outside = await tempProject({ 'theirs.jsonl': '{}\n' });
  polylogue = await testProduct({ root: project.root, env });
  const reply = await polylogue.call('chat', { prompt: 'About the pelican', absolute_file_paths: ['a.ts'] });
  id = reply.continuation_offer.continuation_id;
});

afterEach(async () => {
  await polylogue.close();
  await project.dispose();
  await outside.dispose();
});

describe('export_thread', () => {
  it('puts a short thread into the reply', async () => {
    const reply = await exported({ format: 'md', continuation_id: 'last' });
    expect(reply).toMatchObject({ isError: false, status: 'success', continuation_id: id, format: 'md', turns: 2 });
    expect(reply.content).toContain('About the pelican');
    expect(reply.content).toContain('```ts\nconst a = 1;\n```');
  });

  it('writes a file for the user alone into the project, beside one of that name', async () => {
    const first = await exported({ output_path: 'out/talk.jsonl' });
    const second = await exported({ output_path: project.path('out/talk.jsonl') });
    expect([first.file, second.file]).toEqual([project.path('out/talk.jsonl'), project.path('out/talk-2.jsonl')]);
    expect(await readFile(first.file, 'utf8')).toBe(await readFile(second.file, 'utf8'));
    expect((await stat(first.file)).mode & 0o777).toBe(0o600);
    expect(await readdir(project.path('out'))).toHaveLength(2);
    expect(first).not.toHaveProperty('content');
    const page = await exported({ format: 'html', output_path: 'talk.html' });
    expect(await readFile(page.file, 'utf8')).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/);
  });

  it('asks for a path where the reply has no room', async () => {
    await project.write('big.txt', 'All work and no play makes a dull boy.\n'.repeat(4_000));
    await polylogue.call('chat', { prompt: 'x', absolute_file_paths: ['big.txt'], continuation_id: id });
    const reply = await exported({});
    expect(reply.error).toMatchObject({ code: 'LIMIT', class: 'size', next: expect.stringContaining('output_path') });
    expect((await exported({ output_path: 'big.jsonl' })).isError).toBe(false);
  });

  it.each(['../up.jsonl', '/etc/talk.jsonl', '.git/hooks/post-commit', '.env', 'link/talk.jsonl'])(
    'does not write to %s',
    async path => {
      await symlink(outside.root, project.path('link'));
      const before = await readdir(outside.root);
      const reply = await exported({ output_path: path });
      expect(reply.error).toMatchObject({ code: 'SECURITY' });
      expect(await readdir(outside.root)).toEqual(before);
    },
  );

  it('knows no thread of another owner', async () => {
    const reply = await polylogue.call('export_thread', { continuation_id: id }, { owner: 'bea' });
    expect(reply.error.code).toBe('THREAD_NOT_FOUND');
  });
});

describe('import_thread', () => {
  it('brings a thread back that any tool can go on with', async () => {
    const { file } = await exported({ output_path: 'talk.jsonl' });
    const whole = await readFile(file, 'utf8');
    expect((await imported({ file_path: 'talk.jsonl' })).error).toMatchObject({ class: 'exists' });
    await polylogue.call('threads', { action: 'delete', continuation_id: id, confirm: true });
    const reply = await imported({ file_path: 'talk.jsonl' });
    expect(reply).toMatchObject({ status: 'success', continuation_id: id, turns: 2, texts: 1 });
    expect((await exported({})).content).toBe(whole);
    const next = await polylogue.call('chat', { prompt: 'And then?', continuation_id: id });
    expect(next.metadata.history).toMatchObject({ turns: 2, sent: 2 });
    expect(next.isError).toBe(false);
  });

  it('makes a copy with as_new, which belongs to who imports it', async () => {
    await exported({ output_path: 'talk.jsonl' });
    const copy = await polylogue.call('import_thread', { file_path: 'talk.jsonl', as_new: true }, { owner: 'bea' });
    expect(copy.continuation_id).not.toBe(id);
    expect((await exported({ continuation_id: copy.continuation_id })).error.code).toBe('THREAD_NOT_FOUND');
    const read = { action: 'read', continuation_id: copy.continuation_id };
    expect((await polylogue.call('threads', read, { owner: 'bea' })).turns).toBe(2);
  });

  it('imports under a new id where another owner has a thread of that id', async () => {
    await exported({ output_path: 'talk.jsonl' });
    const reply = await polylogue.call('import_thread', { file_path: 'talk.jsonl' }, { owner: 'bea' });
    expect(reply).toMatchObject({ status: 'success', turns: 2 });
    expect(reply.continuation_id).not.toBe(id);
    expect((await exported({})).isError).toBe(false);
  });

  it.each([
    ['no texts', { toString: 1 }],
    ['no lists', 'x'],
    ['lists of nothing', [{}, null, [{ valueOf: 1 }]]],
  ])('goes on with workflows that were written by somebody who makes %s of them', async (_what, odd) => {
    const names = ['request', 'evidence', 'confidence', 'relevantFiles', 'images', 'heard', 'files', 'totalSteps'];
    const fields = [
      'focus_areas',
      'path',
      'compare_to',
      'relevant_files',
      'severity_filter',
      'review_type',
      'trace_mode',
    ];
    const tools = ['codereview', 'consensus', 'docgen', 'planner', 'precommit', 'refactor', 'thinkdeep', 'tracer'];
    const records = recordsOf((await exported({})).content);
    const state = {
      ...Object.fromEntries(names.map(name => [name, odd])),
      ...{ lastStep: 1, proposal: 'x', models: [{ model: odd }] },
      hypotheses: [{ step: odd, hypothesis: odd, confidence: odd }],
      settings: Object.fromEntries(fields.map(name => [name, odd])),
      kept: { entries: [{ step: odd, text: odd, revisedBy: [odd] }], scope: odd, documented: [odd], claimedDone: odd },
    };
    const states = tools.map(tool => ({ kind: 'workflow', tool, state }));
    await project.write(
      'odd.jsonl',
      sealedFile([
        ...records.filter(({ kind }) => !late(kind)),
        ...states,
        ...records.filter(({ kind }) => late(kind)),
      ]),
    );
    const copy = await imported({ file_path: 'odd.jsonl', as_new: true });
    expect(copy.isError).toBe(false);
    for (const tool of tools) {
      const step = { step: 's', step_number: 2, total_steps: 2, next_step_required: false, findings: 'f' };
      const reply = await polylogue.call(tool, { ...step, continuation_id: copy.continuation_id });
      expect([tool, reply.error?.class]).not.toEqual([tool, 'bug']);
    }
  });

  it('reads nothing outside the project, no folder and no file that is not there', async () => {
    expect((await imported({ file_path: outside.path('theirs.jsonl') })).error).toMatchObject({ code: 'SECURITY' });
    expect((await imported({ file_path: 'sub' })).error).toMatchObject({ code: 'SECURITY' });
    expect((await imported({ file_path: 'gone.jsonl' })).error).toMatchObject({ code: 'INVALID_INPUT_FORMAT' });
    expect((await imported({ file_path: 'a.ts' })).error.message).toContain('no thread');
  });
});

describe('on a read-only server', () => {
  it('a thread can be read as a file, and none is written or imported', async () => {
    await polylogue.close();
    polylogue = await testProduct({ root: project.root, env: { ...env, POLYLOGUE_READ_ONLY: 'true' } });
    const names = polylogue.product.host.list().map(({ name }) => name);
    expect(names).toContain('export_thread');
    expect(names).not.toContain('import_thread');
    const { id: own } = { id: (await polylogue.call('chat', { prompt: 'x' })).continuation_offer.continuation_id };
    const reply = await exported({ continuation_id: own, format: 'md', output_path: 'talk.md' });
    expect(reply.content).toContain('# x');
    expect(await readdir(project.root)).not.toContain('talk.md');
  });
});
