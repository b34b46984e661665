import { describe, expect, it } from 'vitest';
import { describeOptions, envSample } from '../../scripts/generate/describe-options.ts';
import { options } from '../../src/config/options.ts';
import { parseEnvFile } from '../../src/config/settings-files.ts';
import type { OptionSpec } from '../../src/core/option.ts';

const apiKey: OptionSpec = {
  env: ['ACME_API_KEY', 'ACME_KEY'],
  type: 'string',
  default: 'hunter2',
  doc: 'The key | of\nAcme.',
  group: 'Acme',
  secret: true,
};
const specs = { ...options, 'acme.apiKey': apiKey };
const all: [string, OptionSpec][] = Object.entries(specs);

describe('the reference', () => {
  const text = describeOptions(specs);

  it('has a row of three columns for every option, under its group', () => {
    for (const [name, { env, flag }] of all) {
      const row = text.split('\n').find(line => line.split(' | ')[0]?.includes(`, \`${name}\``)) ?? '';
      expect(row.split(/(?<!\\)\|/)).toHaveLength(5);
      for (const variable of env) expect(row).toContain(`\`${variable}\``);
      if (flag) expect(row).toContain(`\`--${flag}\``);
    }
    const groups = ['Models', 'Threads', 'Tools', 'Agent', 'Replies', 'Files', 'Operation', 'Library', 'Network'];
    const more = ['Telemetry', 'Spending', 'Programs', 'Daemon', 'Acme'];
    expect(text.match(/^## .*$/gm)).toEqual([...groups, ...more].map(group => `## ${group}`));
  });

  it('marks what the .env of a project may not set, and shows numbers, choices and defaults', () => {
    expect(text).toContain(
      '| `LOG_LEVEL`, `--log-level`, `logLevel` | debug, info, warning, error, silent (default: `info`) |',
    );
    expect(text).toMatch(/^\| `POLYLOGUE_HOME`.* † \|/m);
    expect(text).toContain('| a whole number from 1 to 10000 (default: `50`) |');
  });
});

describe('the sample of a .env file', () => {
  const text = envSample(specs);

  it('names every option, and sets nothing', () => {
    for (const [, { env, doc }] of all) {
      for (const name of env) expect(text).toContain(name);
      expect(text).toContain(doc.replace(/\s+/g, ' '));
    }
    expect({ ...parseEnvFile(text).values }).toEqual({});
  });

  it('sets every option to its default once the marks are taken away', () => {
    const { values } = parseEnvFile(text.replace(/^# ([A-Z][A-Z0-9_]*=)/gm, '$1'));
    expect(values).toMatchObject({
      DEFAULT_MODEL: 'auto',
      POLYLOGUE_TOOLSETS: 'core,code,files',
      MASK_SECRETS: 'on',
      LOCALE: '',
    });
    expect(Object.keys(values)).toHaveLength(all.length);
    expect(values.ACME_API_KEY).toBe('your_acme_api_key_here');
  });
});

it.each([describeOptions, envSample])('%o never shows what a secret is', describing => {
  expect(describing(specs)).not.toContain('hunter2');
});
