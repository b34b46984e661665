import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../../src/models/catalogue/model-sources.ts';
import { modelKey } from '../../../src/models/routing/names.ts';
import type { Situation } from '../routing-fixtures.ts';
import { namesOf, refusalOf, resolve, rosterOf, vendors } from '../routing-fixtures.ts';

interface Row {
  name: string;
  /** provider/id */
  is: string;
  effort?: string;
  budget?: number;
  /** Whether the name counts as corrected. */
  corrected?: true;
  /** A part of one warning. */
  warns?: string;
  in?: Situation;
}

const only = (...configured: string[]): Situation => ({ configured });

const resolved: Row[] = [
  // exact ids win whole
  { name: 'o3', is: 'openai/o3' },
  { name: 'o1', is: 'openai/o1' },
  { name: 'gpt-5.1', is: 'openai/gpt-5.1' },
  { name: 'gpt-5.2', is: 'openai/gpt-5.2' },
  { name: 'gemini-2.5-pro', is: 'google/gemini-2.5-pro' },
  { name: 'claude-opus-4-5', is: 'anthropic/claude-opus-4-5' },
  { name: 'MiniMax-M3', is: 'minimax/MiniMax-M3' },
  { name: 'glm-4.5-flash', is: 'zhipu/glm-4.5-flash', warns: 'retired' },
  { name: 'gpt-oss:20b', is: 'ollama/gpt-oss:20b' },
  { name: 'llama3.2', is: 'ollama/llama3.2' },
  { name: 'llama3.2:latest', is: 'ollama/llama3.2' },
  { name: 'qwen3-coder:480b', is: 'ollama/qwen3-coder:480b' },
  { name: 'openai/gpt-oss-120b', is: 'groq/openai/gpt-oss-120b' },
  { name: 'groq/compound', is: 'groq/groq/compound' },
  { name: 'anthropic/claude-opus-4.5', is: 'openrouter/anthropic/claude-opus-4.5' },
  { name: 'google/gemma-4-31b-it:free', is: 'openrouter/google/gemma-4-31b-it:free' },
  { name: '~x-ai/grok-latest', is: 'openrouter/~x-ai/grok-latest' },
  { name: '  o4-mini ', is: 'openai/o4-mini' },
  // every prefix, in any case
  { name: 'google:gemini-2.5-flash', is: 'google/gemini-2.5-flash' },
  { name: 'g:flash', is: 'google/gemini-3.8-flash' },
  { name: 'gemini:pro', is: 'google/gemini-3.1-pro-preview' },
  { name: 'openai:o3', is: 'openai/o3' },
  { name: 'OpenAI:o3', is: 'openai/o3' },
  { name: 'o:o3', is: 'openai/o3' },
  { name: 'xai:grok-3', is: 'xai/grok-3' },
  { name: 'x:grok', is: 'xai/grok-4.7' },
  { name: 'anthropic:claude-sonnet-5', is: 'anthropic/claude-sonnet-5' },
  { name: 'a:haiku', is: 'anthropic/claude-haiku-5-5' },
  { name: 'groq:llama-3.3-70b-versatile', is: 'groq/llama-3.3-70b-versatile' },
  { name: 'q:openai/gpt-oss-20b', is: 'groq/openai/gpt-oss-20b' },
  { name: 'deepseek:deepseek-v4-flash', is: 'deepseek/deepseek-v4-flash' },
  { name: 'd:reasoner', is: 'deepseek/deepseek-reasoner', warns: 'retired' },
  { name: 'moonshot:kimi-k2.5', is: 'moonshot/kimi-k2.5' },
  { name: 'kimi:kimi-k3', is: 'moonshot/kimi-k3' },
  { name: 'k:k2.6', is: 'moonshot/kimi-k2.6' },
  { name: 'zhipu:glm-4.6', is: 'zhipu/glm-4.6' },
  { name: 'glm:glm-5.3', is: 'zhipu/glm-5.3' },
  { name: 'zai:glm', is: 'zhipu/glm-5.3' },
  { name: 'm:MiniMax-M2.5', is: 'minimax/MiniMax-M2.5' },
  { name: 'ollama:gpt-oss:20b', is: 'ollama/gpt-oss:20b' },
  { name: 'l:llama3.1', is: 'ollama/llama3.1' },
  { name: 'openrouter:anthropic/claude-opus-5.5', is: 'openrouter/anthropic/claude-opus-5.5' },
  { name: 'r:opus', is: 'openrouter/anthropic/claude-opus-5.5' },
  { name: 'offline-east:echo-east', is: 'offline-east/echo-east' },
  { name: 'echo-west', is: 'offline-west/echo-west' },
  // aliases
  { name: 'flash', is: 'google/gemini-3.8-flash' },
  { name: 'FLASH', is: 'google/gemini-3.8-flash' },
  { name: 'flash2', is: 'google/gemini-2.0-flash', warns: 'retired' },
  { name: 'pro', is: 'google/gemini-3.1-pro-preview' },
  { name: 'mini', is: 'openai/gpt-5.4-mini' },
  { name: 'opus', is: 'anthropic/claude-opus-5-5' },
  { name: 'sonnet', is: 'anthropic/claude-sonnet-5-5' },
  { name: 'haiku', is: 'anthropic/claude-haiku-5-5' },
  { name: 'opus-4.5', is: 'anthropic/claude-opus-4-5' },
  { name: 'o3mini', is: 'openai/o3-mini' },
  { name: 'o4mini', is: 'openai/o4-mini' },
  { name: 'gpt5', is: 'openai/gpt-5' },
  { name: 'grok', is: 'xai/grok-4.7' },
  { name: 'grok3', is: 'xai/grok-3' },
  { name: 'kimi', is: 'moonshot/kimi-k3.1-pro' },
  { name: 'glm', is: 'zhipu/glm-5.3' },
  { name: 'deepseek', is: 'deepseek/deepseek-v4-pro' },
  { name: 'local-llama', is: 'ollama/llama3.2' },
  // suffixes
  { name: 'o3:high', is: 'openai/o3', effort: 'high' },
  { name: 'openai:o3:low', is: 'openai/o3', effort: 'low' },
  { name: 'gpt5:MINIMAL', is: 'openai/gpt-5', effort: 'minimal' },
  { name: 'gpt-5.5:xhigh', is: 'openai/gpt-5.5', effort: 'xhigh' },
  { name: 'opus:max', is: 'anthropic/claude-opus-5-5', effort: 'max' },
  { name: 'gpt-oss:20b:medium', is: 'ollama/gpt-oss:20b', effort: 'medium' },
  { name: 'l:gpt-oss:20b:medium', is: 'ollama/gpt-oss:20b', effort: 'medium' },
  { name: 'anthropic/claude-opus-5.5:high', is: 'openrouter/anthropic/claude-opus-5.5', effort: 'high' },
  { name: 'haiku-4.5:8k', is: 'anthropic/claude-haiku-4-5', budget: 8192 },
  { name: 'haiku-4.5:4096', is: 'anthropic/claude-haiku-4-5', budget: 4096 },
  { name: 'haiku-4.5:8', is: 'anthropic/claude-haiku-4-5', budget: 8192 },
  { name: 'haiku-4.5:500', is: 'anthropic/claude-haiku-4-5', budget: 1024, warns: '1024 thinking tokens' },
  { name: 'haiku-4.5:99k', is: 'anthropic/claude-haiku-4-5', budget: 16_000, warns: '16000 thinking tokens' },
  { name: 'haiku-4.5:none', is: 'anthropic/claude-haiku-4-5', effort: 'none' },
  { name: 'haiku-4.5:max', is: 'anthropic/claude-haiku-4-5', budget: 16_000 },
  { name: 'gemini-2.5-flash:0', is: 'google/gemini-2.5-flash', budget: 0 },
  { name: 'gemini-2.5-flash:none', is: 'google/gemini-2.5-flash', budget: 0 },
  { name: 'gemini-2.5-flash:16k', is: 'google/gemini-2.5-flash', budget: 16_384 },
  { name: 'gemini-2.5-pro:none', is: 'google/gemini-2.5-pro', warns: '":none" was dropped' },
  { name: 'o3:8k', is: 'openai/o3', warns: '":8k" was dropped' },
  { name: 'o3:max', is: 'openai/o3', warns: '":max" was dropped' },
  { name: 'gpt-4.1:high', is: 'openai/gpt-4.1', warns: 'does not think' },
  // an aggregator's routes
  { name: 'anthropic/claude-opus-5.5:nitro', is: 'openrouter/anthropic/claude-opus-5.5:nitro' },
  { name: 'r:openai/gpt-5:floor:high', is: 'openrouter/openai/gpt-5:floor', effort: 'high' },
  { name: 'deepseek/deepseek-r1:free', is: 'openrouter/deepseek/deepseek-r1:free', warns: 'passed on' },
  // case and separators
  { name: 'GPT-5', is: 'openai/gpt-5', corrected: true },
  { name: 'gpt 5.1', is: 'openai/gpt-5.1', corrected: true },
  { name: 'gpt_5_2', is: 'openai/gpt-5.2', corrected: true },
  { name: 'Claude Opus 4.5', is: 'anthropic/claude-opus-4-5', corrected: true },
  { name: 'GPT-OSS:20B', is: 'ollama/gpt-oss:20b', corrected: true },
  { name: 'gemini2.5pro', is: 'google/gemini-2.5-pro', corrected: true },
  { name: 'O3:HIGH', is: 'openai/o3', effort: 'high', corrected: true },
  { name: 'x-ai/grok-4', is: 'xai/grok-4', corrected: true },
  // undated names, shortened names, typing mistakes
  { name: 'claude-3-5-sonnet', is: 'anthropic/claude-3-5-sonnet-20241022', corrected: true, warns: 'retired' },
  { name: 'llama-3.3-70b', is: 'groq/llama-3.3-70b-versatile', corrected: true, in: only('groq') },
  { name: 'deepseek-reas', is: 'deepseek/deepseek-reasoner', corrected: true, warns: 'retired' },
  { name: 'gemini-2.5-falsh', is: 'google/gemini-2.5-flash', corrected: true },
  { name: 'gemini-2.5-por', is: 'google/gemini-2.5-pro', corrected: true },
  { name: 'claud-opus-4.5', is: 'anthropic/claude-opus-4-5', corrected: true },
  { name: 'clade-opus-4.5:8k', is: 'anthropic/claude-opus-4-5', budget: 8192, corrected: true },
  { name: 'sonet', is: 'anthropic/claude-sonnet-5-5', corrected: true },
  // the provider that is there
  { name: 'opus', is: 'openrouter/anthropic/claude-opus-5.5', in: only('openrouter') },
  { name: 'claude-opus-4-5', is: 'openrouter/anthropic/claude-opus-4.5', in: only('openrouter') },
  { name: 'anthropic/claude-opus-4.5', is: 'anthropic/claude-opus-4-5', in: only('anthropic') },
  { name: 'kimi-k2.5', is: 'moonshot/kimi-k2.5' },
  { name: 'kimi-k2.5', is: 'ollama/kimi-k2.5', in: only('ollama', 'openrouter') },
  { name: 'kimi-k2.5', is: 'openrouter/moonshotai/kimi-k2.5', in: only('openrouter') },
  { name: 'gpt-oss:120b', is: 'groq/openai/gpt-oss-120b', in: only('groq') },
  { name: 'MiniMax-M2.5', is: 'openrouter/minimax/minimax-m2.5', in: only('openrouter') },
  // unknown ids where more may be served
  { name: 'openrouter:new-lab/shiny-1', is: 'openrouter/new-lab/shiny-1', warns: 'passed on' },
  { name: 'new-lab/shiny-1:high', is: 'openrouter/new-lab/shiny-1', effort: 'high', warns: 'passed on' },
  { name: 'custom:my-model:q4_K_M', is: 'custom/my-model:q4_K_M', warns: 'passed on' },
  { name: 'r:openai/gpt-5-min', is: 'openrouter/openai/gpt-5-min', warns: 'passed on' },
  { name: 'openai:gpt-99', is: 'openai/gpt-99', warns: 'passed on', in: { policy: { allowUnknown: true } } },
];

const refused: { name: string; code: string; class?: string; in?: Situation }[] = [
  { name: 'gpt-5.9', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'o2', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'o3', code: 'MODEL_NOT_FOUND', class: 'unknown', in: { roster: rosterWithout('o3') } },
  { name: 'claude-opus-4-9', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'grok-5', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'openai:gpt-99', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'openai:claude-opus-5', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'totally-made-up', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: '???', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  // more than one thing could be meant
  { name: 'gpt-5.6', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'glm-4.7-fl', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'llama-3.3-70b', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'gpt-oss', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  // only a dearer model is near
  { name: 'grok-3-fsat', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'gpt-5.5-por', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  // too short to guess
  { name: 'o1x', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  { name: 'gork', code: 'MODEL_NOT_FOUND', class: 'unknown' },
  // malformed
  { name: 'o3:ultra', code: 'INVALID_INPUT_FORMAT' },
  { name: 'openai:o3:ultra', code: 'INVALID_INPUT_FORMAT' },
  { name: 'opus:thinking', code: 'INVALID_INPUT_FORMAT' },
  { name: 'o3:pro', code: 'INVALID_INPUT_FORMAT' },
  { name: 'auto:8k', code: 'INVALID_INPUT_FORMAT' },
  { name: 'openai:', code: 'INVALID_INPUT_FORMAT' },
  { name: 'x'.repeat(201), code: 'INVALID_INPUT_FORMAT' },
  { name: 'custom:../../admin', code: 'INVALID_INPUT_FORMAT' },
  { name: 'custom:a model', code: 'INVALID_INPUT_FORMAT' },
  // providers
  { name: 'dial:gpt-4o', code: 'PROVIDER_NOT_FOUND' },
  { name: 'azure:my-deployment', code: 'MODEL_NOT_FOUND', class: 'no_key' },
  { name: 'o3', code: 'MODEL_NOT_FOUND', class: 'no_key', in: only('google') },
  { name: 'openai:gpt-5', code: 'MODEL_NOT_FOUND', class: 'no_key', in: only('openrouter') },
  { name: 'gemini-2.5-falsh', code: 'MODEL_NOT_FOUND', class: 'no_key', in: only('openai') },
  { name: 'o3', code: 'CONFIG', in: only() },
  { name: 'nonsense', code: 'CONFIG', in: only() },
  // restricted
  {
    name: 'o3',
    code: 'MODEL_NOT_FOUND',
    class: 'restricted',
    in: { ...only('openai'), policy: { allowed: { openai: ['o4-mini'] } } },
  },
  { name: 'O3', code: 'MODEL_NOT_FOUND', class: 'restricted', in: { policy: { denied: ['o3'] } } },
  { name: 'flash', code: 'MODEL_NOT_FOUND', class: 'restricted', in: { policy: { denied: ['gemini-3.8-flash'] } } },
  { name: 'gpt-4o-2024-08-06', code: 'MODEL_NOT_FOUND', class: 'restricted', in: { policy: { denied: ['gpt-4o'] } } },
  { name: 'r:openai/gpt-5:nitro', code: 'MODEL_NOT_FOUND', class: 'restricted', in: { policy: { denied: ['gpt5'] } } },
  {
    name: 'r:lab/new',
    code: 'MODEL_NOT_FOUND',
    class: 'restricted',
    in: { policy: { allowed: { openrouter: ['opus'] } } },
  },
  { name: 'opus', code: 'MODEL_NOT_FOUND', class: 'restricted', in: { policy: { localOnly: true } } },
  { name: 'opus', code: 'MODEL_NOT_FOUND', class: 'restricted', in: { policy: { offline: true } } },
  // a guess does not lead to what is forbidden
  {
    name: 'gemini-2.5-falsh',
    code: 'MODEL_NOT_FOUND',
    class: 'unknown',
    in: { policy: { denied: ['gemini-2.5-flash'] } },
  },
];

function rosterWithout(id: string) {
  return rosterOf(
    vendors,
    loadCatalogue().filter(model => modelKey(model.id) !== modelKey(id)),
  );
}

describe('the name of a model', () => {
  it.each(resolved)('$name is $is', row => {
    const found = resolve(row.name, row.in);
    const [first] = found.candidates;
    expect(namesOf(found)[0]).toBe(row.is);
    expect({ effort: first?.effort, budget: first?.thinkingBudget }).toEqual({
      effort: row.effort,
      budget: row.budget,
    });
    expect(found.corrected).toEqual(row.corrected && { from: row.name.trim(), to: first?.model.id });
    if (row.warns) expect(found.warnings.join(' ')).toContain(row.warns);
    else expect(found.warnings).toEqual([]);
    expect(found.requested).toBe(row.name.trim());
  });

  it.each(refused)('$name is refused with $code $class', row => {
    const refusal = refusalOf(row.name, row.in);
    expect(refusal.code).toBe(row.code);
    if (row.class) expect(refusal.class).toBe(row.class);
    expect(refusal.next).toBeTruthy();
  });

  it('suggests three models near an unknown name', () => {
    const { data, next } = refusalOf('gpt-5.9-mini');
    expect(data?.suggestions).toHaveLength(3);
    expect(data?.suggestions).toContain('gpt-5-mini');
    expect(next).toContain('"gpt-5-mini"');
  });

  it('tells how a model is asked that its vendor serves but does not list', () => {
    expect(refusalOf('openai:gpt-99').next).toContain('set ALLOW_UNKNOWN_MODELS=on');
    expect(refusalOf('openai:gpt-99', { policy: { offline: true } }).next).not.toContain('ALLOW_UNKNOWN_MODELS');
    expect(refusalOf('gpt-99').next).not.toContain('ALLOW_UNKNOWN_MODELS');
  });

  it('suggests nothing that may not be used', () => {
    const { data } = refusalOf('gpt-5.9-mini', { policy: { denied: ['gpt-5-mini', 'gpt-5.4-mini'] } });
    expect(data?.suggestions).not.toContain('gpt-5-mini');
    expect(data?.suggestions).not.toContain('gpt-5.4-mini');
  });

  it('names the key that is missing, and where it goes', () => {
    expect(refusalOf('o3', only('google')).next).toContain('OPENAI_API_KEY');
    const { next } = refusalOf('o3', only());
    expect(next).toMatch(/OPENAI_API_KEY.* in the environment or in \.env of the data directory, and start again\./);
    expect(next).toContain('OFFLINE=true');
  });

  it('says which settings make a provider usable when there is none', () => {
    const refusal = refusalOf(undefined, only());
    expect(refusal.kind).toBe('config');
    expect(refusal.next).toContain('OPENAI_API_KEY');
    expect(refusal.next).toContain('--offline');
  });

  it('names the best allowed model when one is restricted', () => {
    const refusal = refusalOf('o3', {
      ...only('openai'),
      category: 'extended_reasoning',
      policy: { allowed: { openai: ['o4-mini', 'nano'] } },
    });
    expect(refusal.next).toContain('"o4-mini"');
    expect(refusal.data).toEqual({ reason: 'not_allowed', best: 'o4-mini' });
  });

  it('answers by name from an offline provider when nothing else is configured', () => {
    expect(namesOf(resolve('offline-west:echo-west', only()))).toEqual(['offline-west/echo-west']);
  });
});

describe('the wish to think', () => {
  it('is brought to the nearest effort a model takes', () => {
    expect(resolve('o3', { effort: 'max' }).candidates[0]?.effort).toBe('high');
    expect(resolve('o3', { effort: 'minimal' }).candidates[0]?.effort).toBe('low');
    expect(resolve('kimi-k2.6', { effort: 'low' }).candidates[0]?.effort).toBe('high');
  });

  it('becomes a share of a budget, and nothing where a model does not think', () => {
    expect(resolve('gemini-2.5-pro', { effort: 'max' }).candidates[0]?.thinkingBudget).toBe(32_768);
    const plain = resolve('gpt-4.1', { effort: 'high' });
    expect(plain.candidates[0]!.effort).toBeUndefined();
    expect(plain.warnings).toEqual([]);
  });

  it('yields to a suffix', () => {
    expect(resolve('o3:low', { effort: 'high' }).candidates[0]?.effort).toBe('low');
  });

  it('is, where nobody has one, what the operator wrote of each model that may answer, else that of the tool', () => {
    const models = loadCatalogue().filter(({ id }) => ['gpt-5.1', 'gpt-5.2', 'grok-4.7'].includes(id));
    const usual = models.map(model => (model.id === 'gpt-5.2' ? { ...model, usualEffort: 'low' as const } : model));
    const place = { roster: rosterOf(vendors, usual), allowFallback: true, toolEffort: 'high' as const };
    const effortsOf = (name: string, effort?: 'medium') =>
      Object.fromEntries(
        resolve(name, { ...place, ...(effort && { effort }) }).candidates.map(each => [each.model.id, each.effort]),
      );
    const own = { 'grok-4.7': 'high', 'gpt-5.1': 'high', 'gpt-5.2': 'low' };
    for (const name of ['grok-4.7', 'gpt-5.2', 'auto']) expect(effortsOf(name)).toEqual(own);
    const asked = { 'grok-4.7': 'medium', 'gpt-5.1': 'medium', 'gpt-5.2': 'medium' };
    expect(effortsOf('gpt-5.2', 'medium')).toEqual(asked);
    expect(effortsOf('gpt-5.2:medium')).toEqual(asked);
  });
});

describe('a named model elsewhere', () => {
  it('falls back to the same model at other configured providers, never to another', () => {
    expect(namesOf(resolve('kimi-k2.6', only('openrouter', 'moonshot', 'openai')))).toEqual([
      'moonshot/kimi-k2.6',
      'openrouter/moonshotai/kimi-k2.6',
    ]);
    expect(namesOf(resolve('gpt-5.3-codex-spark'))).toEqual(['openai/gpt-5.3-codex-spark']);
  });

  it('stays local when it was local', () => {
    expect(namesOf(resolve('gpt-oss:120b'))).toEqual(['ollama/gpt-oss:120b']);
  });

  it('is not served past its own allow-list by the provider that has one', () => {
    const found = resolve('gpt-5', { ...only('openai', 'openrouter'), policy: { allowed: { openai: ['o3'] } } });
    expect(namesOf(found)).toEqual(['openrouter/openai/gpt-5']);
  });

  it('leaves out a fallback that is narrower than the call needs', () => {
    const wide = { ...only('openai', 'openrouter'), needs: { window: 8_192 } };
    expect(namesOf(resolve('gpt-4', wide))).toEqual(['openai/gpt-4']);
  });

  it('is kept, with a warning, though it cannot do what the call needs', () => {
    const found = resolve('glm-5.2', { ...only('zhipu'), needs: { vision: true, window: 2_000_000 } });
    expect(namesOf(found)).toEqual(['zhipu/glm-5.2']);
    expect(found.warnings).toHaveLength(2);
  });
});
