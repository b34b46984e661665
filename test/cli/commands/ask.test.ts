import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { type RunOptions, runProgram } from '../run-program.ts';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

let vendor: FakeVendor;
let project: TempProject;

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'src/a.ts': 'const one = 1;\nconst two = 2;\nconst three = 3;\n' });
});

afterEach(async () => {
  await vendor.close();
  await project.dispose();
});

async function ask(args: string[], options: Partial<RunOptions> = {}) {
  const env = {
    ...vendorEnv({ openai: vendor.url }),
    PROJECT_ROOT: project.root,
    POLYLOGUE_HOME: project.path('.home'),
  };
  const run = await runProgram(['ask', ...args], { cwd: project.root, ...options, env: { ...env, ...options.env } });
  if (run.code !== 0) console.log(`"ask ${args.join(' ')}" ended with ${run.code}: ${run.err}`);
  return run;
}

/** The questions that the vendor was asked, as one text a request. */
function asked(): string[] {
  return vendor.requests.map(({ messages }) => messages.map(({ text }) => text).join('\n'));
}

describe('polylogue ask', () => {
  it('prints the answer and nothing else', async () => {
    vendor.script({ answer: 'Forty-two.' });
    expect(await ask(['What', 'is it?'])).toMatchObject({ code: 0, out: 'Forty-two.\n', err: '' });
    expect(asked()[0]).toContain('What is it?');
  });

  it('prints the text as it arrives', async () => {
    vendor.script({ answer: 'one two three four five six seven eight', chunks: 4, chunkDelayMs: 400 });
    const { pieces, out } = await ask(['Count']);
    expect(out).toBe('one two three four five six seven eight\n');
    const [first, last] = [pieces[0]!, pieces.findLast(({ text }) => text.trim() !== '')!];
    expect(last.at - first.at).toBeGreaterThan(200);
  });

  it('takes the question from a pipe', async () => {
    expect((await ask([], { input: 'From the pipe?\n' })).code).toBe(0);
    expect(asked()[0]).toContain('From the pipe?');
  });

  it.each([
    [
      'too much in a pipe',
      [],
      'word '.repeat(20_000),
      'Save the text as a file of the project, and send it with --file.\n',
    ],
    [
      'no thread',
      ['--continue', '00000000-0000-4000-8000-000000000000'],
      'Hm?',
      /omit --continue to start a new thread/i,
    ],
  ])('says by which flag to do otherwise: %s', async (_, args, input, next) => {
    const { code, err } = await ask(args, { input });
    expect(code).not.toBe(0);
    expect(err).toMatch(next);
    expect(err).not.toMatch(/absolute_file_paths|continuation_id/);
  });

  it('prints a long answer to its end as JSON too, whatever MCP replies are kept to', async () => {
    const answer = 'A long line of words.\n'.repeat(2_000);
    vendor.script({ answer });
    const { out } = await ask(['Tell all', '--json'], { env: { MAX_MCP_OUTPUT_TOKENS: '1000' } });
    expect(JSON.parse(out).content).toBe(answer);
  });

  it('adds what is piped in to the question', async () => {
    await ask(['Review this'], { input: '+ added line\n' });
    expect(asked()[0]).toContain('Review this\n\n+ added line');
  });

  it.each([
    ['Windows-1252', Buffer.from('Le café de la gare est fermé', 'latin1')],
    ['UTF-16, as PowerShell writes it', Buffer.from('\ufeffLe café de la gare est fermé\r\n', 'utf16le')],
  ])('reads a pipe as it reads files: %s', async (_, input) => {
    await ask(['Translate'], { input });
    expect(asked()[0]).toContain('Translate\n\nLe café de la gare est fermé\n');
  });

  it('sends no model what is piped in and is no text, but names between NUL characters', async () => {
    const run = await ask(['What is it?'], {
      input: Buffer.from(Array.from({ length: 2_000 }, (_, at) => (at * 37) % 256)),
    });
    expect(run).toMatchObject({ code: 2, err: expect.stringContaining('The input is not text in UTF-8 or UTF-16.') });
    expect(asked()).toEqual([]);
    await ask(['Which?'], { input: Buffer.from('src/a.ts\0src/b.ts\0') });
    expect(asked()[0]).toContain('src/b.ts');
  });

  it('shows files and lines, by paths from the working directory', async () => {
    await ask(['Why?', '--file', 'a.ts:2-2', '--file', '../src/a.ts'], { cwd: project.path('src') });
    expect(asked()[0]).toContain('const two = 2;');
  });

  it('shows only the lines that were named', async () => {
    await ask(['Why?', '--file', 'src/a.ts:2-2']);
    expect(asked()[0]).toContain('const two = 2;');
    expect(asked()[0]).not.toContain('const three');
  });

  it('says on stderr what the reply warns of, as of a default model that there is not', async () => {
    const { code, out, err } = await ask(['Hi', '--default-model', 'gtp-5']);
    expect(code).toBe(0);
    expect(out).toBe('Answer 1.\n');
    expect(err).toMatch(/^polylogue: The default model was passed over: .*"gtp-5"/);
  });

  it('says on stderr which of the named files were not sent, and answers all the same', async () => {
    await project.write('.env', 'KEY=1\n');
    const { code, err, out } = await ask(['Why?', '--file', 'src/a.ts', '--file', '.env']);
    expect({ code, out }).toEqual({ code: 0, out: 'Answer 1.\n' });
    expect(err).toMatch(/not read: .*\.env: /);
  });

  it('reads what is named wherever it is, but for secret files, and sends pictures as such', async () => {
    const elsewhere = await tempProject({
      'notes/a.md': 'Three ideas.\n',
      '.env': 'KEY=1\n',
      'shot.PNG': Buffer.from(png, 'base64'),
    });
    try {
      const names = ['notes/a.md:1-1', 'shot.PNG', 'gone.md', '.env'];
      const { err } = await ask(['What is there?', ...names.flatMap(name => ['--file', elsewhere.path(name)])]);
      expect(asked()[0]).toContain('Three ideas.');
      expect(err).toContain(`not read: There is no ${elsewhere.path('gone.md')}.\n`);
      expect(err).not.toContain('readable only inside');
      expect(JSON.stringify(vendor.requests[0]?.body)).toContain(`data:image/png;base64,${png}`);
      expect(err).toMatch(/polylogue: not read: .*\.env: Blocked.*\n$/);
      const later = await ask(['And then?', '--continue', 'last']);
      expect(asked()[1]).toContain('Three ideas.');
      expect(later.err).toMatch(/a\.md: The model has it as it was sent before\. Files are readable only inside/);
    } finally {
      await elsewhere.dispose();
    }
  });

  it('goes on with the last thread', async () => {
    await ask(['My name is Ada.']);
    await ask(['Who am I?', '--continue', 'last']);
    expect(asked()[1]).toContain('My name is Ada.');
  });

  it('asks the model that is named', async () => {
    const { out } = await ask(['Hello', '--model', 'gpt-5', '--json']);
    expect(JSON.parse(out)).toMatchObject({ status: 'continuation_available', metadata: { model_used: 'gpt-5' } });
  });

  it('prints one document with --json, for errors too', async () => {
    vendor.byDefault({ fault: 'status', status: 401 });
    const { code, out } = await ask(['Hello', '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ status: 'error', error: { provider: 'openai' } });
  });

  it('says what was wrong and what to do, with exit code 1, when the vendor refuses the key', async () => {
    vendor.byDefault({ fault: 'status', status: 401 });
    const { code, out, err } = await ask(['Hello']);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('OPENAI_API_KEY');
  });

  it('refuses an empty question with exit code 2 and an example', async () => {
    const { code, err } = await ask([]);
    expect(code).toBe(2);
    expect(err).toContain('polylogue ask "');
    expect(vendor.requests).toHaveLength(0);
  });

  it('ends the call at the vendor when it is interrupted, and keeps the question', async () => {
    vendor.script({ fault: 'slow_drip', chunkDelayMs: 50 });
    const { code, err } = await ask(['A long story'], { interrupt: 'SIGINT' });
    expect(code).toBe(1);
    expect(err).toContain('polylogue:');
    await vendor.requests[0]!.aborted;
    const env = { PROJECT_ROOT: project.root, POLYLOGUE_HOME: project.path('.home') };
    const { out } = await runProgram(['threads', 'read', 'last'], { cwd: project.root, env });
    expect(out).toContain('A long story');
    expect(out).toContain('interrupted');
  });

  it('takes the flags that set options, before or after the command', async () => {
    for (const args of [
      ['--offline', 'ask', 'Hello'],
      ['ask', '--offline', 'Hello'],
    ]) {
      const { out } = await runProgram(args, { cwd: project.root, env: { POLYLOGUE_PRIVATE: '1' } });
      expect(out).toContain('offline-');
    }
  });
});
