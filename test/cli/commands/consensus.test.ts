import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { runProgram } from '../run-program.ts';

let vendors: { openai: FakeVendor; anthropic: FakeVendor };
let project: TempProject;

const textOf = ({ messages }: RecordedRequest) => messages.map(({ text }) => text).join('\n');
const answering = (verdict: string) => ({
  answer: (request: RecordedRequest) =>
    textOf(request).includes('"minority_view"')
      ? '{"recommendation":"Do it in steps.","agreement":["It is feasible."],"disagreement":[],"minority_view":"Wait.","next_steps":["Measure."]}'
      : `## Verdict\n${verdict}\n**Position:** support\n## Confidence\n8/10 – seen before.`,
});

beforeEach(async () => {
  const [openai, anthropic] = await Promise.all([startOpenAi(), startAnthropic()]);
  vendors = { openai, anthropic };
  openai.byDefault(answering('OPENAI: yes.'));
  anthropic.byDefault(answering('ANTHROPIC: yes.'));
  project = await tempProject({ 'src/a.ts': 'const one = 1;\n' });
});

afterEach(async () => {
  await Promise.all(Object.values(vendors).map(vendor => vendor.close()));
  await project.dispose();
});

function consensus(...args: string[]) {
  const env = {
    ...vendorEnv({ openai: vendors.openai.url, anthropic: vendors.anthropic.url }),
    PROJECT_ROOT: project.root,
    POLYLOGUE_HOME: project.path('.home'),
  };
  return runProgram(['consensus', ...args], { cwd: project.root, env });
}

const asked = () =>
  Object.values(vendors).flatMap(({ requests }) => requests.filter(each => each.dialect !== 'models'));
const panel = ['--models', 'openai:gpt-4.1,anthropic:claude-sonnet-4-5'];

describe('polylogue consensus', () => {
  it('prints each verdict with its model, and what they come to', async () => {
    const { code, out, err } = await consensus('Split', 'the parser?', ...panel, '--file', 'src/a.ts');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const titles = out.match(/^## .*(?=\n\n)/gm);
    expect(titles).toEqual([
      '## Expert A: openai:gpt-4.1 (neutral)',
      '## Expert B: anthropic:claude-sonnet-4-5 (neutral)',
      '## Synthesis',
      '## Agreement',
      '## Minority view',
      '## Confidence',
      '## Next steps',
    ]);
    for (const part of [
      'OPENAI: yes.',
      'ANTHROPIC: yes.',
      'Do it in steps.',
      '- It is feasible.',
      'Wait.',
      '- Measure.',
    ])
      expect(out).toContain(part);
    const [question] = asked().map(textOf);
    expect(question).toContain('Split the parser?');
    expect(question).toContain('const one = 1;');
  });

  it('goes into a second round when told to', async () => {
    await consensus('Split?', ...panel, '--rounds', '2', '--synthesizer', 'openai:gpt-4.1');
    expect(asked()).toHaveLength(5);
  });

  it('stops before more is spent than allowed, and says so', async () => {
    const { code, err } = await consensus('Split?', ...panel, '--max-cost', '0.000001');
    expect(code).toBe(1);
    expect(err).toMatch(/max_cost_usd/);
    expect(asked()).toEqual([]);
  });

  it('prints the others and ends with 1 when one model fails', async () => {
    vendors.anthropic.byDefault({ fault: 'status', status: 401 });
    const { code, out, err } = await consensus('Split?', ...panel);
    expect(code).toBe(1);
    expect(out).toContain('OPENAI: yes.');
    expect(err).toContain('polylogue: anthropic:claude-sonnet-4-5: ');
  });

  it('prints one document with --json', async () => {
    const { code, out } = await consensus('Split?', ...panel, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      status: 'consensus_complete',
      consensus: { recommendation: 'Do it in steps.' },
    });
  });

  it.each([[[]], [['x', '--max-cost', 'much']], [['x', '--rounds', '7']]])(
    'refuses %j with exit code 2',
    async args => {
      expect((await consensus(...args)).code).toBe(2);
      expect(asked()).toEqual([]);
    },
  );
});
