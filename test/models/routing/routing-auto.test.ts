import { describe, expect, it } from 'vitest';
import { isAppError } from '../../../src/core/errors.ts';
import { loadCatalogue } from '../../../src/models/catalogue/model-sources.ts';
import { modelKey, nameKey, splitSuffix } from '../../../src/models/routing/names.ts';
import type { Category, ModelRequest, RoutingPolicy } from '../../../src/models/routing/roster.ts';
import {
  everyProvider,
  namesOf,
  noPolicy,
  refusalOf,
  resolve,
  resolveModel,
  rosterOf,
  vendors,
} from '../routing-fixtures.ts';

const categories: Category[] = ['extended_reasoning', 'balanced', 'fast_response'];
const firstDesign = {
  openai: ['o3', 'o3-mini', 'o4-mini'],
  xai: ['grok-3', 'grok-3-fast'],
  google: ['gemini-2.5-pro', 'gemini-2.5-flash'],
};

describe('the automatic choice', () => {
  it.each([
    ['extended_reasoning', ['openai/o3', 'xai/grok-3', 'google/gemini-2.5-pro']],
    // grok-3-fast costs five times as much as the others and serves no better.
    ['fast_response', ['openai/o4-mini', 'google/gemini-2.5-flash', 'xai/grok-3']],
    ['balanced', ['openai/o4-mini', 'xai/grok-3', 'google/gemini-2.5-flash']],
  ] as const)("keeps the first design's order for %s when only its models are there", (category, order) => {
    const configured = ['openai', 'xai', 'google'];
    expect(namesOf(resolve('auto', { category, configured, policy: { allowed: firstDesign } }))).toEqual(order);
    const withOpenRouter = { category, configured: [...configured, 'openrouter'], policy: { allowed: firstDesign } };
    expect(namesOf(resolve('auto', withOpenRouter))[0]).toBe(order[0]);
  });

  it("goes down the first design's order as its models are missing", () => {
    const policy = { allowed: firstDesign };
    const google = { configured: ['google'], policy };
    expect(namesOf(resolve('auto', { ...google, category: 'balanced' }))[0]).toBe('google/gemini-2.5-flash');
    expect(namesOf(resolve('auto', { ...google, category: 'extended_reasoning' }))[0]).toBe('google/gemini-2.5-pro');
    const thinking = resolve('auto', { configured: ['google', 'openrouter'], policy, category: 'extended_reasoning' });
    expect(thinking.candidates[1]?.model.provider).toBe('openrouter');
    expect(thinking.candidates[1]?.model.reasoning).toBe(true);
  });

  it('prefers the newest generation once it is there', () => {
    const first = (category: Category, configured: string[]) => namesOf(resolve('auto', { category, configured }))[0];
    expect(first('extended_reasoning', ['anthropic'])).toBe('anthropic/claude-opus-5-5');
    expect(first('fast_response', ['anthropic'])).toBe('anthropic/claude-haiku-5-5');
    expect(first('balanced', ['openai'])).toBe('openai/gpt-6.2-sol');
    expect(first('fast_response', ['google'])).toBe('google/gemini-3.8-flash');
    expect(first('extended_reasoning', ['xai'])).toBe('xai/grok-4.7');
    // A quick question goes to what answers at once, and not to a large model on faster machines for twice its price.
    expect(first('fast_response', ['xai'])).toBe('xai/grok-4.20-0309-non-reasoning');
    expect(first('fast_response', ['moonshot'])).toBe('moonshot/kimi-k2.5');
    expect(first('fast_response', ['minimax'])).toBe('minimax/MiniMax-M3.1-Flash');
  });

  it.each(categories)('picks a sensible model for %s with OpenRouter alone', category => {
    const { candidates } = resolve('auto', { category, configured: ['openrouter'] });
    const [best] = candidates;
    expect(candidates).toHaveLength(3);
    expect(best?.model.score).toBeGreaterThanOrEqual(15);
    expect(best?.model.id).not.toMatch(/:|^~/);
    if (category === 'extended_reasoning') expect(best?.model.reasoning).toBe(true);
    if (category === 'fast_response') expect(best?.model.price?.out).toBeLessThan(2);
  });

  it.each(vendors.filter(id => id !== 'custom'))('finds an active model of %s for every category', provider => {
    for (const category of categories) {
      const [best] = resolve('auto', { category, configured: [provider] }).candidates;
      expect(best?.model).toMatchObject({ provider, status: 'active' });
      expect(best?.reason).toContain(category);
    }
  });

  it('spends less when told to prefer cost, and picks a quick model when told to prefer speed', () => {
    const best = (prefer: RoutingPolicy['prefer']) =>
      resolve('auto', { category: 'extended_reasoning', configured: ['openai'], policy: { prefer } }).candidates[0]!
        .model;
    expect(best('cost').price!.out).toBeLessThan(best('quality').price!.out);
    expect(
      namesOf(resolve('auto', { category: 'balanced', configured: ['openai'], policy: { prefer: 'speed' } }))[0],
    ).toBe('openai/gpt-6-luna');
  });

  it('keeps one of three places for another provider', () => {
    const { candidates } = resolve('auto', { category: 'balanced', configured: ['anthropic', 'groq'] });
    expect(new Set(candidates.map(({ model }) => model.provider)).size).toBe(2);
    expect(new Set(candidates.map(({ model }) => modelKey(model.id))).size).toBe(3);
  });

  it('gives each of three places to another vendor, as long as that is well', () => {
    const configured = ['anthropic', 'openai', 'google'];
    const providersOf = (changes: object = {}) =>
      resolve('auto', { category: 'balanced', configured, ...changes }).candidates.map(({ model }) => model.provider);
    expect(providersOf().toSorted()).toEqual(['anthropic', 'google', 'openai']);
    const [first, second, third] = providersOf();
    const unwell = providersOf({ ailing: ({ provider }: { provider: string }) => provider === third });
    expect(unwell).toHaveLength(3);
    expect(new Set(unwell)).toEqual(new Set([first, second]));
  });

  it('gives no place to another vendor whose model is cheap for holding little of the prompt, before one that holds it', () => {
    const configured = ['anthropic', 'moonshot', 'openai'];
    const prompt = { needs: { window: 920_000 }, promptTokens: 900_000 };
    const place = { category: 'balanced', configured, ...prompt, policy: { autoCostLimit: 2 } } as const;
    const windows = resolve('auto', place).candidates.map(({ model }) => model.window);
    expect(windows.slice(0, 2).every(window => window >= 920_000)).toBe(true);
  });

  it('chooses what sees when there are images, and what holds the prompt', () => {
    const seeing = resolve('auto', { category: 'balanced', configured: ['zhipu'], needs: { vision: true } });
    expect(seeing.candidates.every(({ model }) => model.input.includes('image'))).toBe(true);
    const wide = resolve('auto', { category: 'fast_response', configured: ['zhipu'], needs: { window: 500_000 } });
    expect(wide.candidates.every(({ model }) => model.window >= 500_000)).toBe(true);
    expect(wide.warnings).toEqual([]);
  });

  it('takes the widest with a warning when nothing holds the prompt, and refuses images nobody sees', () => {
    const found = resolve('auto', { configured: ['xai'], needs: { window: 5_000_000 } });
    expect(found.candidates[0]?.model.window).toBe(1_000_000);
    expect(found.warnings[0]).toContain('5000000');
    expect(
      refusalOf('auto', {
        configured: ['deepseek'],
        needs: { vision: true },
        policy: { denied: ['deepseek-flash', 'deepseek-v4-flash'] },
      }).class,
    ).toBe('unmet_needs');
  });

  it('takes a retired model only when nothing else is left', () => {
    const policy = { allowed: { google: ['gemini-2.0-flash', 'gemini-3-pro-preview'] } };
    expect(namesOf(resolve('auto', { configured: ['google'], policy }))).toContain('google/gemini-3-pro-preview');
    const mixed = { allowed: { google: ['gemini-3-pro-preview', 'gemini-2.5-flash-lite'] } };
    expect(namesOf(resolve('auto', { configured: ['google'], policy: mixed }))).toEqual([
      'google/gemini-2.5-flash-lite',
    ]);
  });

  it('takes an effort after the word', () => {
    expect(resolve('auto:high', { configured: ['openai'] }).candidates[0]?.effort).toBe('high');
    expect(resolve('AUTO', { configured: ['openai'], effort: 'low' }).candidates[0]?.effort).toBe('low');
  });

  it('never takes an offline provider, but with --offline nothing else', () => {
    const chosen = namesOf(resolve(undefined, { policy: { offline: true } }));
    expect(chosen.sort()).toEqual(['offline-east/echo-east', 'offline-west/echo-west']);
    expect(namesOf(resolve('auto', { configured: ['openai'] })).join()).not.toContain('offline');
  });

  it('says so when the lists leave nothing', () => {
    const refusal = refusalOf('auto', { configured: ['openai'], policy: { allowed: { openai: ['no-such'] } } });
    expect(refusal).toMatchObject({ code: 'MODEL_NOT_FOUND', class: 'restricted' });
  });
});

describe('the default model', () => {
  it('answers calls without a name, but not those that say auto', () => {
    const policy = { defaultModel: 'o3:high' };
    const found = resolve(undefined, { policy });
    expect(found).toMatchObject({ requested: 'o3:high' });
    expect(found.candidates[0]?.effort).toBe('high');
    expect(resolve('  ', { policy }).candidates[0]?.model.id).toBe('o3');
    expect(resolve('auto', { policy, configured: ['anthropic', 'openai'] }).candidates[0]?.model.id).not.toBe('o3');
  });

  it.each([
    ['restricted', { denied: ['o3'] }, vendors],
    ['unserved', {}, ['google']],
    ['unknown', { defaultModel: 'gpt-99' }, vendors],
  ] as const)('is passed over with a warning when it is %s', (_, policy, configured) => {
    const found = resolve(undefined, { configured, policy: { defaultModel: 'o3', ...policy } });
    expect(found.warnings[0]).toContain('passed over');
    expect(found.candidates[0]?.model.id).not.toBe('o3');
  });

  it.each([
    // What was bound for this machine stays on it, also where only its tag is missing.
    ['ollama:qwen3:999b', ['ollama', 'openai'], ['ollama']],
    ['openai:gpt-99', ['openai', 'zhipu', 'google'], ['openai']],
    ['gpt-99', ['zhipu'], ['zhipu']],
  ] as const)('gives %s at %j to %j, where it is unusable', (defaultModel, configured, providers) => {
    const { candidates, warnings } = resolve(undefined, { configured, policy: { defaultModel } });
    expect(warnings[0]).toContain('passed over');
    expect(candidates[0]?.model.provider).toBe(providers[0]);
    if (providers[0] === 'ollama') expect(candidates.every(({ model }) => model.provider === 'ollama')).toBe(true);
  });

  it('gives its place to another provider where its own has nothing for the call', () => {
    const seeing = { configured: ['groq', 'openai'], needs: { vision: true }, promptTokens: 400_000 };
    const denied = loadCatalogue().flatMap(({ provider, id, input }) =>
      provider === 'groq' && input.includes('image') ? [id] : [],
    );
    const policy = { defaultModel: 'groq:nope', autoCostLimit: 0.0001, denied };
    expect(resolve(undefined, { ...seeing, policy }).candidates[0]?.model.provider).toBe('openai');
  });

  it('is refused where it was bound for this machine, which has no model that may be used', () => {
    const policy = {
      defaultModel: 'ollama:qwen3:8b',
      denied: ['ollama:*', ...loadCatalogue().flatMap(({ provider, id }) => (provider === 'ollama' ? [id] : []))],
    };
    expect(refusalOf(undefined, { configured: ['ollama', 'openai'], policy })).toMatchObject({ kind: 'input' });
  });

  it('gives its place to what replaced it at its vendor', () => {
    const models = loadCatalogue().map(model => ({
      ...model,
      ...(model.id === 'claude-3-7-sonnet-20250219' && { status: 'retired' as const }),
    }));
    const policy = { defaultModel: 'claude-3-7-sonnet-20250219' };
    const { candidates, warnings } = resolve(undefined, { policy, roster: rosterOf(vendors, models) });
    expect(candidates[0]?.model.id).toBe('claude-sonnet-5-5');
    expect(warnings[0]).toMatch(/passed over: .*retired/);
  });

  it('does not hide that no provider is configured', () => {
    expect(refusalOf(undefined, { configured: [], policy: { defaultModel: 'o3' } }).code).toBe('CONFIG');
  });
});

/** The same numbers in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe('whatever is asked', () => {
  const models = loadCatalogue();
  const pick = numbers(7);
  const any = <Item>(items: readonly Item[]): Item => items[pick(items.length)]!;
  const some = <Item>(items: readonly Item[], most: number) => Array.from({ length: pick(most + 1) }, () => any(items));
  const names = models.flatMap(model => [model.id, ...model.aliases]);
  const suffixes = ['', '', ':high', ':none', ':8k', ':64', ':ultra', ':free', ':nitro', ':latest', ':', '::', ':0'];

  function mangled(name: string): string {
    const at = pick(name.length);
    const change = pick(5);
    if (change === 0) return name.slice(0, at) + name.slice(at + 1);
    if (change === 1) return name.toUpperCase();
    if (change === 2) return name.replaceAll('-', any([' ', '_', '', '.']));
    if (change === 3) return name.slice(0, at + 1);
    return name;
  }

  it('never yields a model that is not configured or not permitted, and fails only in words', () => {
    for (let round = 0; round < 1_500; round++) {
      const configured = some(everyProvider, 5);
      const policy: RoutingPolicy = {
        ...noPolicy,
        allowed: Object.fromEntries(some(everyProvider, 3).map(id => [id, some(names, 4)])),
        denied: some(names, 6),
        localOnly: pick(6) === 0,
        offline: pick(12) === 0,
        allowUnknown: pick(4) === 0,
        prefer: any(['quality', 'speed', 'cost']),
        ...(pick(3) === 0 ? { defaultModel: any(names) } : {}),
      };
      const prefix = any(['', '', '', `${any(everyProvider)}:`]);
      const name = any([undefined, 'auto', `${prefix}${mangled(any(names))}${any(suffixes)}`]);
      const request: ModelRequest = {
        category: any(categories),
        needs: { ...(pick(4) === 0 ? { vision: true } : {}), ...(pick(4) === 0 ? { window: pick(1_500_000) } : {}) },
        ...(name === undefined ? {} : { name }),
      };
      const roster = rosterOf(configured);
      let found: ReturnType<typeof resolveModel>;
      try {
        found = resolveModel(request, roster, policy);
      } catch (error) {
        expect(
          isAppError(error) && ['input', 'config'].includes(error.kind) && !!error.details.next,
          `${name}: ${error}`,
        ).toBe(true);
        continue;
      }
      expect(found.candidates.length).toBeGreaterThan(0);
      for (const { model, effort, thinkingBudget } of found.candidates) {
        const provider = roster.providers.find(({ id }) => id === model.provider)!;
        const told = `${name} → ${model.provider}/${model.id} with ${JSON.stringify(policy)}`;
        expect(provider.configured, told).toBe(true);
        if (policy.localOnly || policy.offline) expect(provider.local, told).toBe(true);
        const deny = policy.denied.map(entry => models.find(({ aliases }) => aliases.includes(entry))?.id ?? entry);
        expect(deny.map(modelKey), told).not.toContain(modelKey(model.id));
        const allow = policy.allowed[model.provider] ?? [];
        const owners = allow.map(entry => models.find(({ aliases }) => aliases.includes(entry))?.id ?? entry);
        if (allow.length > 0) expect(owners.map(modelKey), told).toContain(modelKey(model.id));
        if (effort !== undefined) expect(model.efforts, told).toContain(effort);
        if (thinkingBudget !== undefined) expect(model.thinkingBudget, told).toBeDefined();
      }
    }
  });

  it('keeps every number that was typed', () => {
    const digits = (text: string) => text.match(/\d+/g)?.join(' ') ?? '';
    for (let round = 0; round < 600; round++) {
      const id = mangled(any(models).id);
      let found: ReturnType<typeof resolveModel>;
      try {
        found = resolveModel({ name: id, category: 'balanced', needs: {} }, rosterOf(vendors), noPolicy);
      } catch {
        // Refusing is always right; what matters is what a correction leads to.
        continue;
      }
      if (!found.corrected) continue;
      const [to] = found.candidates;
      const ways = [to!.model.id, ...to!.model.aliases].map(name => digits(nameKey(name)));
      const split = splitSuffix(id);
      const typed = digits(nameKey(split?.ask ? split.base : id));
      expect(
        ways.some(way => way === typed || way.startsWith(`${typed} `) || typed === ''),
        `${id} → ${to!.model.id}`,
      ).toBe(true);
    }
  });
});
