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
  project = await tempProject({ 'a.ts': 'const one = 1;\n' });
});

afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await vendor.close();
  await project.dispose();
});

function chat(lines: readonly string[] | string, ...args: string[]) {
  const env = {
    ...vendorEnv({ openai: vendor.url }),
    DEFAULT_MODEL: 'gpt-5-mini',
    PROJECT_ROOT: project.root,
    POLYLOGUE_HOME: project.path('.home'),
  };
  return runProgram(['chat', ...args], {
    cwd: project.root,
    env,
    input: typeof lines === 'string' ? lines : `${lines.join('\n')}\n`,
  });
}

const asked = () => vendor.requests.filter(({ dialect }) => dialect !== 'models');

describe('polylogue chat', () => {
  it('holds one thread over all questions, with files, models, lines that continue and what it cost', async () => {
    vendor.script({ answer: 'Alpha is one.' }, { answer: 'Beta is two.' }, { answer: 'A new start.' });
    const lines = [
      '/file a.ts',
      'What is alpha?',
      '/model gpt-5.2',
      'And \\',
      'beta?',
      '/cost',
      '/new',
      'Who are you?',
    ];
    const { code, out, err } = await chat(lines);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(
      /With the next question: .*a\.ts\n.*Alpha is one\.\n.*gpt-5\.2\nBeta is two\.\nQuestions: 2, 0\.\d+ USD\n/s,
    );
    const [first, second, third] = asked();
    expect(first).toMatchObject({
      parameters: expect.stringContaining('gpt-5-mini'),
      canonical: expect.stringContaining('const one = 1;'),
    });
    expect(second).toMatchObject({
      parameters: expect.stringContaining('gpt-5.2'),
      canonical: expect.stringMatching(/Alpha is one\.[\s\S]*And \\?n?\s*beta\?/),
    });
    expect(second?.canonical.split('const one = 1;')).toHaveLength(2);
    expect(third?.canonical).not.toContain('Alpha');
  });

  it.each(['/fiel a.ts', '/model nope', '/file nope.ts'])(
    'asks nothing behind %s, which fails, in a script',
    async line => {
      const { code, err } = await chat(['First?', line, 'Not asked']);
      expect(code).toBe(1);
      expect(err).toMatch(
        /Unknown command "\/fiel"\. Did you mean "\/file"\?|Unknown model "nope"|There is no .*nope\.ts/,
      );
      expect(asked()).toHaveLength(1);
    },
  );

  it('asks what is not finished when the input ends', async () => {
    expect((await chat('What is \\\nalpha?\\')).code).toBe(0);
    expect(asked()[0]?.canonical).toMatch(/What is \\?n?\s*alpha\?/);
  });

  it('drops files that cannot be sent, keeps those of another failure, and none in a new thread', async () => {
    await project.write('big.txt', 'word '.repeat(2_000_000));
    const big = await chat(['/file big.txt', 'What is in it?', 'And without?']);
    expect(big.code).toBe(1);
    expect(big.err).toMatch(/\(LIMIT\)[\s\S]*The next question goes without .*big\.txt; "\/file PATH" sends others\./);
    expect(asked()).toHaveLength(1);
    vendor.script({ fault: 'status', status: 400 }, { answer: 'One.' });
    const kept = await chat(['/file a.ts', 'What is in it?', 'Again?', '/file a.ts', '/new', 'Empty?']);
    expect(kept.err).toMatch(/The next question goes with .*a\.ts; "\/file" sends none\./);
    expect(asked().map(({ canonical }) => canonical.includes('const one = 1;'))).toEqual([false, true, true, false]);
  });

  it('goes on with the last thread, and says what is wrong without ending', async () => {
    await chat(['What is alpha?']);
    vendor.script({ fault: 'status', status: 401 }, { answer: 'Beta is two.' });
    const { code, err } = await chat(['Once?', 'And beta?', '/quit', 'Not asked'], '--continue', 'last');
    expect(code).toBe(1);
    expect(err).toMatch(/401[\s\S]*OPENAI_API_KEY/);
    expect(asked().at(-1)?.canonical).toContain('What is alpha?');
    expect(asked().at(-1)?.canonical).not.toContain('Not asked');
  });

  it('prints one document for each question with --json', async () => {
    const { out } = await chat(['What is alpha?', '/cost'], '--json');
    expect(JSON.parse(out)).toMatchObject({ status: expect.any(String), continuation_offer: {} });
  });
});
