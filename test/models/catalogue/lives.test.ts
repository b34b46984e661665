import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { autoPicks, picksTable, retiredAmong, vendors } from '../../../scripts/auto-picks.ts';
import { catalogueFiles, readFacts } from '../../../scripts/catalogue.ts';
import { changesSince, reportOf } from '../../../scripts/catalogue-report.ts';
import type { Clock } from '../../../src/core/ports.ts';
import { createModelService } from '../../../src/models/call/models.ts';
import type { ModelRequest, RoutingPolicy } from '../../../src/models/routing/roster.ts';
import { providers } from '../../../src/providers/index.gen.ts';
import { aheadBy, realClock } from '../../support/clock.ts';
import { testProduct } from '../../support/product.ts';
import { seededRandom } from '../../support/random.ts';
import { answerWith, redirectHost } from '../../support/stub-dispatcher.ts';
import { tempProject } from '../../support/temp-project.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { noPolicy } from '../routing-fixtures.ts';

const factsText = readFileSync(new URL('../../../scripts/data/model-facts.jsonl', import.meta.url), 'utf8');

const restore: (() => void)[] = [];
afterEach(() => {
  for (const undo of restore.splice(0).reverse()) undo();
});

/** Time that runs on, from a day on. */
function clockAt(day: string): Clock {
  const real = realClock();
  const shift = Date.parse(day) - real.now();
  return aheadBy(real, () => shift);
}

/** The vendors answer nothing but their lists, where they are given: ids by host. */
function onlyLists(lists: Record<string, string[]> = {}) {
  restore.push(
    answerWith(({ hostname }) => {
      const ids = lists[hostname];
      const body = JSON.stringify({ object: 'list', data: ids?.map(id => ({ id })) });
      return ids ? { status: 200, body } : { status: 503, body: '' };
    }),
  );
}

interface Setting {
  settings?: Record<string, Record<string, string>>;
  policy?: Partial<RoutingPolicy>;
  files?: { provider: string; document: unknown }[];
}

function team(day: string, { settings, policy, files }: Setting = {}) {
  const keys = Object.fromEntries(vendors.map(id => [id, { apiKey: 'test-key' }]));
  return createModelService({
    definitions: providers,
    settings: settings ?? keys,
    policy: { ...noPolicy, ...policy },
    maxThinkingTokens: 32_000,
    clock: clockAt(day),
    random: seededRandom(1),
    emit: () => undefined,
    sources: { files },
  });
}

const asked = (name: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  name,
  category: 'balanced',
  needs: {},
  ...more,
});

/** Each with the day from which its vendor does not serve it. */
const ends = [
  ['openai', 'gpt-5', '2026-12-11', 'gpt-6.1-sol'],
  ['anthropic', 'claude-sonnet-4-5', '2026-11-30', 'claude-sonnet-5-5'],
  ['minimax', 'MiniMax-M2.7', '2026-11-18', 'MiniMax-M3.1-Flash'],
  ['google', 'gemini-2.5-pro', '2026-12-01', 'gemini-3.8-flash'],
  // Its replacement was retired, too: the last one counts.
  ['google', 'gemini-2.0-flash', '2026-06-01', 'gemini-3.5-flash-lite'],
  ['moonshot', 'moonshot-v1-32k', '2026-08-31', 'kimi-k3'],
] as const;

const justBefore = (day: string) => new Date(Date.parse(day) - 3_600_000).toISOString();

describe.each(ends)("a vendor's model before and after its end: %s:%s", (provider, id, end, heir) => {
  const alone = { settings: { [provider]: { apiKey: 'test-key' } } };

  it('works with a warning until then, and then its name gets an error that says what took its place', async () => {
    onlyLists();
    const early = await team(justBefore(end), alone).route(asked(id));
    expect(early.candidates[0]?.model).toMatchObject({ provider, id, status: 'deprecated' });
    expect(early.warnings.join(' ')).toContain(`retired by its vendor on ${end}; use `);
    for (const name of [id, `${provider}:${id}`, `${id.toUpperCase()}`]) {
      await expect(team(end, alone).route(asked(name))).rejects.toMatchObject({
        message: expect.stringContaining(`retired by ${provider} on ${end}; "${heir}" takes its place`),
        details: { code: 'MODEL_NOT_FOUND', class: 'retired', next: `Use "${heir}", or "auto".` },
      });
    }
  });

  it('is the last choice until then, and none afterwards', async () => {
    onlyLists();
    const only = { ...alone, policy: { allowed: { [provider]: [id] } } };
    expect((await team(justBefore(end), only).route(asked('auto'))).candidates[0]?.model.id).toBe(id);
    await expect(team(end, only).route(asked('auto'))).rejects.toMatchObject({ details: { code: 'MODEL_NOT_FOUND' } });
  });

  it('stays where the operator has it from elsewhere', async () => {
    onlyLists();
    const gateway = { settings: { [provider]: { apiKey: 'test-key', baseUrl: 'https://models.example.test/v1' } } };
    const found = await team('2027-06-01', gateway).route(asked(id));
    expect(found.candidates[0]?.model).toMatchObject({ provider, id });
    const files = [{ provider, document: { models: [{ model_name: id, intelligence_score: 12 }] } }];
    expect((await team('2027-06-01', { ...alone, files }).route(asked(id))).candidates[0]?.model.id).toBe(id);
  });
});

describe('retired models', () => {
  it('are not offered, nor do they stand in for others', async () => {
    onlyLists();
    const ids = async (day: string) =>
      (await team(day).providers()).flatMap(({ models }) => models.map(({ provider, id }) => `${provider}:${id}`));
    expect(await ids('2026-10-12')).toEqual(expect.arrayContaining(['minimax:MiniMax-M2.7', 'openai:gpt-4o']));
    const now = await ids('2026-11-23');
    const gone = readFacts(factsText).filter(
      fact => fact.provider !== 'ollama' && fact.retired && fact.retired <= '2026-11-23',
    );
    expect(gone.length).toBeGreaterThan(30);
    expect(gone.map(({ provider, id }) => `${provider}:${id}`).filter(name => now.includes(name))).toEqual([]);
    const policy = { allowed: { openai: ['gpt-5.2'], minimax: ['MiniMax-M2.7'] } };
    const settings = { openai: { apiKey: 'test-key' }, minimax: { apiKey: 'test-key' } };
    const standIns = async (day: string) =>
      (await team(day, { policy, settings }).route(asked('gpt-5.2', { allowFallback: true }))).candidates
        .slice(1)
        .map(({ model }) => model.id);
    expect(await standIns('2026-10-18')).toEqual(['MiniMax-M2.7']);
    expect(await standIns('2026-11-18')).toEqual([]);
  });

  it('are there after all while their vendor lists them after that day', async () => {
    const settings = { groq: { apiKey: 'test-key' } };
    onlyLists({ 'api.groq.com': ['qwen/qwen3-32b', 'openai/gpt-oss-120b'] });
    const listed = await team('2026-11-23', { settings }).route(asked('groq:qwen/qwen3-32b'));
    expect(listed.candidates[0]?.model.status).toBe('deprecated');
    onlyLists({ 'api.groq.com': ['openai/gpt-oss-120b'] });
    await expect(team('2026-11-23', { settings }).route(asked('groq:qwen/qwen3-32b'))).rejects.toMatchObject({
      details: { class: 'retired', next: 'Use "openai/gpt-oss-120b", or "auto".' },
    });
  });

  it('get the same error where nobody has a key of their vendor', async () => {
    onlyLists();
    const elsewhere = team('2026-11-23', { settings: { google: { apiKey: 'test-key' } } });
    for (const name of ['openai:gpt-4-turbo', 'grok-3', 'o4-mini']) {
      await expect(elsewhere.route(asked(name))).rejects.toMatchObject({ details: { class: 'retired' } });
    }
    await expect(elsewhere.route(asked('openai:gpt-5.2'))).rejects.toMatchObject({ details: { class: 'no_key' } });
  });

  it('cost what was announced from the day on for which it was', async () => {
    onlyLists();
    const price = async (day: string) => (await team(day).route(asked('gemini-3.8-flash'))).candidates[0]?.model.price;
    expect(await price('2026-12-31')).toMatchObject({ in: 0.75, out: 3.75 });
    expect(await price('2027-01-01')).toMatchObject({ in: 1.5, out: 7.5 });
  });

  it('are refused in a call of a tool, before anybody is asked, and are not in its lists', async () => {
    const vendor = await startOpenAi({ models: [{ id: 'gpt-6.2-sol' }, { id: 'gpt-6-luna' }] });
    const project = await tempProject({});
    restore.push(redirectHost('api.openai.com', vendor.url));
    const env = { OPENAI_API_KEY: 'test-key' };
    const polylogue = await testProduct({ root: project.root, env, clock: clockAt('2026-11-23') });
    try {
      for (const model of ['gpt-4-turbo', 'o4-mini', 'o1']) {
        const reply = await polylogue.call('chat', { prompt: 'Hi', model });
        expect(reply).toMatchObject({ isError: true });
        expect(JSON.stringify(reply)).toMatch(
          /retired by openai on 2026-10-23; \\"gpt-5\.6-(sol|terra)\\" takes its place/,
        );
      }
      expect(vendor.requests.filter(({ dialect }) => dialect !== 'models')).toEqual([]);
      const lists = JSON.stringify([await polylogue.call('listmodels'), await polylogue.call('list_models')]);
      expect(lists).toContain('gpt-6.2-sol');
      for (const id of ['gpt-4-turbo', 'o4-mini', 'gpt-3.5-turbo', 'gpt-5.1-codex'])
        expect(lists).not.toContain(`${id}"`);
      const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'auto' });
      expect(reply.metadata?.model_used, JSON.stringify(reply)).toMatch(/^gpt-(5\.6|6)/);
    } finally {
      await polylogue.close();
      await project.dispose();
      await vendor.close();
    }
  });
});

describe('what auto picks', () => {
  it('is no retired model on any day, with any set of keys', async () => {
    for (const day of ['2026-11-23', '2027-06-01']) {
      const picks = await autoPicks(day);
      expect(picks).toHaveLength(16 * 27);
      expect(retiredAmong(picks, day, factsText)).toEqual([]);
      expect(picks.filter(({ candidates, capability }) => candidates.length === 0 && capability === 'text')).toEqual(
        [],
      );
    }
  });

  it('is printed with its price, and a retired one is found', async () => {
    const pick = {
      keys: 'openai',
      category: 'balanced' as const,
      size: 2_000,
      capability: 'text',
      candidates: ['openai:o1'],
      usd: 0.5,
    };
    expect(retiredAmong([pick], '2026-10-22', factsText)).toEqual([]);
    expect(retiredAmong([pick], '2026-10-23', factsText)).toEqual(['openai:o1']);
    expect(picksTable([pick])).toContain('| openai | balanced | 2,000 | openai:o1 $0.5000 |');
  });
});

describe('the report', () => {
  const sheet = { provider: 'openai', id: 'gpt-x', context: 9_000 };
  const source = 'https://vendor.example.test/models';

  it('names rows without a source, and those that nobody looked at for 90 days, but no retired ones', () => {
    const rows = [
      sheet,
      { ...sheet, id: 'fresh', source, checked: '2026-08-25' },
      { ...sheet, id: 'old', source, checked: '2026-08-24' },
      { ...sheet, id: 'gone', source, checked: '2025-01-01', retired: '2026-11-23' },
      { ...sheet, id: 'going', source, checked: '2025-01-01', retired: '2026-11-24' },
    ];
    const { unsourced, old, text } = reportOf(rows, '2026-11-23');
    expect(unsourced).toEqual(['openai:gpt-x']);
    expect(old).toEqual(['openai:old', 'openai:going']);
    expect(text).toContain('5 rows, 1 of them retired by 2026-11-23');
  });

  it('says what models.dev has otherwise: new, gone, windows, prices, ends', () => {
    const model = (id: string, context: number, input: number) => ({
      id,
      name: id,
      tool_call: true,
      modalities: { input: ['text', 'image'], output: ['text'] },
      limit: { context, output: 8_192 },
      cost: { input, output: 10 },
    });
    const models = Object.fromEntries(
      [
        model('gpt-6.2-sol', 1_050_000, 3),
        model('gpt-7', 2_000_000, 1),
        { ...model('gpt-6-luna', 900_000, 0.1), status: 'deprecated' },
      ].map(each => [each.id, each]),
    );
    const changes = changesSince(JSON.stringify({ openai: { models } }), '2026-11-23');
    expect(changes).toContain('- [ ] openai:gpt-6.2-sol: price: $2 in, $10 out → $3 in, $10 out');
    expect(changes).toContain('- [ ] openai:gpt-7: new: 2000000 tokens, $1 in, $10 out');
    expect(changes).toContain('- [ ] openai:gpt-6-luna: window: 1050000 → 900000');
    expect(changes).toContain('- [ ] openai:gpt-6-luna: deprecated: false → true');
    expect(changes).toContain('- [ ] openai:gpt-6-astra: gone');
    expect(changes.join()).not.toContain('gpt-4-turbo');
  });

  it('every row has its source, and the page has the lives and prices of all of them', () => {
    const facts = readFacts(factsText);
    expect(facts.filter(({ source, checked }) => !source || !checked).map(({ id }) => id)).toEqual([]);
    for (const { provider, id, replacedBy } of facts) {
      if (replacedBy === undefined || /image/.test(replacedBy)) continue;
      expect(
        facts.some(fact => fact.provider === provider && fact.id === replacedBy),
        `${id} → ${replacedBy}`,
      ).toBe(true);
    }
    const page = catalogueFiles(factsText).get('docs/reference/models.md') ?? '';
    for (const { id } of facts) expect(page).toContain(`| \`${id}\` |`);
    expect(page).toMatch(
      /\| `gpt-5` \|.*deprecated 2026-06-11, retired 2026-12-11, replaced by `gpt-6.1-sol` \| \[2026-11-23\]\(https:/,
    );
    expect(page).toContain('| `zhipu` | $10 per 1,000 |');
  });
});
