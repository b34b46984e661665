import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { testCliPath, testClis } from '../../../scripts/test-needs/provide-clis.ts';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import type { Clock } from '../../../src/core/ports.ts';
import { type Document, type TestProduct, testProduct } from '../../support/product.ts';
import { markedProcesses } from '../../support/stand-in-cli.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, Step } from '../../support/vendors/fake-vendor.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

// Programs of 100 and 400 MB: starting one takes seconds where others are at work too.
vi.setConfig({ testTimeout: 90_000 });

let google: FakeVendor;
let openai: FakeVendor;
let project: TempProject;
let polylogue: TestProduct | undefined;

beforeEach(async () => {
  google = await startGoogle();
  openai = await startOpenAi();
  project = await tempProject({
    'work/notes.txt': 'the password of the notes is heron\n',
    'home/.gemini/settings.json': JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { disableAutoUpdate: true },
      privacy: { usageStatisticsEnabled: false },
    }),
  });
  await mkdir(project.path('home/.codex'), { recursive: true });
});
afterEach(async () => {
  await polylogue?.close();
  polylogue = undefined;
  expect([...google.violations, ...openai.violations]).toEqual([]);
  await google.close();
  await openai.close();
  expect(await left()).toEqual([]);
  await project.dispose();
});

/** Everything that runs with this test's home. */
const left = () => markedProcesses(`HOME=${project.path('home')}\0`);

interface Setting {
  /** Variables that the CLIs get; an empty one takes theirs away. */
  programEnv?: Record<string, string>;
  env?: Record<string, string>;
  clock?: Clock;
}

/** The programs of this machine but for bubblewrap: codex takes one that it finds, and an older one can't do what it asks. */
async function systemPrograms(): Promise<string> {
  const folder = project.path('programs');
  await mkdir(folder, { recursive: true });
  const names = (await readdir('/usr/bin')).filter(name => name !== 'bwrap');
  // A test may make two products of one project.
  await Promise.all(names.map(name => symlink(`/usr/bin/${name}`, `${folder}/${name}`).catch(() => undefined)));
  return folder;
}

/** The product, with the real CLIs in PATH and their settings pointing to the fake vendors. */
async function product({ programEnv = {}, env = {}, clock }: Setting = {}): Promise<TestProduct> {
  const provider = `model_providers.fake={name="fake",base_url="${openai.url}",env_key="FAKE_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}`;
  const codexArgs = ['-c', provider, '-c', 'model_provider="fake"', '-c', 'model="gpt-5"'];
  const files = {
    gemini: { name: 'gemini', additional_args: ['--model', 'gemini-2.5-flash'] },
    codex: { name: 'codex', additional_args: codexArgs, pass_env: ['FAKE_KEY'] },
  };
  for (const [name, file] of Object.entries(files)) await project.write(`clis/${name}.json`, JSON.stringify(file));
  const folders = testClis.map(cli => resolve(dirname(testCliPath(cli))));
  const own = {
    PATH: [...folders, dirname(process.execPath), await systemPrograms()].join(':'),
    HOME: project.path('home'),
    GEMINI_API_KEY: 'test-key',
    GOOGLE_GEMINI_BASE_URL: google.url.replace('/v1beta', ''),
    GEMINI_CLI_TRUST_WORKSPACE: 'true',
    // It starts itself a second time otherwise, for a larger heap.
    GEMINI_CLI_NO_RELAUNCH: 'true',
    CODEX_HOME: project.path('home/.codex'),
    FAKE_KEY: 'test-key',
  };
  const given = Object.entries({ ...own, ...programEnv }).filter(([, value]) => value !== '');
  polylogue = await testProduct({
    root: project.path('work'),
    env: { CLI_CLIENTS_CONFIG_PATH: project.path('clis'), POLYLOGUE_TOOLSETS: 'core,agent', ...env },
    childEnv: Object.fromEntries(given),
    ...(clock && { clock }),
  });
  return polylogue;
}

const promptOf = (vendor: FakeVendor): string =>
  vendor.requests
    .at(-1)
    ?.messages.map(({ text }) => text)
    .join('\n') ?? '';

describe.each([
  ['gemini', () => google],
  ['codex', () => openai],
] as const)('the real %s', (cli_name, vendorOf) => {
  it('answers without a terminal, takes no text for a command, and goes on with its session', async () => {
    const { call } = await product();
    const vendor = vendorOf();
    vendor.script({ answer: 'First answer.' }, { answer: 'Second answer.' });
    const prompt = 'Explain @notes.txt and @/etc/passwd and @../home/.gemini/settings.json, nothing else.';
    const first = await call('clink', { prompt, cli_name });
    expect(first).toMatchObject({
      isError: false,
      content: 'First answer.',
      metadata: { cli_name, return_code: 0, resumed: false },
    });
    expect(first.metadata.usage.input).toBeGreaterThan(1_000);
    expect(promptOf(vendor)).toMatch(/[@\uff20]notes\.txt and [@\uff20]\/etc\/passwd/);
    expect(promptOf(vendor)).not.toMatch(/heron|root:x:|gemini-api-key/);
    const { continuation_id } = first.continuation_offer;
    const second = await call('clink', { prompt: '/quit is no command here, is it?', continuation_id });
    expect(second).toMatchObject({
      content: 'Second answer.',
      metadata: { cli_name, resumed: true, session_id: first.metadata.session_id },
    });
    // Its own session brought the first exchange; we only sent what was new.
    const sent = vendor.requests.at(-1)?.messages ?? [];
    expect(sent.filter(({ text }) => /Explain [@\uff20]notes/.test(text)).length).toBe(1);
    expect(sent.some(({ text }) => text === 'First answer.')).toBe(true);
    expect(sent.at(-1)?.text).toContain('/quit is no command here');
    expect(second.metadata.usage.input).toBeLessThan(first.metadata.usage.input * 1.7);
    const [row] = (await polylogue?.product.spent('2000-01-01')) ?? [];
    expect(row).toMatchObject({ provider: 'cli', model: cli_name, calls: 2 });
  });

  it('is ended with its children when the call is cancelled', async () => {
    const { call } = await product({ programEnv: { GEMINI_CLI_NO_RELAUNCH: '' } });
    const vendor = vendorOf();
    vendor.script(...hanging(cli_name));
    const cancel = new AbortController();
    const reply = call('clink', { prompt: 'Work for long', cli_name }, { signal: cancel.signal });
    await busy(cli_name, vendor);
    cancel.abort();
    expect((await reply).error).toMatchObject({ code: 'CANCELLED' });
    await vi.waitFor(async () => expect(await left()).toEqual([]), { timeout: 30_000 });
  });
});

/** The endpoint never answers gemini; codex is told to run a command that takes ten minutes. */
function hanging(cli: string): Step[] {
  if (cli === 'gemini') return [{ fault: 'hang_before_headers' }];
  const call = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'exec_command',
    arguments: '{"cmd":"sleep 600"}',
  };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const events = [
    { type: 'response.created', response: { id: 'resp_1' } },
    { type: 'response.output_item.done', output_index: 0, item: call },
    { type: 'response.completed', response: { id: 'resp_1', usage } },
  ];
  const body = events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  return [{ fault: 'status', status: 200, headers: { 'content-type': 'text/event-stream' }, body }];
}

/** Resolves once the CLI waits for its endpoint, or its command runs. */
async function busy(cli: string, vendor: FakeVendor): Promise<void> {
  const isBusy = async () => {
    const processes = await left();
    expect(processes.length).toBeGreaterThan(1);
    if (cli === 'codex') expect(processes.join('\n')).toContain('sleep 600');
    else expect(vendor.openSockets()).toBeGreaterThan(0);
  };
  await vi.waitFor(isBusy, { timeout: 40_000, interval: 100 });
}

it('the real gemini stays in its plan mode, which it would leave without asking anybody', async () => {
  const { call } = await product();
  const shell = { name: 'run_shell_command', args: { command: `touch ${project.path('work/made')}` } };
  const exit = { name: 'exit_plan_mode', args: { plan_filename: 'plan.md' } };
  const plan = { name: 'write_file', args: { file_path: 'plan.md', content: '1. Make it.' } };
  google.script({ calls: [plan] }, { calls: [exit] }, { calls: [shell] }, { answer: 'I only looked.' });
  expect(await call('clink', { prompt: 'Make a file.', cli_name: 'gemini' })).toMatchObject({
    content: 'I only looked.',
  });
  expect(await readdir(project.path('work'))).toEqual(['notes.txt']);
});

describe('the real CLIs', () => {
  it('are ended with their children when the time is up', async () => {
    const { clock } = systemEnvironment();
    const due: (() => void)[] = [];
    // The half hour of the call passes when this test says so; all else takes the time that it takes.
    const after: Clock['after'] = (ms, run) => {
      if (ms < 1_000_000 || ms > 1_800_000) return clock.after(ms, run);
      due.push(run);
      return () => undefined;
    };
    const { call } = await product({ clock: { ...clock, after } });
    openai.script(...hanging('codex'));
    const reply = call('clink', { prompt: 'Work for long', cli_name: 'codex' });
    await busy('codex', openai);
    expect(due).toHaveLength(1);
    for (const run of due) run();
    expect((await reply).error).toMatchObject({ class: 'timeout', data: { clock: 'total', limitMs: 1_800_000 } });
    await vi.waitFor(async () => expect(await left()).toEqual([]), { timeout: 30_000 });
  });

  it('say that nobody is logged in, and what to do', async () => {
    await writeFile(project.path('home/.gemini/settings.json'), '{}');
    const { call } = await product({ programEnv: { GEMINI_API_KEY: '', FAKE_KEY: 'wrong-key' } });
    const [gemini, codex]: Document[] = await Promise.all(
      ['gemini', 'codex'].map(cli_name => call('clink', { prompt: 'Hello', cli_name })),
    );
    expect(gemini.error).toMatchObject({ class: 'auth', retryable: false, provider: 'cli', model: 'gemini' });
    expect(gemini.error.next).toContain('Run "gemini" once');
    expect(codex.error).toMatchObject({ class: 'auth', retryable: false, provider: 'cli', model: 'codex' });
    expect(codex.error.next).toContain('codex login');
    expect(openai.violations.splice(0)).toEqual([expect.stringContaining('401')]);
  });

  it('work in folders that their user trusts only', async () => {
    const { call } = await product({ programEnv: { GEMINI_CLI_TRUST_WORKSPACE: '' } });
    const { error } = await call('clink', { prompt: 'Hello', cli_name: 'gemini' });
    expect(error).toMatchObject({ code: 'CONFIG', class: 'untrusted_folder' });
    expect(error.next).toContain('GEMINI_CLI_TRUST_WORKSPACE');
    expect(google.requests).toEqual([]);
  });
});
