import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../src/models/catalogue/model-sources.ts';
import type { ProviderDefinition } from '../../src/models/provider.ts';
import { providers } from '../../src/providers/index.gen.ts';
import { recordedErrorsOf } from '../support/vendors/recorded-errors.ts';
import { derivedCase } from './derived-case.ts';
import { providerSuite } from './provider-suite.ts';

/** Those that answer without a vendor have nobody to be held against. */
const vendors: readonly ProviderDefinition[] = providers;
const asked = vendors.filter(({ onlyByName }) => !onlyByName);

const caseFile = (id: string) =>
  [`../providers/${id}.test.ts`, `../providers/${id}/${id}.test.ts`]
    .map(path => new URL(path, import.meta.url))
    .find(file => existsSync(file));
const inCamelCase = (id: string) => id.replace(/-(.)/g, (_match, letter: string) => letter.toUpperCase());

describe('every provider is run through the suite', () => {
  it.each(
    asked.flatMap(({ id }) => {
      const file = caseFile(id);
      return file ? [[id, file] as const] : [];
    }),
  )('%s by a case of its own', (id, file) => {
    const source = readFileSync(file, 'utf8');
    expect(source).toContain('providerSuite({');
    expect(source).toMatch(new RegExp(`definition: ${inCamelCase(id)}\\b`));
  });

  it.each(asked.map(({ id }) => id))(
    '%s with what its vendor says of prompts that are too long, of credit and of filters',
    id => {
      const rows = recordedErrorsOf(id);
      const classes = new Set(rows.map(({ class: kind }) => (kind === 'quota' ? 'balance' : kind)));
      // Ollama filters nothing.
      const wanted = ['balance', 'content_filter', 'context_length'].filter(
        kind => id !== 'ollama' || kind !== 'content_filter',
      );
      expect([...classes].sort()).toEqual(wanted);
    },
  );

  it('and each has its options, its title and its short names for itself', () => {
    const names = vendors.flatMap(({ id, names: short }) => [id, ...short]);
    expect(new Set(names).size).toBe(names.length);
    const settings = vendors.flatMap(({ options }) => Object.values(options).flatMap(({ env }) => env));
    expect(new Set(settings).size).toBe(settings.length);
    expect(new Set(vendors.map(({ title }) => title)).size).toBe(vendors.length);
  });
});

for (const definition of asked) {
  if (!caseFile(definition.id)) providerSuite(derivedCase(definition, loadCatalogue()));
}
