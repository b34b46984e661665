import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ProviderDefinition } from '../../src/models/provider.ts';
import { providers } from '../../src/providers/index.gen.ts';

const all: readonly ProviderDefinition[] = providers;
const reference = readFileSync(new URL('../../docs/reference/providers.md', import.meta.url), 'utf8');

describe('the reference of providers', () => {
  it('has a word on each: where it asks, what is odd about it, what it was written from', () => {
    const without = all.filter(({ docs }) => !docs?.endpoint || docs.quirks.length === 0 || !docs.source);
    expect(without.map(({ id }) => id)).toEqual([]);
  });

  it.each(all.map(definition => [definition.id, definition] as const))(
    'tells of %s its names and settings',
    (id, definition) => {
      const { title, names, options, docs } = definition;
      const section = reference.slice(reference.indexOf(`## ${title}\n`)).split('\n## ')[0] ?? '';
      expect(section).toContain(`\`${id}\``);
      for (const name of names) expect(section).toContain(`\`${name}\``);
      for (const { env } of Object.values(options)) for (const name of env) expect(section).toContain(`\`${name}\``);
      expect(section).toContain(docs?.source);
    },
  );
});
