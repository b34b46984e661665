import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { makeCatalogue } from '../../../scripts/catalogue.ts';
import { efforts } from '../../../src/core/model.ts';
import { loadCatalogue } from '../../../src/models/catalogue/model-sources.ts';
import { overlay } from '../../../src/models/catalogue/overlay.ts';
import { nameKey, sameModel } from '../../../src/models/routing/names.ts';

const models = loadCatalogue();
const facts = () => readFileSync(new URL('../../../scripts/data/model-facts.jsonl', import.meta.url), 'utf8');
const row = (id: string, rows: readonly { id: string }[] = models) => rows.find(model => model.id === id);

describe('the catalogue', () => {
  it('has no alias of a family that leads to a model its vendor retired', () => {
    const of = (alias: string) => loadCatalogue().find(({ aliases }) => aliases.includes(alias));
    const families = ['gemini', 'gemini3', 'gemini-3-pro', 'kimi-k2', 'kimi-thinking', 'llama-70b', 'flash', 'opus'];
    expect(families.filter(alias => of(alias)?.status !== 'active')).toEqual([]);
    expect(of('kimi-k2')?.id).toBe('kimi-k2.6');
    expect(of('llama-70b')?.id).toBe('meta-llama/llama-3.3-70b-instruct');
    expect(of('gemini')?.id).toBe('gemini-4-argon');
  });

  it('is what the generator makes of the facts', () => {
    const written = readFileSync(new URL('../../../src/models/catalogue/catalogue.gen.json', import.meta.url), 'utf8');
    expect(makeCatalogue(facts())).toBe(written);
  });

  it('is read once', () => {
    expect(loadCatalogue()).toBe(models);
  });

  it('uses our names for the providers', () => {
    expect([...new Set(models.map(model => model.provider))].sort()).toEqual([
      'anthropic',
      'deepseek',
      'google',
      'groq',
      'minimax',
      'moonshot',
      'ollama',
      'openai',
      'openrouter',
      'xai',
      'zhipu',
    ]);
  });

  it('keeps every model of the first design and leaves out what does not converse', () => {
    const legacy = facts()
      .split('\n')
      .filter(line => line.includes('"legacy":true'));
    expect(legacy).toHaveLength(28);
    for (const line of legacy) expect(row(JSON.parse(line).id), line).toBeDefined();
    for (const id of ['o3-deep-research', 'gpt-image-1-mini', 'gemini-3-pro-image-preview']) {
      expect(facts()).toContain(`"id":"${id}"`);
      expect(row(id)).toBeUndefined();
    }
    expect(models.filter(model => /guard|:batch|embedding/.test(model.id))).toEqual([]);
  });

  it("knows the names that PAL's guides tell to send", () => {
    const names = [
      ...['gpt5.2', 'gpt5.2-pro', '5.1', 'codex-5.1', 'gpt5.1-codex', 'gpt5.1-codex-mini', 'codex-mini', 'gpt5-pro'],
      ...['gpt5', 'gpt5-mini', 'gpt5-nano', 'gpt5-codex', 'mini', 'nano', 'codex', 'o3', 'o3mini', 'o3pro', 'o4mini'],
      ...['gpt4.1', 'pro', 'gemini-pro', 'flash', 'flash2.5', 'flash-2.0', 'flashlite', 'grok', 'grok3', 'grok4'],
      ...['grok-4-1-fast', 'grok-4.1-fast-reasoning', 'grok-4-1-fast-reasoning-latest', 'grok-4-1-fast-non-reasoning'],
      ...['grok-4-fast', 'grok4fast', 'grok-4-fast-non-reasoning', 'grok-code-fast-1', 'grok-code-fast', 'grokfast'],
      ...['local-llama', 'llama3.2', 'opus', 'sonnet', 'haiku', 'mistral'],
    ];
    const known = new Set(models.flatMap(({ id, aliases }) => [id, ...aliases]).map(nameKey));
    expect(names.filter(name => !known.has(nameKey(name)))).toEqual([]);
  });

  it('gives each alias, and each spelling of it, to one model', () => {
    const owners = new Map<string, string>();
    for (const model of models) {
      for (const alias of model.aliases) {
        const self = `${model.provider}/${model.id}`;
        expect(alias).toBe(alias.toLowerCase());
        expect(owners.get(nameKey(alias)) ?? self, alias).toBe(self);
        owners.set(nameKey(alias), self);
        const shadow = models.find(other => other.id.toLowerCase() === alias);
        expect(shadow, `${alias} is an id`).toBeUndefined();
        const homonym = models.find(other => nameKey(other.id) === nameKey(alias));
        if (homonym) expect(sameModel(homonym, model) || homonym === model, `${alias} is ${homonym.id}`).toBe(true);
      }
    }
  });

  it('has each id once a provider, in one spelling', () => {
    const keys = models.map(model => `${model.provider}/${nameKey(model.id)}`);
    expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
  });

  it('has sound numbers in every row', () => {
    for (const model of models) {
      const name = `${model.provider}/${model.id}`;
      expect(model.window, name).toBeGreaterThanOrEqual(8_192);
      expect(model.maxOutput, name).toBeGreaterThan(0);
      expect(model.maxOutput, name).toBeLessThanOrEqual(model.window);
      expect(model.score >= 4 && model.score <= 20 && Number.isInteger(model.score), name).toBe(true);
      expect(model.input[0], name).toBe('text');
      expect(
        efforts.filter(effort => model.efforts.includes(effort)),
        name,
      ).toEqual(model.efforts);
      if (model.efforts.length > 0 || model.thinkingBudget) expect(model.reasoning, name).toBe(true);
      if (model.thinkingBudget) {
        expect(
          model.efforts.filter(effort => effort !== 'none'),
          name,
        ).toEqual([]);
        expect(model.thinkingBudget.min, name).toBeLessThan(model.thinkingBudget.max);
        expect(model.thinkingBudget.max, name).toBeLessThan(model.maxOutput);
      }
      if (model.price) expect(model.price.in >= 0 && model.price.out >= 0, name).toBe(true);
      if (model.allowCodeGeneration) expect(model.score, name).toBeGreaterThanOrEqual(16);
    }
  });

  it('knows how certain models want to be asked', () => {
    expect(row('o3')).toMatchObject({ efforts: ['low', 'medium', 'high'], temperature: 'none' });
    expect(row('gpt-5.2')).toMatchObject({ efforts: ['none', 'low', 'medium', 'high', 'xhigh'], temperature: 'none' });
    expect(row('claude-haiku-4-5')).toMatchObject({ efforts: ['none'], thinkingBudget: { min: 1_024, max: 16_000 } });
    expect(row('claude-opus-5-5')).toMatchObject({
      efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
      temperature: 'none',
    });
    expect(row('gemini-2.5-flash')).toMatchObject({ thinkingBudget: { min: 0, max: 24_576 }, temperature: 'range' });
    expect(row('gemini-2.0-flash')).toMatchObject({ status: 'deprecated', reasoning: false });
    expect(row('grok-3')).toMatchObject({ efforts: [], temperature: 'range', price: { in: 3, out: 15 } });
  });

  it('ranks the large above the small of one generation', () => {
    const score = (id: string) => models.find(model => model.id === id)!.score;
    expect(score('claude-opus-5-5')).toBeGreaterThan(score('claude-sonnet-5-5'));
    expect(score('claude-sonnet-5-5')).toBeGreaterThan(score('claude-haiku-5-5'));
    expect(score('gpt-5')).toBeGreaterThan(score('gpt-5-mini'));
    expect(score('gpt-5-mini')).toBeGreaterThan(score('gpt-5-nano'));
    expect(score('gpt-5.5')).toBeGreaterThan(score('gpt-4o'));
    expect(score('claude-opus-5-5')).toBeGreaterThan(score('claude-3-opus-20240229'));
  });
});

describe("the operator's models file", () => {
  const entry = {
    model_name: 'my-llama',
    friendly_name: 'Mine',
    aliases: 'ml, My-L',
    intelligence_score: 7,
    description: 'ours',
    context_window: 64_000,
    max_output_tokens: 4_000,
    supports_images: true,
    supports_temperature: true,
    temperature_constraint: 'fixed',
    supports_function_calling: true,
    allow_code_generation: true,
    default_reasoning_effort: 'medium',
  };

  it('adds a model in the form that PAL has', () => {
    const { models: rows, warnings } = overlay(models, 'custom', { _README: {}, models: [entry] });
    expect(warnings).toEqual([]);
    expect(row('my-llama', rows)).toEqual({
      provider: 'custom',
      id: 'my-llama',
      name: 'Mine',
      aliases: ['ml', 'my-l'],
      window: 64_000,
      windowAssumed: false,
      maxOutput: 4_000,
      input: ['text', 'image'],
      efforts: ['low', 'medium', 'high'],
      usualEffort: 'medium',
      reasoning: true,
      temperature: 'none',
      tools: true,
      score: 7,
      allowCodeGeneration: true,
      status: 'active',
    });
  });

  it('changes only the members it names', () => {
    const { models: rows } = overlay(models, 'openai', [{ model_name: 'O3', intelligence_score: 19 }]);
    expect(rows).toHaveLength(models.length);
    expect(row('o3', rows)).toEqual({ ...row('o3'), score: 19 });
  });

  it('takes an alias from the model that had it', () => {
    const { models: rows } = overlay(models, 'custom', [{ model_name: 'mine', aliases: ['flash', 'opus'] }]);
    const owners = rows.filter(model => model.aliases.includes('flash') || model.aliases.includes('opus'));
    expect(owners.map(({ id }) => id)).toEqual(['mine']);
  });

  it.each([
    ['no name', { intelligence_score: 3 }, 'model_name'],
    ['a score out of range', { model_name: 'a', intelligence_score: 21 }, 'intelligence_score'],
    ['a window of less than nothing', { model_name: 'a', context_window: -1 }, 'context_window'],
    ['an unknown constraint', { model_name: 'a', temperature_constraint: 'cold' }, 'temperature_constraint'],
    ['the name of another entry', { model_name: 'my-llama' }, 'taken by an earlier entry'],
    ['the word auto', { model_name: 'auto' }, '"auto"'],
    ['no object at all', 'gpt', 'left out'],
  ])('with %s loses that entry alone, and says so', (_, bad, told) => {
    const good = { model_name: 'last' };
    const { models: rows, warnings } = overlay(models, 'custom', { models: [entry, bad, good] });
    expect(rows).toHaveLength(models.length + 2);
    expect(row('last', rows)).toBeDefined();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(told);
    expect(warnings[0]).toContain('Model 2');
  });

  it.each([
    ['custom', [{ model_name: 'llama3.2', aliases: ['llama3.2', 'local'] }], { 'llama3.2': ['local'] }, []],
    ['openrouter', [{ model_name: 'openai/o3', aliases: ['o3', 'think'] }], { 'openai/o3': ['o3', 'think'] }, []],
    [
      'custom',
      [
        { model_name: 'a', aliases: ['x', 'gpt-5.2', 'auto'] },
        { model_name: 'b', aliases: ['X', 'y'] },
      ],
      { a: ['x'], b: ['y'] },
      [
        /"gpt-5.2", which is the id of a model of openai/,
        /"auto", which is not a model name/,
        /"x", which is taken by "a"/,
      ],
    ],
    [
      'custom',
      [{ model_name: 'a', aliases: ['x'] }, { model_name: 'X' }, { model_name: 'Auto' }],
      { a: ['x'] },
      [/Model 2 .* left out: "X" is taken/, /Model 3 .* left out: "auto" is not a model name/],
    ],
    [
      'custom',
      [{ model_name: 'openai/o3' }, { model_name: 'mine', is_custom: true }, { model_name: 'x', is_custom: false }],
      { mine: [] },
      [],
    ],
    ['openrouter', [{ model_name: 'x/y' }, { model_name: 'z', is_custom: true }], { 'x/y': [], z: [] }, []],
    ['dial', [{ model_name: 'o3-2025-04-16', aliases: ['o3'] }], { 'o3-2025-04-16': ['o3'] }, []],
    ['dial', [{ model_name: 'o3-2025-04-16', aliases: ['o1'] }], { 'o3-2025-04-16': [] }, [/"o1", which is the id/]],
    ['openai', [{ model_name: 'o3-2025-04-16', aliases: ['o3'] }], { 'o3-2025-04-16': [] }, [/"o3", which is the id/]],
    [
      'azure',
      [
        { model_name: 'gpt-5.2', deployment: 'prod', aliases: ['work'] },
        { model_name: 'gpt-5.2', deployment: 'test' },
      ],
      { prod: ['work', 'gpt-5.2'], test: [] },
      [],
    ],
  ])(
    'of %s loses the aliases that others have, and entries that are not for it: %j',
    (provider, entries, aliases, warnings) => {
      const laid = overlay(models, provider, { models: entries });
      const ids = entries.map(entry => ('deployment' in entry ? entry.deployment : entry.model_name));
      const named = laid.models.filter(model => model.provider === provider && ids.includes(model.id));
      expect(Object.fromEntries(named.map(model => [model.id, model.aliases]))).toEqual(aliases);
      expect(laid.warnings).toEqual(warnings.map(text => expect.stringMatching(text)));
    },
  );

  it('with members nobody knows keeps the entry and says so', () => {
    const { models: rows, warnings } = overlay(models, 'custom', [{ model_name: 'a', max_tokens: 3, _note: 'x' }]);
    expect(row('a', rows)).toBeDefined();
    expect(warnings).toEqual(['Model 1 in the models file for custom has members that mean nothing here: max_tokens.']);
  });

  it.each([[null], [3], [{}], [{ models: 'x' }]])('that is %j changes nothing', file => {
    const { models: rows, warnings } = overlay(models, 'custom', file);
    expect(rows).toEqual(models);
    expect(warnings).toHaveLength(1);
  });
});
