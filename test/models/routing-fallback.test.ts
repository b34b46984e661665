import { describe, expect, it } from 'vitest';
import { namesOf, resolve } from './routing-fixtures.ts';

const configured = ['openai', 'google', 'openrouter', 'ollama'];

describe('who may answer for a named model', () => {
  it('is the same model at another provider, and nobody else', () => {
    const names = namesOf(resolve('gpt-5', { configured }));
    expect(names).toEqual(['openai/gpt-5', 'openrouter/openai/gpt-5']);
  });

  it('is another model too, where the caller allows it', () => {
    const { candidates } = resolve('gpt-5', { configured, allowFallback: true });
    const names = candidates.map(({ model }) => `${model.provider}/${model.id}`);
    expect(names.slice(0, 2)).toEqual(['openai/gpt-5', 'openrouter/openai/gpt-5']);
    expect(names.length).toBeGreaterThan(2);
    expect(new Set(names).size).toBe(names.length);
    expect(candidates.slice(2).every(({ reason }) => reason === 'if gpt-5 fails')).toBe(true);
  });

  it('can do what the call needs, and thinks as hard', () => {
    const { candidates } = resolve('gpt-5:high', {
      configured,
      allowFallback: true,
      needs: { vision: true, window: 200_000 },
    });
    for (const { model } of candidates) {
      expect(model.input).toContain('image');
      expect(model.window).toBeGreaterThanOrEqual(200_000);
    }
    expect(candidates.every(({ model, effort }) => !model.efforts.includes('high') || effort === 'high')).toBe(true);
  });

  it('is nobody elsewhere for a model of this machine', () => {
    const roster = { configured: ['openai', 'ollama'] };
    const [local] = resolve('auto', { configured: ['ollama'] }).candidates;
    const names = namesOf(resolve(`ollama:${local!.model.id}`, { ...roster, allowFallback: true }));
    expect(names.every(name => name.startsWith('ollama/'))).toBe(true);
  });

  it('is nobody, even after an automatic choice, where the caller forbids it', () => {
    expect(namesOf(resolve('auto', { configured: ['openai', 'google'] })).length).toBeGreaterThan(1);
    expect(namesOf(resolve('auto', { configured: ['openai', 'google'], allowFallback: false }))).toHaveLength(1);
  });
});

describe('the automatic choice among models of which some fail', () => {
  it('takes those last, and all of them when there is nothing else', () => {
    const [best, second] = namesOf(resolve('auto', { configured: ['openai', 'google'] }));
    const ailing = (model: { provider: string; id: string }) => `${model.provider}/${model.id}` === best;
    const without = namesOf(resolve('auto', { configured: ['openai', 'google'], ailing }));
    expect(without[0]).toBe(second);
    expect(without).not.toContain(best);
    expect(namesOf(resolve('auto', { configured: ['openai', 'google'], ailing: () => true }))[0]).toBe(best);
  });

  it('does not keep a named model from being asked', () => {
    expect(namesOf(resolve('gpt-5', { configured, ailing: () => true }))[0]).toBe('openai/gpt-5');
  });
});
