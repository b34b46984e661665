import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { runProgram } from '../run-program.ts';

let google: FakeVendor;
let project: TempProject;

beforeEach(async () => {
  google = await startGoogle();
  project = await tempProject({ 'src/a.ts': 'const a = 1;\n', 'big.txt': 'a line of text\n'.repeat(45_000) });
});

afterEach(async () => {
  await google.close();
  await project.dispose();
});

function route(args: string[], env: Record<string, string> = {}, input?: string) {
  const home = { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.home') };
  const own = { ...vendorEnv({ google: google.url }), OPENAI_API_KEY: 'a-key', ...home, ...env };
  return runProgram(['route', ...args], { cwd: project.root, env: own, ...(input !== undefined && { input }) });
}

const json = async (args: string[], env?: Record<string, string>) =>
  JSON.parse((await route([...args, '--json'], env)).out);

describe('polylogue route', () => {
  it('names who would answer, in their order with reasons, and asks nobody', async () => {
    const { code, out, err } = await route(['What', 'is', 'a', 'mutex?']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^chat; about \d+ tokens\n/);
    expect(out).toMatch(/1\. openai:gpt-.*\n {3}chosen for fast_response: score[\s\S]*3\. google:gemini-/);
    expect(google.requests).toEqual([]);
  });

  it('says which of the named files are not there', async () => {
    const { code, err } = await route([
      'Read it',
      '--file',
      'src/a.ts:1-1',
      '--file',
      'gone.ts',
      '--image',
      'gone.png',
    ]);
    expect(code).toBe(0);
    expect(err).toBe(
      `polylogue: There is no ${project.path('gone.ts')}.\npolylogue: There is no ${project.path('gone.png')}.\n`,
    );
  });

  it('says of whom it names that it is not asked now, as another process found', async () => {
    const model = ['--model', 'google:gemini-2.5-pro'];
    google.script({ fault: 'status', status: 401 });
    const env = { ...vendorEnv({ google: google.url }), POLYLOGUE_HOME: project.path('.home') };
    expect((await runProgram(['ask', 'Hi', ...model], { cwd: project.root, env })).code).toBe(1);
    const { code, err } = await route(['Hi', ...model]);
    expect([code, err]).toEqual([0, expect.stringContaining('google is not asked: it refused the key.')]);
  });

  it('explains every rule, and why others were left out', async () => {
    const env = {
      DENIED_MODELS: 'gemini-2.5-pro',
      OPENAI_ALLOWED_MODELS: 'gpt-4.1-nano',
      OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
    };
    const { out } = await route(['What is the weather in Oslo today?', '--explain'], env);
    expect(out).toMatch(/yes search: the question/);
    expect(out).toMatch(/no {2}vision/);
    expect(out).toContain('google: denied by the operator: gemini-2.5-pro');
    expect(out).toContain('openai: cannot search the web: gpt-4.1-nano');
    expect(out).toMatch(/openai: not on the allow-list: /);
    expect(out).toContain('anthropic: not configured (set ANTHROPIC_API_KEY)');
    const seeing = await json(['Look', '--image', 'shot.png', '--explain'], env);
    expect(seeing.plan).toMatchObject({ class: 'vision', needs: { vision: true } });
    expect(seeing.left_out).toContainEqual(expect.objectContaining({ why: 'no_key', setting: 'OPENROUTER_API_KEY' }));
  });

  it('weighs the files that would go along, and names whose window is too small', async () => {
    const found = await json(['Sum up', '--file', 'big.txt', '--explain']);
    expect(found.plan.class).toBe('long_context');
    expect(found.estimated_tokens).toBeGreaterThan(128_000);
    expect(found.left_out).toContainEqual(expect.objectContaining({ why: 'window', provider: 'openai' }));
    expect((await json(['Sum up', '--file', 'contract.pdf'])).plan.class).toBe('documents');
  });

  it('takes a tool, a model, --websearch and a question from a pipe', async () => {
    expect(await json(['Review', '--tool', 'codereview', '--file', 'src'])).toMatchObject({
      tool: 'codereview',
      category: 'extended_reasoning',
      plan: { class: 'code' },
    });
    expect(await json(['Hi', '--model', 'gpt-5.2:high'])).toMatchObject({
      plan: { class: 'explicit' },
      candidates: [{ provider: 'openai', model: 'gpt-5.2', effort: 'high' }],
    });
    expect((await json(['Hi', '--websearch'])).plan).toMatchObject({ class: 'search', tools: { webSearch: true } });
    expect((await route([], {}, 'What is the news today?')).out).toMatch(/^search/);
  });

  it('asks a small model about an open question only when told to', async () => {
    const question = 'What are the current plans for the bridge?';
    const env = { GOOGLE_ALLOWED_MODELS: 'gemini-2.5-flash' };
    expect((await route([question], env)).out).toContain('though its words leave that open');
    expect(google.requests).toEqual([]);
    google.script({ answer: '{"class": "search"}' });
    const told = await json([question, '--ask-model'], { ...env, OPENAI_API_KEY: '' });
    expect(google.requests).toHaveLength(1);
    expect(told).toMatchObject({ classifier: { told: 'search' }, plan: { class: 'search' } });
  });

  it('shows a small model no secret of the question', async () => {
    const key = `sk-proj-${'aB3dE5gH7jK9'.repeat(4)}`;
    google.script({ answer: '{"class": "chat"}' });
    const env = { GOOGLE_ALLOWED_MODELS: 'gemini-2.5-flash', OPENAI_API_KEY: '' };
    await json([`What are the current plans for the bridge ${key}?`, '--ask-model'], env);
    expect(google.requests).toHaveLength(1);
    expect(JSON.stringify(google.requests[0]!.body)).toContain('plans for the bridge');
    expect(JSON.stringify(google.requests[0]!.body)).not.toContain(key);
  });

  it('says what to set when nothing is configured, with what the call would need', async () => {
    const env = { GEMINI_API_KEY: '', OPENAI_API_KEY: '' };
    const { code, out, err } = await route(['What is the news today?'], env);
    expect(code).toBe(2);
    expect(out).toMatch(/^search/);
    expect(err).toContain('OPENAI_API_KEY');
    expect(await json(['Hi'], env)).toMatchObject({ status: 'error', error: { code: 'CONFIG' }, candidates: [] });
  });

  it('refuses nothing, tools that ask no model, and models that are not there', async () => {
    expect((await route([])).err).toContain('polylogue route "');
    expect((await route(['Hi', '--tool', 'planer'])).err).toContain('codereview');
    const unknown = await route(['Hi', '--model', 'gpt-99']);
    expect(unknown.code).toBe(2);
    expect(unknown.err).toMatch(/gpt-99.*\n.*"gpt-/);
  });
});
