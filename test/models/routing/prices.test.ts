import { describe, expect, it } from 'vitest';
import type { Candidate, ModelInfo } from '../../../src/core/model.ts';
import { tokenFactor } from '../../../src/core/tokens.ts';
import { estimateCost, quote, usefulAnswer } from '../../../src/models/budget.ts';
import { loadCatalogue } from '../../../src/models/catalogue/model-sources.ts';
import { type Category, isQuick } from '../../../src/models/routing/roster.ts';
import { planBudget } from '../../../src/threads/compaction.ts';
import { resolve, rosterOf, type Situation } from '../routing-fixtures.ts';

const pricing = { isLocal: (id: string) => ['custom', 'ollama'].includes(id), allowUnpriced: false };
const limit = 2;
const policy = { autoCostLimit: limit };

/** Tokens of an answer, the same for all models, so that prices compare. */
const answerTokens = 8_000;

function usd(model: ModelInfo, tokens: number, answer: number): number {
  const prompt = Math.min(Math.max(2_000, tokens * tokenFactor(model.id)), model.window - 12_000);
  const { fixed, perToken } = estimateCost({ model, reason: '' }, prompt, pricing);
  return fixed + Math.min(answer, model.maxOutput) * perToken;
}

/** The most that the call can cost, as it is reserved: the prompt as it may be at the most, and the least answer beside it. */
function worst({ model, maxPrompt = Number.POSITIVE_INFINITY, ...rest }: Candidate, tokens: number): number {
  const room = model.window - Math.min(model.maxOutput, model.window * 0.2);
  const prompt = Math.min(tokens * tokenFactor(model.id), room, maxPrompt);
  const { fixed, perToken } = estimateCost({ model, ...rest }, prompt, pricing);
  const least = usefulAnswer([{ model, ...rest }]).least;
  const affordable = Math.max(least, Math.floor((limit - fixed) / perToken));
  return fixed + Math.min(model.maxOutput, affordable) * perToken;
}

/**
 * The one definition of "would do": current, priced, holds the prompt within the limit (or nearly as much of it as any), and
 * scores at most three below the best of those. A hard task is not for models that were made to be quick, unless the others
 * cost more than half a dollar.
 */
function cheapest(configured: readonly string[], tokens: number, category: Category): number {
  const priced = loadCatalogue().filter(
    ({ provider, status, price }) => configured.includes(provider) && status === 'active' && (price?.out ?? 0) > 0,
  );
  const top = Math.max(...priced.map(({ score }) => score));
  const quoted = priced.map(model => ({
    model,
    holds: quote({ model, reason: '' }, tokens, pricing, { limit }).holds,
  }));
  const near = quoted.filter(({ model }) => model.score >= top - 6);
  const held = near.some(({ holds }) => holds >= 1) ? quoted : near;
  const most = Math.min(1, Math.max(...held.map(({ holds }) => holds)));
  const pool = held.filter(({ holds }) => holds >= (most < 1 ? most * 0.6 : 1)).map(({ model }) => model);
  const best = Math.max(...pool.map(({ score }) => score));
  const alike = pool.filter(({ score }) => score >= best - 3);
  const priceOf = (models: ModelInfo[]) => Math.min(...models.map(model => usd(model, tokens, answerTokens)));
  const thorough = priceOf(alike.filter(model => category !== 'extended_reasoning' || !isQuick(model)));
  return thorough < 0.5 ? thorough : priceOf(alike);
}

const single = [
  'google',
  'openai',
  'xai',
  'anthropic',
  'groq',
  'deepseek',
  'moonshot',
  'zhipu',
  'minimax',
  'openrouter',
];
const sets: string[][] = [
  ...single.map(id => [id]),
  ['openai', 'anthropic'],
  ['openai', 'google'],
  ['deepseek', 'moonshot'],
  ['zhipu', 'moonshot'],
  ['groq', 'openai'],
  single,
];
const sizes = [1_000, 10_000, 100_000, 400_000, 1_000_000, 3_000_000, 8_000_000];
const categories = ['extended_reasoning', 'fast_response'] as const;

/** Bytes of source text for a token. */
const bytesPerToken = 3;

const cases = sets.flatMap(configured =>
  sizes.flatMap(bytes => categories.map(category => ({ configured, bytes, category }))),
);

describe('what an automatic choice costs', () => {
  const rows = cases.map(({ configured, bytes, category }) => {
    const tokens = Math.ceil(bytes / bytesPerToken);
    const { candidates } = resolve('auto', { configured, category, policy, promptTokens: tokens });
    const [first] = candidates;
    const price = usd(first!.model, tokens, answerTokens);
    return { configured, bytes, category, candidates, tokens, price, least: cheapest(configured, tokens, category) };
  });

  it('is within three times the cheapest that would do, and never above the limit', () => {
    const lines = rows.map(({ configured, bytes, category, candidates: [first], tokens, price, least }) =>
      [
        (configured.length > 3 ? 'all' : configured.join('+')).padEnd(18),
        `${bytes / 1_000} kB`.padStart(8),
        category.padEnd(18),
        `${first!.model.provider}:${first!.model.id}`.padEnd(42),
        `worst $${worst(first!, tokens).toFixed(3)}`,
        `usual $${price.toFixed(4)}`,
        Number.isFinite(least) ? `cheapest $${least.toFixed(4)} ratio ${(price / least).toFixed(2)}` : 'trimmed',
      ].join('  '),
    );
    process.stdout.write(`${lines.join('\n')}\n`);
    expect(rows.length).toBeGreaterThanOrEqual(30);
    for (const { candidates, tokens, price, least, bytes, configured } of rows) {
      const told = `${configured} ${bytes}: ${candidates.map(({ model }) => model.id)}`;
      for (const candidate of candidates) expect(worst(candidate, tokens), told).toBeLessThanOrEqual(limit);
      if (Number.isFinite(least)) expect(price / least, told).toBeLessThanOrEqual(3);
    }
  });

  it('spans two providers wherever two are configured', () => {
    for (const { configured, candidates, bytes } of rows) {
      const providers = new Set(candidates.map(({ model }) => model.provider));
      expect(providers.size, `${configured} ${bytes}`).toBeGreaterThanOrEqual(Math.min(2, configured.length));
    }
  });

  const chosen = (situation: Situation) => resolve('auto', { policy, category: 'extended_reasoning', ...situation });

  it('asks for a long file a model that holds it whole beside the answer that is planned for, where one does', () => {
    const cut: string[] = [];
    for (const configured of sets)
      for (const category of categories)
        for (const tokens of [60_000, 110_000, 150_000, 190_000, 233_000, 400_000, 700_000]) {
          const holds = (model: ModelInfo) =>
            tokens * tokenFactor(model.id) <=
            planBudget({ window: model.window, maxOutput: model.maxOutput, reserved: 0 }).rest;
          const found = resolve('auto', { configured, category, policy, promptTokens: tokens });
          const [first] = found.candidates;
          const open = loadCatalogue().filter(
            ({ provider, status }) => configured.includes(provider) && status === 'active',
          );
          const quoteOf = (model: ModelInfo) => quote({ model, reason: '' }, tokens, pricing, { limit });
          const able = open.filter(model => {
            const { usd: price, maxPrompt } = quoteOf(model);
            return price !== undefined && maxPrompt === undefined && holds(model) && model.score >= first!.model.score;
          });
          if (!holds(first!.model) && able.length > 0)
            cut.push(
              `${configured.join('+')} ${tokens} ${category}: ${first!.model.id} for ${able.map(({ id }) => id)}`,
            );
        }
    expect(cut).toEqual([]);
  });

  it('shortens what no window holds, for the model that is as wide and thirty times cheaper', () => {
    const { candidates } = chosen({ configured: ['openai'], promptTokens: 2_700_000 });
    expect(candidates[0]!.model.price!.in).toBeLessThan(5);
    expect(candidates.map(({ model }) => model.id).join()).not.toContain('-pro');
  });

  it('keeps within what is left of a cap, with the prompt made shorter where it must be', () => {
    const wide = { configured: ['anthropic'], promptTokens: 500_000 };
    const [free] = chosen({ ...wide, policy: {} }).candidates;
    const [within] = chosen(wide).candidates;
    expect(usd(free!.model, 500_000, answerTokens)).toBeGreaterThan(limit);
    expect(within!.maxPrompt ?? 1e9).toBeGreaterThan(500_000 * tokenFactor(within!.model.id));
    const tight = chosen({
      configured: ['anthropic'],
      promptTokens: 500_000,
      left: { name: 'MAX_COST_PER_DAY', usd: 5, free: 0.1 },
    });
    const [first] = tight.candidates;
    expect(first!.maxPrompt).toBeLessThan(500_000);
    expect(worst(first!, 500_000)).toBeLessThanOrEqual(0.1 + limit);
    expect(tight.warnings[0]).toContain('$0.10, which MAX_COST_PER_DAY leaves');
    const call = chosen({ ...wide, left: { name: 'AUTO_COST_LIMIT', usd: 2, free: 0.1 } });
    expect(call.warnings[0]).toContain('$0.10, which AUTO_COST_LIMIT leaves');
    const asked = chosen({ ...wide, left: { name: 'max_cost_usd', usd: 0.1, free: 0.1 } });
    expect(asked.warnings[0]).toContain('$0.10, which max_cost_usd leaves');
  });

  it('follows the thread to its model, and leaves it where it has become dear', () => {
    const before = { model: 'anthropic:claude-sonnet-5-5', tokens: 20_000 };
    const stays = chosen({ configured: ['anthropic', 'openai'], promptTokens: 25_000, before });
    expect(stays.candidates[0]!.model.id).toBe('claude-sonnet-5-5');
    const dear = { model: 'anthropic:claude-fable-5-1', tokens: 20_000 };
    const leaves = chosen({ configured: ['anthropic', 'openai'], promptTokens: 300_000, before: dear });
    expect(leaves.candidates[0]!.model.id).not.toBe('claude-fable-5-1');
    expect(leaves.warnings.join()).toContain('This thread used anthropic:claude-fable-5-1');
  });

  it('stays where the cached beginning makes a dearer model the cheaper one', () => {
    const at = (tokens: number) =>
      chosen({
        configured: ['anthropic', 'google'],
        promptTokens: 150_000,
        before: { model: 'anthropic:claude-opus-5-5', tokens },
      }).candidates[0]!.model.id;
    expect(at(0)).not.toBe('claude-opus-5-5');
    expect(at(145_000)).toBe('claude-opus-5-5');
  });

  it('takes a model without a price only where there is no other, and a free one instead of a dear one', () => {
    const base = loadCatalogue().find(({ id }) => id === 'glm-5.3')!;
    const { price: _, ...unpriced } = { ...base, id: 'unpriced', aliases: [], score: 20 };
    const local = { ...unpriced, provider: 'ollama', id: 'local-one', score: 18 };
    const roster = rosterOf(['zhipu', 'ollama'], [base, unpriced, local]);
    expect(chosen({ roster, promptTokens: 400_000 }).candidates[0]!.model.id).toBe('local-one');
    const paid = rosterOf(['zhipu'], [base, unpriced]);
    expect(chosen({ roster: paid, promptTokens: 4_000 }).candidates.map(({ model }) => model.id)).toEqual(['glm-5.3']);
    const alone = rosterOf(['zhipu'], [unpriced]);
    expect(chosen({ roster: alone, promptTokens: 4_000 }).candidates[0]!.model.id).toBe('unpriced');
  });

  it('is no matter for a model that is named', () => {
    const [named] = resolve('gpt-5.4-pro', { configured: ['openai'], policy, promptTokens: 900_000 }).candidates;
    expect(named).toMatchObject({ model: { id: 'gpt-5.4-pro' } });
    expect(named!.auto ?? named!.maxPrompt).toBeUndefined();
    const allowed = resolve('gpt-5.4-pro', {
      configured: ['openai', 'anthropic'],
      policy,
      promptTokens: 150_000,
      allowFallback: true,
    });
    for (const candidate of allowed.candidates.slice(1)) {
      if (candidate.auto) expect(worst(candidate, 150_000)).toBeLessThanOrEqual(limit);
    }
  });
});
