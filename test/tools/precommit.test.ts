import { execFile } from 'node:child_process';
import { readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type GitRepository, gitRepository } from '../support/git-repository.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { counters, step } from './workflow-rig.ts';

const token = `ghp_${'aB3dE5fG7hJ9'.repeat(3)}`;
let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
let repo: GitRepository;

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject();
  repo = await gitRepository(join(project.root, 'shop'));
  await repo.write('src/cart.ts', 'export const total = 1;\n');
  await repo.commit();
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  polylogue = await testProduct({ root: project.root, env });
});
afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const call = (args: Record<string, unknown>): Promise<Document> => polylogue.call('precommit', args);
const prompt = () =>
  vendor.requests
    .at(-1)
    ?.messages.map(({ text }) => text)
    .join('\n') ?? '';
const answers = (answer: string) => vendor.script({ answer });

describe('precommit', () => {
  it('sums the changes up at the first step, without asking anybody', async () => {
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    await repo.git('add', '.');
    await repo.write('src/new.ts', 'export const fresh = 1;\n');
    const reply = await call(step(1, 2, { path: 'shop' }));
    expect(reply).toMatchObject({
      status: 'pause_for_validation',
      precommit_required: true,
      validation_status: { ...counters, issues_identified: 0, precommit_type: 'external' },
      files_changed: 2,
      repositories: [
        {
          path: repo.path,
          branch: 'main',
          counts: { staged: 1, unstaged: 0, untracked: 1, conflicted: 0, added_lines: 2, removed_lines: 1 },
          files: [
            { path: 'src/cart.ts', area: 'staged', status: 'modified', added: 1, removed: 1 },
            { path: 'src/new.ts', area: 'untracked', status: 'added', added: 1 },
          ],
        },
      ],
      hints: ['Code changed, but no test.', 'Code changed, but no documentation.'],
    });
    expect(vendor.requests).toHaveLength(0);
  });

  it('tells the expert what could not be read', async () => {
    for (let n = 0; n <= 300; n++) await repo.write(`notes/${n}.txt`, 'a note\n');
    await call(step(1, 1, { path: 'shop' }));
    expect(prompt()).toContain(
      `=== BEGIN EVIDENCE: not read ===\n${repo.path}: Only 300 of 301 untracked files were read.\n`,
    );
  });

  it('shows a new link as where it leads, as git keeps it', async () => {
    await repo.write('src/keys.ts', `export const token = '${token}';\n`);
    await repo.commit();
    await symlink('keys.ts', join(repo.path, 'src/link.ts'));
    const reply = await call(step(1, 1, { path: 'shop' }));
    expect(reply.issues_found).toBeUndefined();
    expect(reply.repositories[0].files).toEqual([
      { path: 'src/link.ts', area: 'untracked', status: 'added', not_shown: 'a link to keys.ts' },
    ]);
  });

  it('has an issue once, of a file that is staged and changed again', async () => {
    await repo.write('.env', 'A=1\n');
    await repo.git('add', '--force', '.env');
    await repo.write('.env', 'A=2\n');
    const reply = await call(step(1, 2, { path: 'shop' }));
    expect(reply.repositories[0].counts).toMatchObject({ staged: 1, unstaged: 1 });
    expect(reply.issues_found).toHaveLength(1);
  });

  it('reads the other repositories where one is damaged, and says so', async () => {
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    const damaged = await gitRepository(join(project.root, 'old'));
    await damaged.write('.git/index', 'no index');
    const reply = await call(step(1, 1, { path: '.' }));
    expect(reply.repositories.map(({ path }: Document) => path)).toEqual([repo.path]);
    expect(reply.notes).toEqual([expect.stringContaining(`git cannot read ${damaged.path}`)]);
    expect(prompt()).toContain(`=== BEGIN EVIDENCE: not read ===\ngit cannot read ${damaged.path}`);
  });

  it('says what is damaged, and what to do, where all are', async () => {
    await repo.write('.git/index', 'no index');
    await (await gitRepository(join(project.root, 'old'))).write('.git/index', 'no index');
    const { error } = await call(step(1, 1, { path: '.' }));
    expect(error).toMatchObject({ message: expect.stringMatching(/^git cannot read /), class: 'files' });
    expect(error.next).toContain('"git status"');
  });

  it('leaves neither staged nor unstaged changes out for a host that fills in every field with false', async () => {
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    const reply = await call(step(1, 1, { path: 'shop', include_staged: false, include_unstaged: false }));
    expect(reply.files_changed).toBe(1);
    expect(prompt()).toContain('Staged changes: included; unstaged: included');
  });

  it('says of a file in conflict that it is that', async () => {
    await repo.git('checkout', '--quiet', '-b', 'other');
    await repo.write('src/cart.ts', 'export const total = 3;\n');
    await repo.commit();
    await repo.git('checkout', '--quiet', 'main');
    await repo.write('src/cart.ts', 'export const total = 4;\n');
    await repo.commit();
    await repo.git('merge', 'other').catch(() => '');
    const reply = await call(step(1, 2, { path: 'shop' }));
    expect(reply.repositories[0].files[0]).toMatchObject({ status: 'conflicted', not_shown: 'in conflict' });
  });

  it('understands a recommendation with another hyphen', async () => {
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    answers('It breaks the cart.\nRECOMMENDATION: NO\u2011GO');
    const reply = await call(step(1, 1, { path: 'shop' }));
    expect(reply.recommendation_reasons).toEqual(['The expert recommends not to commit.']);
  });

  it('shows the expert the patches as they are at the last step, and ends with its word', async () => {
    answers('Fine.\n\nRECOMMENDATION: GO');
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    const first = await call(step(1, 2, { path: 'shop', focus_on: 'prices' }));
    await repo.write('src/cart.ts', 'export const total = 3;\n');
    const { continuation_id } = first;
    const reply = await call(step(2, 2, { continuation_id }));
    expect(prompt()).toContain('-export const total = 1;\n+export const total = 3;');
    expect(prompt()).not.toContain('+export const total = 2;');
    expect(prompt()).toContain('Focus on: prices');
    expect(reply).toMatchObject({
      status: 'calling_expert_analysis',
      validation_complete: true,
      complete_validation: { steps_taken: 2 },
      expert_analysis: { raw_analysis: expect.stringContaining('Fine.') },
      recommendation: 'go',
    });
    expect(reply).not.toHaveProperty('recommendation_reasons');
  });

  it('is a step that total_steps 1 suffices for, and says no-go with the expert', async () => {
    answers('Broken.\n\n**RECOMMENDATION: NO-GO**');
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    const reply = await call(step(1, 1, { path: 'shop' }));
    expect(reply).toMatchObject({
      recommendation: 'no-go',
      recommendation_reasons: ['The expert recommends not to commit.'],
    });
  });

  it('counts no recommendation as none', async () => {
    answers('I have seen it.');
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    expect((await call(step(1, 1, { path: 'shop' }))).recommendation).toBe('no-go');
  });

  it('finds a secret in the diff, shows it to nobody, and stays at no-go until it is gone', async () => {
    answers('RECOMMENDATION: GO');
    answers('RECOMMENDATION: GO');
    await repo.write('src/cart.ts', `export const total = 1;\nconst key = '${token}';\n`);
    const first = await call(step(1, 2, { path: 'shop' }));
    expect(first.validation_status).toMatchObject({ issues_identified: 1, issues_found: 1 });
    const reply = await call(step(2, 2, { continuation_id: first.continuation_id }));
    expect(reply.recommendation).toBe('no-go');
    expect(reply.recommendation_reasons).toEqual([expect.stringMatching(/src\/cart\.ts:2 adds a secret/)]);
    expect(reply.complete_validation.issues_found).toMatchObject([{ severity: 'critical', found_by: 'precommit' }]);
    expect(JSON.stringify([first, reply]) + prompt()).not.toContain(token);
    expect(prompt()).toContain('[masked:');
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    const again = await call(step(2, 2, { continuation_id: first.continuation_id }));
    expect(again).toMatchObject({ recommendation: 'go', complete_validation: { issues_found: [] } });
  });

  it('asks nobody when it is internal, and decides by the issues', async () => {
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    const issues_found = [{ severity: 'HIGH', description: 'total is wrong' }];
    const first = await call(step(1, 2, { path: 'shop', precommit_type: 'internal' }));
    const reply = await call(step(2, 2, { continuation_id: first.continuation_id, issues_found }));
    expect(reply).toMatchObject({
      status: 'validation_complete_ready_for_commit',
      expert_analysis: { status: 'skipped_due_to_internal_analysis_type' },
      recommendation: 'no-go',
      recommendation_reasons: ['total is wrong'],
    });
    expect(vendor.requests).toHaveLength(0);
  });

  it('counts no issue that a revised step took back', async () => {
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    const issues_found = [{ severity: 'critical', description: 'total is wrong' }];
    const first = await call(step(1, 2, { path: 'shop', precommit_type: 'internal', issues_found }));
    const { continuation_id } = first;
    const revised = await call(step(1, 2, { continuation_id, revises_step: 1, issues_found: [] }));
    expect([first, revised].map(({ validation_status }) => validation_status.issues_found)).toEqual([1, 0]);
    expect(await call(step(2, 2, { continuation_id }))).toMatchObject({
      recommendation: 'go',
      complete_validation: { issues_found: [] },
    });
  });

  it('takes a changeset file like any other', async () => {
    answers('RECOMMENDATION: GO');
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    await project.write('my.changeset', 'the whole diff\n');
    await call(step(1, 1, { path: 'shop', relevant_files: ['my.changeset'] }));
    expect(prompt()).toContain('the whole diff');
  });

  it('reads three repositories below one path', async () => {
    for (const name of ['two', 'deep/three']) {
      const other = await gitRepository(join(project.root, name));
      await other.write('x.py', 'x = 1\n');
    }
    const reply = await call(step(1, 2, { path: project.root }));
    expect(reply.repositories).toHaveLength(3);
    expect(reply.files_changed).toBe(2);
  });

  it('compares with a branch instead of what is staged', async () => {
    await repo.git('checkout', '--quiet', '-b', 'feature');
    await repo.write('src/cart.ts', 'export const total = 5;\n');
    await repo.commit();
    const reply = await call(step(1, 2, { path: 'shop', compare_to: 'main' }));
    expect(reply.repositories[0]).toMatchObject({ branch: 'feature', counts: { staged: 0, compared: 1 } });
  });

  it('shows as much of a huge change as has room, and names the rest', async () => {
    answers('RECOMMENDATION: GO');
    await repo.write('src/huge.ts', Array.from({ length: 40_000 }, (_, at) => `const v${at} = '${at}';\n`).join(''));
    await repo.write('src/small.ts', 'export const small = 1;\n');
    const reply = await call(step(1, 1, { path: 'shop' }));
    expect(reply.evidence_left_out).toEqual(['untracked src/huge.ts']);
    expect(prompt()).toContain("+const v0 = '0';");
    expect(prompt()).toContain('+export const small = 1;');
    expect(prompt()).toContain('Left out or cut because it does not fit: untracked src/huge.ts');
  });

  it('says what is missing or refused: path, repository, roots, commit', async () => {
    expect((await call(step(1, 2))).error).toMatchObject({ validation_errors: [{ field: 'path' }] });
    expect((await call(step(1, 2, { path: '.' }))).isError).toBe(false);
    await promisify(execFile)('mkdir', [project.path('plain')]);
    expect((await call(step(1, 2, { path: 'plain' }))).error.message).toMatch(/no git repository/);
    expect((await call(step(1, 2, { path: '/etc' }))).error.code).toBe('SECURITY');
    const refused = await call(step(1, 2, { path: 'shop', compare_to: '--output=x' }));
    expect(refused.error).toMatchObject({ validation_errors: [{ field: 'compare_to' }] });
  });

  it('shows the expert each kind of change: staged, unstaged, new, renamed, binary, a submodule', async () => {
    answers('RECOMMENDATION: GO');
    await repo.write('old.ts', 'the same line\n'.repeat(20));
    await repo.write('src/open.ts', 'export const open = 1;\n');
    await repo.commit();
    const inner = await gitRepository(project.path('inner'));
    await inner.write('i.ts', 'export const i = 1;\n');
    await inner.commit();
    await repo.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner.path, 'sub');
    await repo.git('mv', 'old.ts', 'renamed.ts');
    await repo.write('logo.png', new Uint8Array([137, 80, 78, 71, 0, 1, 2, 0]));
    await repo.git('add', '.');
    await repo.write('src/open.ts', 'export const open = 2;\n');
    await repo.write('src/new.ts', 'export const fresh = 1;\n');
    const reply = await call(step(1, 1, { path: 'shop' }));
    const kinds = Object.fromEntries(
      reply.repositories[0].files.map(({ path, ...file }: Document) => [path, file] as const),
    );
    expect(kinds).toMatchObject({
      'renamed.ts': { area: 'staged', status: 'renamed', from: 'old.ts' },
      'logo.png': { area: 'staged', status: 'added', not_shown: 'binary' },
      sub: { area: 'staged', status: 'added', submodule: true },
      'src/open.ts': { area: 'unstaged', status: 'modified', added: 1, removed: 1 },
      'src/new.ts': { area: 'untracked', status: 'added', added: 1 },
    });
    for (const text of [
      'rename from old.ts',
      'staged added logo.png (not shown: binary)',
      '+Subproject commit',
      '-export const open = 1;\n+export const open = 2;',
      '+export const fresh = 1;',
    ])
      expect(prompt()).toContain(text);
    expect(reply.recommendation).toBe('go');
  });

  it('validates what comes before the first commit', async () => {
    answers('RECOMMENDATION: GO');
    const fresh = await gitRepository(project.path('fresh'));
    await fresh.write('first.ts', 'export const first = 1;\n');
    await fresh.git('add', '.');
    const reply = await call(step(1, 1, { path: 'fresh' }));
    expect(reply).toMatchObject({
      recommendation: 'go',
      repositories: [{ branch: 'main', counts: { staged: 1 }, files: [{ path: 'first.ts', status: 'added' }] }],
    });
    expect(reply.repositories[0]).not.toHaveProperty('head');
    expect(prompt()).toContain('+export const first = 1;');
  });

  it('writes nothing for a ref that looks like an option', async () => {
    const refused = await call(step(1, 2, { path: 'shop', compare_to: `--output=${project.path('written')}` }));
    expect(refused).toMatchObject({ isError: true, error: { validation_errors: [{ field: 'compare_to' }] } });
    expect(await readdir(project.root)).toEqual(['shop']);
  });

  it('has nothing to commit in a clean repository', async () => {
    const reply = await call(step(1, 1, { path: 'shop', use_assistant_model: false }));
    expect(reply).toMatchObject({
      status: 'local_work_complete',
      recommendation: 'no-go',
      recommendation_reasons: ['There is nothing to commit.'],
    });
  });
});

describe('precommit where nothing changed', () => {
  it.each([
    { given: {}, text: 'no file is staged, changed or new. To review commits, set compare_to' },
    { given: { include_unstaged: false, include_staged: true }, text: 'Leave out include_staged and include_unstaged' },
    { given: { compare_to: 'HEAD' }, text: 'nothing differs from "HEAD"' },
  ])('ends at its first step without asking an expert: $given', async ({ given, text }) => {
    for (const steps of [1, 3]) {
      const reply = await call(step(1, steps, { path: 'shop', ...given }));
      expect(reply).toMatchObject({
        status: 'local_work_complete',
        next_step_required: false,
        validation_complete: true,
        recommendation: 'no-go',
      });
      expect(reply.next_steps).toContain(text);
    }
    expect(vendor.requests).toEqual([]);
  });

  it('asks the expert where it could not read all of it', async () => {
    answers('RECOMMENDATION: GO');
    const other = await gitRepository(project.path('other'));
    await other.write('a.ts', 'export const a = 1;\n');
    await other.commit();
    await other.git('branch', 'only-here');
    const reply = await call(step(1, 1, { path: '.', compare_to: 'only-here' }));
    expect(reply.status).toBe('calling_expert_analysis');
  });

  it('reviews what is changed by the time of the next call', async () => {
    answers('RECOMMENDATION: GO');
    const { continuation_id } = await call(step(1, 1, { path: 'shop' }));
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    const reply = await call(step(1, 1, { path: 'shop', continuation_id }));
    expect(reply).toMatchObject({ status: 'calling_expert_analysis', recommendation: 'go' });
  });
});

describe('precommit without masking', () => {
  it('shows the expert the patch as files are shown, and tells of the secret all the same', async () => {
    await polylogue.close();
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', MASK_SECRETS: 'false' };
    polylogue = await testProduct({ root: project.root, env });
    await repo.write('src/cart.ts', `export const key = '${token}';\n`);
    await repo.write('src/new.ts', `export const other = '${token}';\n`);
    answers('RECOMMENDATION: GO');
    const reply = await call(step(1, 1, { path: 'shop' }));
    expect(prompt()).toContain(`+export const key = '${token}';`);
    expect(prompt()).toContain(`+export const other = '${token}';`);
    expect(prompt()).not.toMatch(/\[masked:\w/);
    expect(reply.issues_found).toEqual([
      expect.objectContaining({ severity: 'critical', location: 'src/cart.ts:1' }),
      expect.objectContaining({ severity: 'critical', location: 'src/new.ts:1' }),
    ]);
  });
});

describe('precommit in its steps', () => {
  it('tells which secrets it found, at every one of them', async () => {
    await repo.write('src/cart.ts', `export const total = 1;\nexport const key = '${token}';\n`);
    await repo.write('.env', 'A=1\n');
    const first = await call(step(1, 3, { path: 'shop', issues_found: [{ severity: 'low', description: 'mine' }] }));
    const { continuation_id } = first;
    const second = await call(step(2, 3, { continuation_id }));
    const last = await call(step(3, 3, { continuation_id, precommit_type: 'internal', use_assistant_model: true }));
    for (const reply of [first, second, last]) {
      expect(reply.issues_found).toEqual([
        expect.objectContaining({ severity: 'critical', location: 'src/cart.ts:2', kind: 'github_token' }),
        expect.objectContaining({ severity: 'high', description: expect.stringContaining('.env') }),
      ]);
      expect(JSON.stringify(reply)).not.toContain(token);
    }
    expect(last).toMatchObject({ recommendation: 'no-go', status: 'validation_complete_ready_for_commit' });
    expect(vendor.requests).toEqual([]);
  });

  it('takes the path alone, as a question that is asked at once', async () => {
    await repo.write('src/cart.ts', 'export const total = 2;\n');
    answers('Fine.\nRECOMMENDATION: GO');
    const reply = await call({ path: 'shop' });
    expect(reply).toMatchObject({ validation_complete: true, recommendation: 'go', total_steps: 1 });
    expect(prompt()).toContain('+export const total = 2;');
    expect(vendor.requests).toHaveLength(1);
  });

  it.each([[{}], [{ path: 'shop', total_steps: 2 }], [{ step: 'look', path: 'shop' }], [{ focus_on: 'x' }]])(
    'takes %j for no question',
    async args => {
      expect(await call(args)).toMatchObject({ isError: true, error: { code: 'MISSING_PARAMETER' } });
      expect(vendor.requests).toEqual([]);
    },
  );
});
