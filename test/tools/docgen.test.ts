import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { step } from './workflow-rig.ts';

let project: TempProject;
let polylogue: TestProduct;

beforeEach(async () => {
  project = await tempProject({
    'src/one.ts': 'export const one = 1;\n',
    'src/deep/two.py': 'two = 2\n',
    'src/notes.md': 'no source\n',
    'src/one.test.ts': 'it("is no file to document")\n',
    'src/three.go': 'package three\n',
    'other.ts': 'export const other = 0;\n',
  });
  // No key of any vendor: this tool needs none.
  polylogue = await testProduct({ root: project.root });
});
afterEach(async () => {
  await polylogue.close();
  await project.dispose();
});

const call = (args: Record<string, unknown>) => polylogue.call('docgen', args);
const counts = ({ documentation_analysis_status: { num_files_documented, total_files_to_document } }: Document) => [
  num_files_documented,
  total_files_to_document,
];
const begin = (more: Record<string, unknown> = {}) => call(step(1, 4, { relevant_files: ['src'], ...more }));

describe('docgen', () => {
  it('counts the source files itself, goes through them one by one, and ends when all are done', async () => {
    let reply = await begin();
    expect(reply).toMatchObject({ status: 'pause_for_documentation_analysis', isError: false });
    expect(counts(reply)).toEqual([0, 3]);
    expect(reply.files_to_document.map((path: string) => path.split('/').at(-1)).sort()).toEqual([
      'one.ts',
      'three.go',
      'two.py',
    ]);
    const { continuation_id } = reply;
    for (const [index, path] of ['src/one.ts', 'src/deep/two.py', 'src/three.go'].entries()) {
      reply = await call(step(index + 2, 9, { continuation_id, relevant_files: [path] }));
      expect(counts(reply)).toEqual([index + 1, 3]);
      expect(JSON.stringify(reply.files_to_document ?? [])).not.toContain(path);
    }
    const last = await call(step(5, 5, { continuation_id }));
    expect(last).toMatchObject({ status: 'documentation_analysis_complete', documentation_analysis_complete: true });
    expect(last.files_to_document).toBeUndefined();
  });

  it('expects no documentation of a file that is gone', async () => {
    const { continuation_id } = await begin({ total_files_to_document: 3 });
    await project.remove('src/three.go');
    const reply = await call(step(2, 4, { continuation_id, relevant_files: ['src/one.ts'] }));
    expect(counts(reply)).toEqual([1, 2]);
    expect(JSON.stringify(reply)).not.toContain('three.go');
    const done = { continuation_id, relevant_files: ['src/deep/two.py'], total_files_to_document: 2 };
    expect(await call(step(3, 3, done))).toMatchObject({ status: 'documentation_analysis_complete' });
  });

  it('refuses an early end with what is left, also against the caller’s own smaller total', async () => {
    const { continuation_id } = await begin({ total_files_to_document: 1 });
    const done = { continuation_id, relevant_files: ['src/one.ts'], num_files_documented: 1 };
    const refused = await call(step(2, 2, done));
    expect(refused).toMatchObject({
      isError: false,
      status: 'documentation_analysis_required',
      pause_for_docgen: true,
      next_step_required: true,
      next_steps: expect.stringMatching(/2 of 3 files.*two\.py.*step_number 3/s),
    });
    expect(refused.documentation_analysis_complete).toBeUndefined();
    const others = ['src/deep/two.py', 'src/three.go'];
    const ended = await call(step(3, 3, { continuation_id, relevant_files: others }));
    expect(ended.status).toBe('documentation_analysis_complete');
  });

  it('refuses to end when nobody said what to document', async () => {
    const reply = await call(step(1, 1));
    expect(reply).toMatchObject({
      status: 'documentation_analysis_required',
      next_steps: expect.stringContaining('relevant_files'),
    });
  });

  it('believes the caller’s counts where it named no files, and does not count files outside of its task', async () => {
    const { continuation_id } = await call(step(1, 3, { total_files_to_document: '2', num_files_documented: 0 }));
    const half = await call(step(2, 2, { continuation_id, num_files_documented: 1 }));
    expect(half.status).toBe('documentation_analysis_required');
    const whole = await call(step(3, 3, { continuation_id, num_files_documented: 2 }));
    expect(whole.status).toBe('documentation_analysis_complete');

    const narrow = await begin();
    const id = { continuation_id: narrow.continuation_id };
    expect(counts(await call(step(2, 4, { ...id, relevant_files: ['other.ts', 'src/gone.ts'] })))).toEqual([0, 3]);
  });

  it('begins anew with step 1', async () => {
    const { continuation_id } = await begin({ num_files_documented: 3 });
    const again = await call(step(1, 4, { continuation_id, relevant_files: ['other.ts'] }));
    expect(counts(again)).toEqual([0, 1]);
  });

  it('documents what the revised first step names, and keeps what was done', async () => {
    const { continuation_id } = await begin({ relevant_files: ['src/one.ts'] });
    await call(step(2, 4, { continuation_id, relevant_files: ['src/one.ts'] }));
    const both = { continuation_id, relevant_files: ['src/one.ts', 'src/three.go'], revises_step: 1 };
    expect(counts(await call(step(1, 4, both)))).toEqual([1, 2]);
    expect(counts(await call(step(1, 4, { continuation_id, revises_step: 1 })))).toEqual([1, 2]);
    const early = await call(step(3, 3, { continuation_id }));
    expect(early).toMatchObject({ status: 'documentation_analysis_required' });
    const last = await call(step(3, 3, { continuation_id, relevant_files: ['src/three.go'] }));
    expect(last.status).toBe('documentation_analysis_complete');
  });

  it('says its rules and the wishes of the first step again at every tenth', async () => {
    const first = await begin({ document_complexity: true });
    expect(JSON.stringify(first.required_actions)).toContain('time and space complexity');
    const wishes = { document_complexity: false, update_existing: 'false' };
    const { continuation_id } = await begin(wishes);
    const reply = await call(step(2, 4, { continuation_id, relevant_files: ['src/one.ts'] }));
    const told = JSON.stringify(reply.required_actions);
    expect(told).not.toContain('time and space complexity');
    expect(told).toContain('same rules as in step 1');
    expect(told).toContain('(1 of 3 are done)');
    const tenth = await call(step(10, 12, { continuation_id, relevant_files: ['src/two.py'] }));
    expect(JSON.stringify(tenth.required_actions)).toMatch(/Never change code.*existing documentation stays as it is/);
  });

  it('leaves its work in the thread', async () => {
    const { continuation_id } = await begin({ document_flow: true });
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
    expect(transcript[0].content).toMatch(/finding 1[\s\S]*- src[\s\S]*Wanted: purpose/);
  });
});
