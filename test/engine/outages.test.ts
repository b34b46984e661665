import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fastClock } from '../support/fast-clock.ts';
import { testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, Step } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startDeepSeek } from '../support/vendors/start-deepseek.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startGroq } from '../support/vendors/start-groq.ts';
import { startMinimax } from '../support/vendors/start-minimax.ts';
import { startMoonshot } from '../support/vendors/start-moonshot.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../support/vendors/start-openrouter.ts';
import { startXai } from '../support/vendors/start-xai.ts';
import { startZhipu } from '../support/vendors/start-zhipu.ts';

const starts = {
  google: startGoogle,
  openai: startOpenAi,
  anthropic: startAnthropic,
  openrouter: startOpenRouter,
  xai: startXai,
  groq: startGroq,
  deepseek: startDeepSeek,
  moonshot: startMoonshot,
  zhipu: startZhipu,
  minimax: startMinimax,
};
type Id = keyof typeof starts;
const ids: Id[] = [
  'google',
  'openai',
  'anthropic',
  'openrouter',
  'xai',
  'groq',
  'deepseek',
  'moonshot',
  'zhipu',
  'minimax',
];

const deaths: Readonly<Record<string, Step>> = {
  'answers 500': { fault: 'status', status: 500 },
  'hangs up': { fault: 'reset' },
};

let vendors: Map<Id, FakeVendor>;
let project: TempProject;

const vendor = (id: Id): FakeVendor => vendors.get(id)!;
const asked = (id: Id) => vendor(id).requests.filter(({ dialect }) => dialect !== 'models').length;

beforeAll(async () => {
  project = await tempProject({ 'src/sum.ts': 'export const sum = (a: number, b: number) => a + b;\n' });
  vendors = new Map(await Promise.all(ids.map(async id => [id, await starts[id]({})] as const)));
});
afterAll(async () => {
  for (const each of vendors.values()) await each.close();
  await project.dispose();
});

/** A product with these two providers alone, of which the first is dead. */
async function withPair<Result>(
  [dead, healthy]: readonly [Id, Id],
  death: Step,
  use: (polylogue: Awaited<ReturnType<typeof testProduct>>) => Promise<Result>,
): Promise<{ result: Result; atDead: number; atHealthy: number }> {
  vendor(dead).byDefault(death);
  vendor(healthy).byDefault({ answer: 'Here.' });
  const env = {
    ...vendorEnv({ [dead]: vendor(dead).url, [healthy]: vendor(healthy).url }),
    POLYLOGUE_STORE: 'memory',
    POLYLOGUE_TOOLSETS: 'core,wrapper',
  };
  const polylogue = await testProduct({ root: project.root, env, clock: fastClock(100) });
  const before = [asked(dead), asked(healthy)] as const;
  try {
    const result = await use(polylogue);
    return { result, atDead: asked(dead) - before[0], atHealthy: asked(healthy) - before[1] };
  } finally {
    await polylogue.close();
  }
}

describe.each(Object.keys(deaths))('one provider %s, another is well', name => {
  const death = deaths[name]!;

  it.each(ids)('a question is answered: %s and each other one', async dead => {
    let tried = 0;
    for (const healthy of ids.filter(id => id !== dead)) {
      const told = `${dead} dead, ${healthy} well`;
      const { result, atDead, atHealthy } = await withPair([dead, healthy], death, polylogue =>
        polylogue.call('chat', { prompt: 'Which of two sorting algorithms is stable, merge sort or heap sort?' }),
      );
      expect(result, told).toMatchObject({ isError: false, content: 'Here.' });
      expect(atDead, told).toBeLessThanOrEqual(2);
      expect(atHealthy, told).toBeGreaterThan(0);
      tried += atDead;
    }
    // The control: where it is the better one of two, it is tried.
    process.stdout.write(`${name}, ${dead}: ${tried} requests in ${ids.length - 1} pairs\n`);
  });

  const pairs: (readonly [Id, Id])[] = [
    ['deepseek', 'moonshot'],
    ['moonshot', 'deepseek'],
    ['openai', 'anthropic'],
    ['anthropic', 'openai'],
    ['zhipu', 'google'],
    ['google', 'zhipu'],
  ];

  it.each(pairs)('a workflow expert, a panel and a wrapper are answered: %s dead, %s well', async (...pair) => {
    const expert = await withPair(pair, death, polylogue =>
      polylogue.call('thinkdeep', {
        step: 'Is the sum right for negative numbers?',
        step_number: 1,
        total_steps: 1,
        next_step_required: false,
        findings: 'It looks right.',
        files_checked: ['src/sum.ts'],
        relevant_files: ['src/sum.ts'],
        confidence: 'low',
      }),
    );
    expect(JSON.stringify(expert.result)).toContain('Here.');
    expect(expert.atDead).toBeLessThanOrEqual(2);

    const panel = await withPair(pair, death, polylogue =>
      polylogue.call('consensus', { proposal: 'Use a monorepo.' }),
    );
    expect(panel.result).toMatchObject({ isError: false });
    expect(panel.result.responses.length).toBeGreaterThan(1);
    for (const response of panel.result.responses) expect(response).toMatchObject({ status: 'success' });
    expect(panel.atDead).toBeLessThanOrEqual(2);

    const wrapper = await withPair(pair, death, polylogue => polylogue.call('prompt', { text: 'What is a mutex?' }));
    expect(JSON.stringify(wrapper.result)).toContain('Here.');
    expect(wrapper.atDead).toBeLessThanOrEqual(2);
  });
});
