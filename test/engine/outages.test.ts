import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/core/ports.ts';
import { aheadBy } from '../support/clock.ts';
import { fastClock } from '../support/fast-clock.ts';
import { type Document, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, Step } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startAzure } from '../support/vendors/start-azure.ts';
import { startDeepSeek } from '../support/vendors/start-deepseek.ts';
import { startDial } from '../support/vendors/start-dial.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startGroq } from '../support/vendors/start-groq.ts';
import { startMinimax } from '../support/vendors/start-minimax.ts';
import { startMoonshot } from '../support/vendors/start-moonshot.ts';
import { startOllama } from '../support/vendors/start-ollama.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../support/vendors/start-openrouter.ts';
import { startXai } from '../support/vendors/start-xai.ts';
import { startZhipu } from '../support/vendors/start-zhipu.ts';

interface Wire {
  start(): Promise<FakeVendor>;
  env(url: string): Record<string, string>;
}

const known = (id: keyof Parameters<typeof vendorEnv>[0], start: () => Promise<FakeVendor>): Wire => ({
  start,
  env: url => vendorEnv({ [id]: url }),
});

const wires = {
  google: known('google', () => startGoogle()),
  openai: known('openai', () => startOpenAi()),
  anthropic: known('anthropic', () => startAnthropic()),
  openrouter: known('openrouter', () => startOpenRouter()),
  xai: known('xai', () => startXai()),
  groq: known('groq', () => startGroq()),
  deepseek: known('deepseek', () => startDeepSeek()),
  moonshot: known('moonshot', () => startMoonshot()),
  zhipu: known('zhipu', () => startZhipu()),
  minimax: known('minimax', () => startMinimax()),
  ollama: known('ollama', () => startOllama({ models: [{ id: 'llama3.2:latest' }] })),
  azure: {
    start: () => startAzure({ prod: 'gpt-4.1' }),
    env: url => ({ ...vendorEnv({ azure: url }), AZURE_OPENAI_DEPLOYMENTS: 'prod=gpt-4.1' }),
  },
  dial: {
    start: () => startDial({ models: [{ id: 'house-model', window: 100_000 }] }),
    env: url => ({ DIAL_API_HOST: url, DIAL_API_KEY: 'test-key' }),
  },
  custom: {
    start: () => startOpenAi({ models: [{ id: 'own-model', window: 32_000 }] }),
    env: url => ({ CUSTOM_API_URL: url, CUSTOM_API_KEY: 'test-key' }),
  },
} satisfies Record<string, Wire>;
type Id = keyof typeof wires;
const ids: readonly Id[] = [
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
  'ollama',
  'azure',
  'dial',
  'custom',
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
  vendors = new Map(await Promise.all(ids.map(async id => [id, await wires[id].start()] as const)));
});
afterAll(async () => {
  for (const each of vendors.values()) await each.close();
  await project.dispose();
});

type Polylogue = Awaited<ReturnType<typeof testProduct>>;

/** A product with these providers alone. */
async function withProviders(pair: readonly Id[], clock: Clock, use: (polylogue: Polylogue) => Promise<void>) {
  const env = {
    ...Object.assign({}, ...pair.map(id => wires[id].env(vendor(id).url))),
    POLYLOGUE_STORE: 'memory',
    POLYLOGUE_TOOLSETS: 'core,wrapper',
  };
  const polylogue = await testProduct({ root: project.root, env, clock });
  try {
    await use(polylogue);
  } finally {
    await polylogue.close();
  }
}

/** What came of a call while the one is dead, and how many requests each got. */
async function during<Result>([dead, healthy]: readonly [Id, Id], death: Step, call: () => Promise<Result>) {
  vendor(dead).byDefault(death);
  vendor(healthy).byDefault({ answer: 'Here.' });
  const before = [asked(dead), asked(healthy)] as const;
  const result = await call();
  return { result, atDead: asked(dead) - before[0], atHealthy: asked(healthy) - before[1] };
}

/** By this time a provider that failed is asked again. */
const recoveredMs = 600_000;

it('a question is answered for every ordered pair of providers, of which the first is dead', async () => {
  const wrong = new Map(Object.keys(deaths).map(name => [name, new Set<string>()]));
  const tried = new Map<Id, number>();
  let pairs = 0;
  for (const [at, one] of ids.entries()) {
    for (const other of ids.slice(at + 1)) {
      let skippedMs = 0;
      const fast = fastClock(100);
      const clock = aheadBy(fast, () => skippedMs);
      await withProviders([one, other], clock, async polylogue => {
        for (const pair of [[one, other] as const, [other, one] as const]) {
          pairs += 1;
          for (const [name, death] of Object.entries(deaths)) {
            const { result, atDead, atHealthy } = await during(pair, death, () =>
              polylogue.call('chat', { prompt: 'Which of two sorting algorithms is stable, merge sort or heap sort?' }),
            );
            tried.set(pair[0], (tried.get(pair[0]) ?? 0) + atDead);
            const sound = result.isError === false && result.content === 'Here.' && atDead <= 2 && atHealthy > 0;
            const told = `${pair.join(' dead, ')} well: ${atDead} and ${atHealthy} requests, ${result.error?.message}`;
            if (!sound) wrong.get(name)?.add(told);
            skippedMs += recoveredMs;
          }
        }
      });
    }
  }
  for (const [name, { size }] of wrong) {
    process.stdout.write(`${pairs} pairs, the first ${name}: ${size} went wrong\n`);
  }
  expect([...wrong.values()].flatMap(told => [...told])).toEqual([]);
  expect(pairs).toBe(ids.length * (ids.length - 1));
  // The control: most of them are the better one of some pair, and are tried there.
  const never = ids.filter(id => tried.get(id) === 0);
  process.stdout.write(`never tried first: ${never.join(', ') || 'none'}\n`);
  expect(never.length).toBeLessThan(4);
}, 120_000);

describe.each(Object.keys(deaths))('one provider %s, another is well', name => {
  const death = deaths[name]!;

  const pairs: (readonly [Id, Id])[] = [
    ['deepseek', 'moonshot'],
    ['moonshot', 'deepseek'],
    ['openai', 'anthropic'],
    ['anthropic', 'openai'],
    ['zhipu', 'google'],
    ['google', 'zhipu'],
  ];

  it.each(pairs)('a workflow expert, a panel and a wrapper are answered: %s dead, %s well', async (...pair) => {
    const withPair = async (call: (polylogue: Polylogue) => Promise<Document>) => {
      const outcomes: Awaited<ReturnType<typeof during<Document>>>[] = [];
      await withProviders(pair, fastClock(100), async polylogue => {
        outcomes.push(await during(pair, death, () => call(polylogue)));
      });
      return outcomes[0]!;
    };
    const expert = await withPair(polylogue =>
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

    const panel = await withPair(polylogue => polylogue.call('consensus', { proposal: 'Use a monorepo.' }));
    expect(panel.result).toMatchObject({ isError: false });
    expect(panel.result.responses.length).toBeGreaterThan(1);
    for (const response of panel.result.responses) expect(response).toMatchObject({ status: 'success' });
    expect(panel.atDead).toBeLessThanOrEqual(2);

    const wrapper = await withPair(polylogue => polylogue.call('prompt', { text: 'What is a mutex?' }));
    expect(JSON.stringify(wrapper.result)).toContain('Here.');
    expect(wrapper.atDead).toBeLessThanOrEqual(2);
  });
});
