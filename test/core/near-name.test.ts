import { describe, expect, it } from 'vitest';
import { nearName } from '../../src/core/text.ts';
import { ownTime } from '../support/own-time.ts';

const known = ['DEFAULT_MODEL', 'defaultModel', 'LOCALE', 'MAX_FILE_BYTES', 'MAX_NAMED_FILES', 'openai.apiKey'];

describe('the near name', () => {
  it.each([
    ['DEFAULT_MODLE', 'DEFAULT_MODEL'],
    ['MAX_FILES_BYTES', 'MAX_FILE_BYTES'],
    ['max-named-files', 'MAX_NAMED_FILES'],
    ['LOCAL', 'LOCALE'],
    ['LOACLE', 'LOCALE'],
    ['openai.apikey', 'openai.apiKey'],
    ['TZ', undefined],
    ['', undefined],
    ['COMPOSE_PROJECT_NAME', undefined],
  ])('of %s is %s', (given, expected) => {
    expect(nearName(given, known)).toBe(expected);
  });

  it('of a very long name is found at once', () => {
    const start = ownTime();
    expect(nearName('X'.repeat(1_000_000), known)).toBeUndefined();
    expect(ownTime() - start).toBeLessThan(1_000);
  });
});
