import { describe, expect, it } from 'vitest';
import { unknownNames } from '../../../src/models/catalogue/capabilities.ts';
import { loadCatalogue } from '../../../src/models/catalogue/model-sources.ts';
import { createRestrictions } from '../../../src/models/routing/roster.ts';
import { azure } from '../../../src/providers/azure.ts';
import type { Situation } from '../routing-fixtures.ts';
import { namesOf, refusalOf, resolve, rosterOf } from '../routing-fixtures.ts';

const only = (...configured: string[]): Situation => ({ configured });

describe('a list of models', () => {
  it('admits the id of a listed alias and the alias of a listed id', () => {
    const byAlias = { policy: { allowed: { google: ['Flash'] } } };
    expect(namesOf(resolve('gemini-3.8-flash', byAlias))[0]).toBe('google/gemini-3.8-flash');
    const byId = { policy: { allowed: { google: ['gemini-3.8-flash'] } } };
    expect(namesOf(resolve('flash', byId))[0]).toBe('google/gemini-3.8-flash');
  });

  it('that names an alias admits the model at the provider it is written for', () => {
    const policy = { allowed: { openrouter: ['opus'] } };
    expect(namesOf(resolve('anthropic/claude-opus-5.5', { ...only('openrouter'), policy }))).toHaveLength(1);
    expect(refusalOf('evil/claude-opus-5', { ...only('openrouter'), policy }).class).toBe('restricted');
  });

  it('is what stands against a model that only an aggregator has a key for', () => {
    const place = { ...only('openrouter'), policy: { allowed: { openrouter: ['opus'] } } };
    for (const name of ['o3', 'claude-sonnet-4-5']) expect(refusalOf(name, place).class).toBe('restricted');
    expect(refusalOf('o3', { ...only('google'), policy: place.policy }).class).toBe('no_key');
    const models = loadCatalogue().map(model =>
      model.id === 'gpt-5.2' ? { ...model, status: 'retired' as const } : model,
    );
    const roster = rosterOf(['openai', 'openrouter'], models);
    for (const name of ['gpt-5.2', 'openai:gpt-5.2'])
      expect(refusalOf(name, { roster, policy: place.policy }).class).toBe('retired');
  });

  it('leads a model’s name to a deployment by the dated model that it has, whatever the deployment is called', () => {
    const known = loadCatalogue();
    const deployments = 'o3-2025-04-16=gpt-5-mini,prod=o4-mini-2025-04-16';
    const roster = rosterOf(['azure'], [...known, ...azure.models({ deployments }, known)]);
    expect(namesOf(resolve('o4-mini', { roster }))).toEqual(['azure/prod']);
    expect(resolve('prod', { roster }).candidates[0]?.model).toMatchObject({ reasoning: true, temperature: 'none' });
    expect(refusalOf('o3', { roster }).class).toBe('no_key');
  });

  it.each([
    'openai/gpt-5:nitro:free',
    'openai/GPT-5:ONLINE',
    'openai/gpt-5:batch',
    'openai/gpt-5@preset/mine',
    'gpt-5',
  ])('that denies a model denies it as %s too', id => {
    expect(refusalOf(`r:${id}`, { ...only('openrouter'), policy: { denied: ['gpt-5'] } }).class).toBe('restricted');
    expect(refusalOf(`r:${id}`, { ...only('openrouter'), policy: { denied: ['OpenAI/gpt-5'] } }).class).toBe(
      'restricted',
    );
  });

  it('knows a model with the tag latest by its plain name', () => {
    const models = [{ ...loadCatalogue()[0]!, provider: 'ollama', id: 'mine:latest', aliases: [] }];
    const roster = rosterOf(['ollama'], models);
    expect(namesOf(resolve('mine', { roster, policy: { allowed: { ollama: ['mine'] } } }))).toEqual([
      'ollama/mine:latest',
    ]);
    expect(refusalOf('mine:latest', { roster, policy: { denied: ['mine'] } }).class).toBe('restricted');
  });

  it('means a deployment by its model too, whose name leads to it', () => {
    const known = loadCatalogue();
    const roster = rosterOf(['azure'], [...known, ...azure.models({ deployments: 'prod=gpt-5.2,mine=o3' }, known)]);
    const policy = { denied: ['gpt5.2'], allowed: { azure: ['gpt-5.2', 'o3'] } };
    for (const name of ['prod', 'azure:gpt-5.2']) expect(refusalOf(name, { roster, policy }).class).toBe('restricted');
    for (const name of ['mine', 'o3', 'azure:o3'])
      expect(namesOf(resolve(name, { roster, policy }))).toEqual(['azure/mine']);
  });

  it('denies at one provider alone when the entry says so', () => {
    const found = resolve('kimi-k2.6', {
      ...only('moonshot', 'openrouter'),
      policy: { denied: ['moonshot:kimi-k2.6'] },
    });
    expect(namesOf(found)).toEqual(['openrouter/moonshotai/kimi-k2.6']);
  });
});

describe('an entry that names a provider', () => {
  it.each(['moonshot', 'MoonShot'])('%s denies all of its models, also where an aggregator serves them', entry => {
    const place = { ...only('moonshot', 'openrouter', 'openai'), policy: { denied: [entry] } };
    expect(refusalOf('kimi-k2.6', place).class).toBe('restricted');
    for (const id of ['moonshotai/kimi-k2.6', 'moonshotai/kimi-k9-unlisted:nitro'])
      expect(refusalOf(`openrouter:${id}`, place).class).toBe('restricted');
    expect(namesOf(resolve('o3', place))).toEqual(['openai/o3', 'openrouter/openai/o3']);
  });

  it('reaches other servers by the maker that stands before the id there, and by nothing else', () => {
    const [like] = loadCatalogue();
    const at = (provider: string, id: string, deployed?: string) => ({ ...like!, provider, id, aliases: [], deployed });
    const models = [at('custom', 'OpenAI/gpt-oss-20b'), at('ollama', 'gpt-oss:20b'), at('azure', 'prod', 'gpt-4o')];
    const roster = rosterOf(['openai', 'custom', 'ollama', 'azure'], models);
    const open = { allowed: {}, localOnly: false, prefer: 'quality', allowUnknown: false, offline: false } as const;
    const deniedBy = (entry: string) => {
      const refusal = createRestrictions(roster, { ...open, denied: [entry] });
      return models.filter(model => refusal(model) === 'denied').map(({ provider }) => provider);
    };
    expect(['openai', 'openai:*', 'openai:gpt-oss-20b', 'gpt-oss-20b'].map(deniedBy)).toEqual([
      ...[['custom'], [], [], ['custom', 'ollama']],
    ]);
  });

  it.each(['moonshot:*', 'moonshot:'])('%s denies all of its models there alone', entry => {
    const place = { ...only('moonshot', 'openrouter'), policy: { denied: [entry] } };
    expect(namesOf(resolve('kimi-k2.6', place))).toEqual(['openrouter/moonshotai/kimi-k2.6']);
    expect(refusalOf('moonshot:kimi-k2.6', place).class).toBe('restricted');
  });

  it('allows all of its models in its own list, and none in that of another', () => {
    const own = { ...only('moonshot'), policy: { allowed: { moonshot: ['moonshot'] } } };
    expect(namesOf(resolve('kimi-k2.6', own))).toEqual(['moonshot/kimi-k2.6']);
    const other = { ...only('openrouter'), policy: { allowed: { openrouter: ['moonshot'] } } };
    expect(refusalOf('openrouter:moonshotai/kimi-k2.6', other).class).toBe('restricted');
  });

  it('means the model where one has the name', () => {
    const roster = rosterOf(
      ['openai', 'custom'],
      [...loadCatalogue(), { ...loadCatalogue()[0]!, id: 'openai', provider: 'custom' }],
    );
    expect(namesOf(resolve('o3', { roster, policy: { denied: ['openai'] } }))[0]).toBe('openai/o3');
  });
});

describe('words of these lists that mean no model', () => {
  const found = (configured: string[], policy: { allowed?: Record<string, string[]>; denied?: string[] }) =>
    unknownNames(rosterOf(configured), { allowed: {}, denied: [], ...policy });

  it('are told with the nearest known name, and names of any kind are not', () => {
    const denied = ['o3', 'OpenAI/gpt-5', 'openai:gpt-4.1', 'Flash', 'opus', 'gpt-4.1-miny', ' '];
    expect(found(['openai'], { denied })).toEqual([{ name: 'gpt-4.1-miny', near: 'gpt-4.1-mini' }]);
  });

  it('are told in the list of a provider that has no such model, as long as it is asked at all', () => {
    const allowed = { openai: ['gpt-5', 'gemini-2.5-pro'], google: ['nothing'] };
    expect(found(['openai'], { allowed })).toMatchObject([{ provider: 'openai', name: 'gemini-2.5-pro' }]);
  });

  it('are no names of providers, but in the list of another provider', () => {
    const allowed = { openai: ['openai'], openrouter: ['openai', 'anthropic/claude-opus-4.5', 'xai:grok-4'] };
    expect(found(['openai', 'openrouter'], { denied: ['openai', 'ollama', 'azure:*'], allowed })).toEqual([
      { provider: 'openrouter', name: 'openai', near: undefined },
      { provider: 'openrouter', name: 'xai:grok-4', near: undefined },
    ]);
  });

  it('are only slips of known names where servers may have models that nobody listed', () => {
    const denied = ['house-model', 'gpt-4.1-miny'];
    expect(found(['openai', 'ollama'], { denied })).toEqual([{ name: 'gpt-4.1-miny', near: 'gpt-4.1-mini' }]);
    expect(found(['openrouter'], { allowed: { openrouter: ['someone/new-7b'] } })).toEqual([]);
  });
});
