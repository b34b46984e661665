import { describe, expect, it } from 'vitest';
import { flagHelp } from '../../src/cli/run-command-line.ts';
import { options } from '../../src/config/options.ts';
import type { OptionSpec } from '../../src/core/option.ts';

const apiKey: OptionSpec = { env: ['ACME_API_KEY'], type: 'string', default: 'hunter2', doc: 'A key.', group: 'Acme' };
const all: Record<string, OptionSpec> = options;

describe('the help for flags', () => {
  const text = flagHelp([...Object.values(all), { ...apiKey, secret: true }]);

  it('has every flag with its argument, and no option without one', () => {
    expect(text).toMatch(/^ {2}--store <word> .*\(sqlite, redis, memory; default: sqlite; POLYLOGUE_STORE\)$/m);
    expect(text).toMatch(/^ {2}--offline +\S.*\(OFFLINE\)$/m);
    for (const { flag } of Object.values(all)) if (flag) expect(text).toContain(`--${flag}`);
    expect(text).not.toContain('ACME');
  });

  it('never shows what a secret is', () => {
    expect(text).not.toContain('hunter2');
  });
});
