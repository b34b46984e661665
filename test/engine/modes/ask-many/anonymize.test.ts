import { describe, expect, it } from 'vitest';
import { anonymize, sideBySide } from '../../../../src/engine/modes/ask-many/verdicts.ts';

describe('a verdict without names', () => {
  it('loses the names of models and vendors, in any spelling', () => {
    const text = 'As Claude Sonnet 4.5 by Anthropic (claude-sonnet-4-5), with GPT-5.1, OpenAI and gemini_2.5 I agree.';
    expect(anonymize(text, [], 'Use tabs?')).not.toMatch(/claude|anthropic|gpt|openai|gemini/i);
  });

  it('keeps the names that the proposal is about', () => {
    const text = 'OpenAI is dearer than Mistral here.';
    expect(anonymize(text, [], 'Should we use OpenAI or Mistral?')).toBe(text);
  });

  it('keeps words that only begin like a name', () => {
    const text = 'The googled llamas of glmnet are no models.';
    expect(anonymize(text, [], '')).toBe(text);
  });

  it('loses the name of a seat that no list knows, but no plain word', () => {
    const seat = {
      model: 'any',
      stance: 'neutral' as const,
      label: 'A',
      warnings: [],
      who: { failure: new Error() as never },
    };
    const text = 'any model, my-own-7b too';
    expect(anonymize(text, [seat, { ...seat, model: 'my-own-7b' }], '')).toBe('any model, [name withheld] too');
  });
});

describe('verdicts side by side', () => {
  it('share the room', () => {
    const long = 'a long argument '.repeat(2_000);
    const shown = sideBySide(
      [
        { label: 'A', text: long },
        { label: 'B', text: 'short' },
      ],
      1_000,
    );
    expect(shown.length).toBeLessThan(4_000);
    expect(shown).toContain('[… cut]');
    expect(shown).toContain('short');
  });
});
