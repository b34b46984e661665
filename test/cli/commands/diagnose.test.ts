import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { gitRepository } from '../../support/git-repository.ts';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { type RunOptions, runProgram } from '../run-program.ts';

let vendor: FakeVendor;
let project: TempProject;

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'a.js': 'const a = b;\n', '.gitignore': '.home\n' });
  await (await gitRepository(project.root)).commit();
});
afterEach(async () => {
  await vendor.close();
  await project.dispose();
});

function diagnose(args: string[], options: Partial<RunOptions> = {}) {
  const env = {
    ...vendorEnv({ openai: vendor.url }),
    PROJECT_ROOT: project.root,
    POLYLOGUE_HOME: project.path('.home'),
  };
  return runProgram(['diagnose', ...args], {
    cwd: project.root,
    env: { ...env, PATH: process.env.PATH ?? '' },
    ...options,
  });
}

const input = 'a.js:1\nReferenceError: b is not defined\n';
const patch = '--- a/a.js\n+++ b/a.js\n@@ -1 +1 @@\n-const a = b;\n+const a = 1;\n';
const says = () =>
  vendor.script({
    answer: JSON.stringify({
      can_tell: true,
      summary: 'It stopped.',
      root_cause: 'b is used and never made.',
      evidence: [{ file: 'a.js', line: 1, text: 'const a = b;' }],
      patch,
    }),
  });
const text = () => readFile(project.path('a.js'), 'utf8');

describe('polylogue diagnose', () => {
  it('says why what is piped in failed, and changes nothing', async () => {
    says();
    const { code, out } = await diagnose(['node', 'a.js'], { input });
    expect(code).toBe(0);
    for (const part of ['It stopped.', 'b is used and never made.', 'a.js:1  const a = b;', '+const a = 1;']) {
      expect(out).toContain(part);
    }
    expect(await text()).toBe('const a = b;\n');
  });

  it('applies the patch with --yes, and says where the file is as it was', async () => {
    says();
    const { code, out } = await diagnose(['--apply', '--yes'], { input });
    expect({ code, text: await text() }).toEqual({ code: 0, text: 'const a = 1;\n' });
    expect(out).toMatch(/Applied to .*a\.js.* takes it back/);
  });

  it('prints the diagnosis as its document where there is no patch to apply', async () => {
    vendor.script({
      answer: JSON.stringify({ can_tell: true, summary: 'It stopped.', root_cause: 'b is never made.' }),
    });
    const { code, out } = await diagnose(['--apply', '--json'], { input });
    expect(JSON.parse(out)).toMatchObject({ summary: 'It stopped.' });
    expect(code).toBe(1);
  });

  it('applies nothing without a terminal on which somebody says yes', async () => {
    says();
    const { code, err } = await diagnose(['--apply'], { input });
    expect({ code, text: await text() }).toEqual({ code: 1, text: 'const a = b;\n' });
    expect(err).toContain('did not approve');
  });

  it('says what to do where nothing is piped in', async () => {
    expect(await diagnose([])).toMatchObject({ code: 2, err: expect.stringContaining('Pipe it in') });
  });
});
