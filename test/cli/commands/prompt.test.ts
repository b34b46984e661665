import { readdir, readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { type RunOptions, runProgram } from '../run-program.ts';

const both = 'openai:gpt-4.1,anthropic:claude-sonnet-4-5';

let vendors: { openai: FakeVendor; anthropic: FakeVendor };
let project: TempProject;

beforeEach(async () => {
  const [openai, anthropic] = await Promise.all([startOpenAi(), startAnthropic()]);
  vendors = { openai, anthropic };
  openai.byDefault({ answer: 'Paris, says OpenAI.' });
  anthropic.byDefault({ answer: 'Paris, says Anthropic.' });
  project = await tempProject({ 'q.md': 'What is the capital of France?', 'sub/x': '' });
});

afterEach(async () => {
  await Promise.all(Object.values(vendors).map(vendor => vendor.close()));
  await project.dispose();
});

function polylogue(args: string[], options: Partial<RunOptions> = {}) {
  const env = {
    ...vendorEnv({ openai: vendors.openai.url, anthropic: vendors.anthropic.url }),
    PROJECT_ROOT: project.root,
    POLYLOGUE_HOME: project.path('.home'),
  };
  return runProgram(args, { cwd: project.root, ...options, env: { ...env, ...options.env } });
}

const asked = ({ requests }: FakeVendor) =>
  requests.filter(({ dialect }) => dialect !== 'models').map(({ messages }) => messages.at(-1)!.text);

/** The commands of a page and what it shows of their output. */
function recorded(page: string): { command: string; shown: string[] }[] {
  const [, block = ''] = /```console\n([\s\S]*?)```/.exec(page) ?? [];
  return block
    .split(/^\$ polylogue /m)
    .slice(1)
    .map(part => {
      const [command = '', ...lines] = part.trim().split('\n');
      return { command, shown: lines.join('\n').split('[…]') };
    });
}

describe('polylogue prompt', () => {
  it('prints what docs/recipes/ask-many-models.md shows', async () => {
    const page = await readFile(new URL('../../../docs/recipes/ask-many-models.md', import.meta.url), 'utf8');
    await project.write('question.md', 'What is the capital of France?');
    const runs = recorded(page);
    expect(runs).toHaveLength(3);
    for (const { command, shown } of runs) {
      const args = (command.match(/"[^"]*"|\S+/g) ?? []).map(word => word.replaceAll('"', ''));
      const { out, err } = await polylogue(args);
      const said = `${out}${err}`.replaceAll(project.root, '…');
      for (const part of shown) expect(said).toContain(part.trim());
    }
  });

  it('prints every answer below its model, in the order of the request', async () => {
    const run = await polylogue(['prompt', 'What', 'is it?', '--models', both]);
    expect(run).toMatchObject({ code: 0, err: '' });
    expect(run.out).toBe(
      '## openai:gpt-4.1\n\nParis, says OpenAI.\n\n## anthropic:claude-sonnet-4-5\n\nParis, says Anthropic.\n',
    );
    expect(asked(vendors.openai)).toEqual(['What is it?']);
  });

  it('prints the answer alone where one model is asked, and as it arrives', async () => {
    vendors.openai.script({ answer: 'one two three four five six seven eight', chunks: 4, chunkDelayMs: 150 });
    const { code, out, pieces } = await polylogue(['prompt', 'Count', '--models', 'openai:gpt-4.1']);
    expect({ code, out }).toEqual({ code: 0, out: 'one two three four five six seven eight\n' });
    expect(pieces.findLast(({ text }) => text.trim() !== '')!.at - pieces[0]!.at).toBeGreaterThan(200);
  });

  it('takes the text from a pipe, and behind a question', async () => {
    await polylogue(['prompt', '--models', 'openai:gpt-4.1'], { input: 'From the pipe?\n' });
    await polylogue(['prompt', 'Review', '--models', 'openai:gpt-4.1'], { input: '+ a line\n' });
    expect(asked(vendors.openai)).toEqual(['From the pipe?', 'Review\n\n+ a line']);
  });

  it('asks DEFAULT_MODELS when none is named', async () => {
    const { out } = await polylogue(['prompt', 'Where?', '--default-models', both]);
    expect(out).toContain('says OpenAI.');
    expect(out).toContain('says Anthropic.');
  });

  it('tells on stderr which model failed, prints the others, and ends with 1', async () => {
    vendors.anthropic.byDefault({ fault: 'status', status: 401 });
    const { code, out, err } = await polylogue(['prompt', 'Where?', '--models', both]);
    expect(code).toBe(1);
    expect(out).toContain('Paris, says OpenAI.');
    expect(err).toMatch(/^polylogue: anthropic:claude-sonnet-4-5: .*\n$/);
  });

  it('prints one document with --json, for errors too', async () => {
    const fine = await polylogue(['prompt', 'Where?', '--models', both, '--json']);
    const { status, result } = JSON.parse(fine.out);
    expect({ status, count: result.responses.length }).toEqual({ status: 'success', count: 2 });
    const wrong = await polylogue(['prompt', 'Where?', '--models', 'gpt-4.1', '--json']);
    expect(wrong.code).toBe(2);
    expect(JSON.parse(wrong.out)).toMatchObject({ error: { code: 'INVALID_INPUT_FORMAT' } });
    expect(wrong.err).toContain('openai:gpt-4.1');
  });

  it('reads a file by its path from the working directory, and writes files that it names', async () => {
    const cwd = project.path('sub');
    const read = await polylogue(['prompt', '--file', '../q.md', '--models', 'openai:gpt-4.1'], { cwd });
    expect(read).toMatchObject({ code: 0, out: 'Paris, says OpenAI.\n' });
    const write = ['prompt', '--file', '../q.md', '--models', both, '--output-dir', 'answers'];
    const { code, out } = await polylogue(write, { cwd });
    expect(code).toBe(0);
    const paths = out.trim().split('\n');
    expect(paths).toEqual([
      project.path('sub/answers/q_openai_gpt-4.1.md'),
      project.path('sub/answers/q_anthropic_claude-sonnet-4-5.md'),
    ]);
    expect(await readFile(paths[0]!, 'utf8')).toBe('Paris, says OpenAI.');
    const again = await polylogue([...write, '--overwrite'], { cwd });
    expect(again.out).toBe(`${paths[0]} (replaced)\n${paths[1]} (replaced)\n`);
    expect(await readdir(project.path('sub/answers'))).toHaveLength(2);
  });

  it.each([[['prompt']], [['prompt', 'text', '--file', 'q.md']], [['prompt', 'text', '--output-dir', 'out']]])(
    'refuses %j with exit code 2 and an example',
    async args => {
      const { code, err } = await polylogue(args);
      expect(code).toBe(2);
      expect(err).toContain('polylogue prompt "');
      expect(asked(vendors.openai)).toEqual([]);
    },
  );

  it('leaves tools that the operator disabled disabled', async () => {
    const { code, err } = await polylogue(['prompt', 'Where?', '--exclude-tools', 'prompt']);
    expect(code).toBe(2);
    expect(err).toContain('prompt is not offered: it is in DISABLED_TOOLS');
  });

  it('ends the calls at the vendors when it is interrupted', async () => {
    vendors.openai.script({ fault: 'slow_drip', chunkDelayMs: 50 });
    const { code } = await polylogue(['prompt', 'A story', '--models', 'openai:gpt-4.1'], { interrupt: 'SIGINT' });
    expect(code).toBe(1);
    await vendors.openai.requests.find(({ dialect }) => dialect !== 'models')!.aborted;
  });
});
