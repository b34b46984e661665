import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { runProgram } from '../run-program.ts';

let vendor: FakeVendor;
let project: TempProject;
beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'a.txt': 'before\n' });
});
afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await vendor.close();
  await project.dispose();
});

function agent(...args: string[]) {
  const env = {
    ...vendorEnv({ openai: vendor.url }),
    PROJECT_ROOT: project.root,
    POLYLOGUE_HOME: project.path('.home'),
  };
  return runProgram(['agent', ...args, '--model', 'openai:gpt-5'], { cwd: project.root, env });
}

const write = { calls: [{ name: 'write_file', args: { path: 'a.txt', content: 'after\n' } }], reasoning: 'So.' };

describe('polylogue agent', () => {
  it('writes where everything is approved, and prints the answer alone', async () => {
    vendor.script(write, { answer: 'Written.' });
    const task = ['Write', 'it.', '--file', 'a.txt', '--approve', 'all'];
    expect(await agent(...task)).toMatchObject({ code: 0, out: 'Written.\n', err: '' });
    expect(await readFile(project.path('a.txt'), 'utf8')).toBe('after\n');
    const [first] = vendor.requests;
    expect(first?.messages.map(({ text }) => text).join('\n')).toMatch(
      /Write it\.[\s\S]*BEGIN FILE: \S*a\.txt[\s\S]*before/,
    );
  });

  it('goes on with what was said in a thread', async () => {
    vendor.script({ answer: 'Green it is.' }, { answer: 'Painted.' });
    await agent('Which colour?');
    expect(await agent('Paint it.', '--continue', 'last')).toMatchObject({ code: 0, out: 'Painted.\n' });
    expect(vendor.requests[1]?.messages.map(({ text }) => text).join('\n')).toMatch(/Green it is\.[\s\S]*Paint it\./);
  });

  it('changes nothing where nobody can be asked, and tells the whole of it as JSON', async () => {
    vendor.script(write, { answer: 'I may not.' });
    const { code, out } = await agent('Write it.', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ content: 'I may not.', tool_calls: [{ outcome: 'refused' }] });
    expect(await readFile(project.path('a.txt'), 'utf8')).toBe('before\n');
  });

  it('is told as failed among what was sent, where its model failed', async () => {
    vendor.byDefault({ fault: 'status', status: 400 });
    expect(await agent('Paint it.')).toMatchObject({ code: 1, out: '' });
    const env = { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.home') };
    const sent = await runProgram(['threads', 'sent', 'last'], { cwd: project.root, env });
    expect(sent.out).toBe('1. agent, failed\n');
  });

  it('says what is missing', async () => {
    const { code, err } = await agent();
    expect(code).not.toBe(0);
    expect(err).toContain('There is no task.');
  });

  it('blames no restriction where the built-in models are all there is: they call no tools', async () => {
    const { code, err } = await runProgram(['agent', 'Mend it.', '--offline'], { cwd: project.root });
    expect([code, err]).toEqual([2, expect.stringMatching(/is known to call tools[\s\S]*start without --offline/)]);
  });
});
