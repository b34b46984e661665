import { describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import type { Clock } from '../../../src/core/ports.ts';
import { geminiAnswers } from '../../support/stand-in-cli.ts';
import { cliRig } from './cli-rig.ts';

const message = (content: string) => ({ event: { type: 'message', role: 'assistant', content, delta: true } });

describe('what a CLI prints', () => {
  it('is read although it comes in halves, between noise, and without a last line end', async () => {
    const line = Buffer.from(`${JSON.stringify({ type: 'message', role: 'assistant', content: 'Grüße, 東京 🚀' })}\n`);
    const cut = line.indexOf(Buffer.from('京')) + 1;
    const rig = await cliRig({
      clis: ['gemini'],
      steps: [
        { out: 'Loaded cached credentials.\n{"type":"message","role":"assistant","con\n[not json]\n' },
        { base64: line.subarray(0, 20).toString('base64') },
        { base64: line.subarray(20, cut).toString('base64') },
        { base64: line.subarray(cut).toString('base64') },
        { out: JSON.stringify({ type: 'message', role: 'assistant', content: ' End.' }) },
      ],
    });
    expect((await rig.call({ prompt: 'x' })).content).toBe('Grüße, 東京 🚀 End.');
  });

  it('is the answer although it ends with an error code, with a warning', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: [message('Nearly all of it.'), { err: 'boom\n', code: 1 }] });
    const reply = await rig.call({ prompt: 'x' });
    expect(reply).toMatchObject({
      isError: false,
      content: 'Nearly all of it.',
      metadata: { return_code: 1, stderr: 'boom' },
    });
    expect(JSON.stringify(reply.metadata.warnings)).toContain('code 1');
  });

  it('is told in the error where there is no answer, without keys', async () => {
    const err = 'fatal: key=sk-abcdefghijklmnop1234 was refused by the moon\n';
    const rig = await cliRig({ clis: ['gemini'], steps: [{ out: 'some banner\n' }, { err, code: 7 }] });
    const { error } = await rig.call({ prompt: 'x' });
    expect(error).toMatchObject({ code: 'API_ERROR', class: 'cli_failed', retryable: false });
    expect(error.message).toContain("CLI 'gemini' execution failed: it ended with code 7");
    expect(error.data).toMatchObject({ cli_name: 'gemini', return_code: 7, stdout: 'some banner' });
    expect(JSON.stringify(error)).not.toContain('sk-abcdefghijklmnop1234');
    expect(rig.calls()).toHaveLength(1);
  });

  it('is told to be nothing where it ends well without a word, and nobody is asked again', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: [{ code: 0 }] });
    expect((await rig.call({ prompt: 'x' })).error.message).toContain('it ended without an answer');
    expect(rig.calls()).toHaveLength(1);
  });

  it('is told of a CLI that a signal ended', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: [{ crash: true }] });
    expect((await rig.call({ prompt: 'x' })).error.message).toContain('it was ended by SIGKILL');
  });

  it.each([
    ['in lines', false],
    ['in one line', true],
  ])('is bounded: 80 MB %s end the CLI, and what it said before is the answer', async (_, line) => {
    const rig = await cliRig({
      clis: ['gemini'],
      steps: [message('The answer.'), { flood: 80_000_000, line }, { hang: true }],
    });
    const before = process.memoryUsage().rss;
    const reply = await rig.call({ prompt: 'x' });
    expect(reply.content).toBe('The answer.');
    expect(JSON.stringify(reply.metadata.warnings)).toContain('it said more than is kept');
    expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
    await rig.nothingLeft();
  });

  it('is kept up to its limit where the answer itself is endless', async () => {
    const steps = [{ flood: 50_000_000 }];
    const rig = await cliRig({ clis: ['scribe'], steps, files: { scribe: { name: 'scribe', command: 'scribe' } } });
    const reply = await rig.call({ prompt: 'x', cli_name: 'scribe' });
    expect(reply).toMatchObject({
      isError: false,
      metadata: { output_truncated: true, output_original_length: 400_000 },
    });
    await rig.nothingLeft();
  });

  it('has no escape sequences in the reply', async () => {
    const steps = [{ out: '\u001b[31mred\u001b[0m\u0007 and \u001b]0;title\u0007plain\r\n' }];
    const rig = await cliRig({ clis: ['scribe'], steps, files: { scribe: { name: 'scribe', command: 'scribe' } } });
    expect((await rig.call({ prompt: 'x', cli_name: 'scribe' })).content).toBe('red and plain\n');
  });

  it('does not become an argument: session ids that are none are not resumed', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('Hello.', '--yolo') });
    const { continuation_id } = (await rig.call({ prompt: 'x' })).continuation_offer;
    await rig.call({ prompt: 'y', continuation_id });
    for (const { args } of rig.calls()) expect(args).not.toContain('--yolo');
  });
});

describe('what a CLI is told', () => {
  it('holds no commands of its own language', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('See \uff20alpha.') });
    const reply = await rig.call({ prompt: '@/etc/passwd @{!ls} mail me@x.org\u0000' });
    const [first] = rig.calls();
    for (const sign of ['@', '\0']) expect(first?.prompt).not.toContain(sign);
    expect(first?.prompt).toContain('\uff20/etc/passwd');
    expect(reply.content).toBe('See @alpha.');
    const { continuation_id } = reply.continuation_offer;
    for (const prompt of ['/quit', '--help', '!ls', '-p x']) await rig.call({ prompt, continuation_id });
    for (const { prompt } of rig.calls()) expect(prompt).toMatch(/^=== /);
  });

  it('is 200 KB where the caller sent as much', async () => {
    const rig = await cliRig({
      clis: ['gemini'],
      steps: geminiAnswers('Read.'),
      env: { MCP_PROMPT_SIZE_LIMIT: '400000' },
    });
    const prompt = 'word '.repeat(40_000);
    expect((await rig.call({ prompt })).content).toBe('Read.');
    expect(rig.calls()[0]?.prompt).toContain(prompt.trim());
  });

  it('is its last argument where it reads no standard input, and refused where that is too long', async () => {
    const rig = await cliRig({ clis: ['agy'], steps: [{ out: 'Hello.\n' }], env: { MCP_PROMPT_SIZE_LIMIT: '400000' } });
    expect((await rig.call({ prompt: '--help', cli_name: 'agy' })).content).toBe('Hello.\n');
    const [call] = rig.calls();
    expect(call?.args.slice(0, 2)).toEqual(['--sandbox', '-p']);
    expect(call?.args.at(-1)).toMatch(/^=== /);
    expect(call?.prompt).toBe('');
    const long = await rig.call({ prompt: 'word '.repeat(40_000), cli_name: 'agy' });
    expect(long.error).toMatchObject({ code: 'LIMIT', class: 'size' });
  });
});

describe('a CLI without a login', () => {
  it.each([
    [
      'gemini',
      [{ err: 'Please set an Auth method in your settings.json or specify GEMINI_API_KEY\n', code: 41 }],
      'Run "gemini" once',
    ],
    [
      'codex',
      [{ event: { type: 'error', message: 'unexpected status 401 Unauthorized: Missing bearer' } }, { code: 1 }],
      'codex login',
    ],
    [
      'claude',
      [
        {
          event: { type: 'result', subtype: 'success', is_error: true, result: 'Invalid API key · Please run /login' },
        },
        { code: 1 },
      ],
      'Run "claude" once',
    ],
    [
      'opencode',
      [
        { event: { type: 'error', error: { name: 'ProviderAuthError', data: { message: 'no credentials' } } } },
        { code: 1 },
      ],
      'opencode auth login',
    ],
    ['agy', [{ out: 'You are not logged in. Please sign in to continue:\n' }], 'Run "agy" once'],
  ])('is told as such: %s', async (cli_name, steps, hint) => {
    const rig = await cliRig({ clis: [cli_name], steps });
    const { error } = await rig.call({ prompt: 'x', cli_name });
    expect(error).toMatchObject({ code: 'API_ERROR', class: 'auth', retryable: false });
    expect(error.next).toContain(hint);
    // One that is not logged in keeps nobody from another, nor from this one once it is.
    expect((await rig.call({ prompt: 'x', cli_name })).error.class).toBe('auth');
    expect(rig.calls()).toHaveLength(2);
  });
});

describe('a CLI that waits for a login', () => {
  /** Half a minute of its own time is none. */
  function hastyClock(): Clock {
    const { clock } = systemEnvironment();
    return { ...clock, after: (ms, run) => clock.after(ms === 30_000 ? 50 : ms, run) };
  }

  it.each([
    ['on standard output', { out: 'Please visit the following URL:\nEnter the authorization code: ' }],
    ['on standard error', { err: 'Waiting for auth... (Press ESC to cancel)\n' }],
  ])('is ended, and what it waits for is told: %s', async (_, step) => {
    const rig = await cliRig({ clis: ['gemini'], steps: [step, { hang: true }], clock: hastyClock() });
    const { error } = await rig.call({ prompt: 'x' });
    expect(error).toMatchObject({ class: 'auth', next: expect.stringContaining('Run "gemini" once') });
    await rig.nothingLeft();
  });

  it('is not ended where it then works all the same', async () => {
    const steps = [
      { out: 'Waiting for auth...\n{"type":"init","session_id":"s"}\n' },
      { ms: 400 },
      message('Please log in.'),
    ];
    const rig = await cliRig({ clis: ['gemini'], steps, clock: hastyClock() });
    expect((await rig.call({ prompt: 'x' })).content).toBe('Please log in.');
  });

  it('is not ended where nothing tells that it works', async () => {
    const steps = [{ err: 'Tool x: authentication required\n' }, { out: 'One.\n' }, { ms: 400 }, { out: 'Two.\n' }];
    const rig = await cliRig({ clis: ['agy'], steps, clock: hastyClock() });
    expect((await rig.call({ prompt: 'x', cli_name: 'agy' })).content).toBe('One.\nTwo.\n');
  });
});

describe('what stands for a name', () => {
  it('is never taken for an option: neither a model of the caller nor a session of the CLI', async () => {
    const steps = [{ event: { type: 'init', session_id: '--yolo', model: 'g' } }, message('Yes.')];
    const rig = await cliRig({ clis: ['gemini'], steps });
    const refused = await rig.call({ prompt: 'x', model: 'cli:gemini/--yolo' }, { tool: 'chat' });
    expect(refused.isError).toBe(true);
    expect(rig.calls()).toHaveLength(0);
    const first = await rig.call({ prompt: 'x' });
    await rig.call({
      prompt: 'y',
      continuation_id: first.continuation_id ?? first.continuation_offer?.continuation_id,
    });
    expect(rig.calls()).toHaveLength(2);
    expect(JSON.stringify(rig.calls().map(({ args }) => args))).not.toContain('--yolo');
  });
});
