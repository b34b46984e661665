import { describe, expect, it } from 'vitest';
import { refusalOf, rosterOf } from '../models/routing-fixtures.ts';

/** An installation that was built with these providers alone. */
function only(...ids: string[]) {
  const roster = rosterOf(['openrouter']);
  return { roster: { ...roster, providers: roster.providers.filter(({ id }) => ids.includes(id)) } };
}

describe('a name that begins with a provider', () => {
  it.each(['google:gemini-2.5-pro', 'minimax:nothing-like-it', 'minimax:MiniMax-M2.5', 'xai:grok-4'])(
    'is refused for the provider when the installation has none of that name: %s',
    name => {
      const refusal = refusalOf(name, only('openai', 'openrouter'));
      expect(refusal.code).toBe('PROVIDER_NOT_FOUND');
      expect(refusal.message).toContain(`"${name.split(':')[0]}"`);
      expect(refusal.next).toMatch(/Configured providers: openrouter\..* Not configured are openai \(OPENAI_API_KEY\)/);
    },
  );

  it.each(['nosuch:gpt-5', 'nosuch:thing', 'opnai:gpt-5:high', 'bedrock:claude-opus-4-5', 'lab2:gpt-5'])(
    'is refused for the provider when nobody has heard of it: %s',
    name => {
      const refusal = refusalOf(name, { configured: ['openai', 'ollama'] });
      expect(refusal.code).toBe('PROVIDER_NOT_FOUND');
      expect(refusal.next).toContain('openai, ollama');
      expect(refusal.next).toContain('google (GEMINI_API_KEY)');
    },
  );

  it.each(['qwen9:8b', 'mixtrall:latest', 'nomixtral:8x7b-instruct', 'gpt-99:cloud', 'nothing:high'])(
    'is a model with its tag or suffix where it can be one: %s',
    name => {
      expect(refusalOf(name, { configured: ['openai'] }).code).toBe('MODEL_NOT_FOUND');
    },
  );

  it('names who else serves the model when the provider has no key', () => {
    const refusal = refusalOf('google:gemini-2.5-pro', { configured: ['openrouter'] });
    expect(refusal).toMatchObject({ code: 'MODEL_NOT_FOUND', class: 'no_key' });
    expect(refusal.message).toContain('needs google, which is not configured');
    expect(refusal.next).toContain('GEMINI_API_KEY');
    expect(refusal.next).toContain('"openrouter:google/gemini-2.5-pro"');
  });
});
