import { describe, expect, it } from 'vitest';
import { tables } from '../../src/app/settings.ts';
import { parseValue } from '../../src/config/option-values.ts';
import { options } from '../../src/config/options.ts';
import type { OptionSpec } from '../../src/core/option.ts';

const all: [string, OptionSpec][] = Object.entries(options);
const everywhere = Object.entries(tables).flatMap(([id, table]) =>
  Object.entries<OptionSpec>(table).map(([name, spec]): [string, OptionSpec] => [`${id}.${name}`, spec]),
);
const paths = { resolve: (path: string) => path, delimiter: ':' };

describe('the table of options', () => {
  it.each(all)('%s says in one sentence what it does', (_name, { doc, group }) => {
    expect(doc).toMatch(/^[A-Z`][^\n]{20,}[^.]\.$/);
    expect(group).toMatch(/^[A-Z][a-z]+$/);
  });

  it('has every name of the environment and every flag once', () => {
    const names = all.flatMap(([, { env }]) => env);
    const flags = all.flatMap(([, { flag }]) => flag ?? []);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(flags).size).toBe(flags.length);
    // Proxies are the one thing that other programs read in lower case.
    for (const name of names) expect(name).toMatch(/^(?:[A-Z][A-Z0-9_]*|https?_proxy|no_proxy)$/);
    for (const flag of flags) expect(flag).toMatch(/^[a-z][a-z-]*$/);
    for (const [, { env }] of all) expect(env.length).toBeGreaterThan(0);
  });

  it.each(everywhere)('%s accepts its own default', (_name, spec) => {
    if (spec.default === undefined) return expect(spec.default).toBeUndefined();
    expect(parseValue(spec, spec.default, paths)).toEqual({ ok: true, value: spec.default });
    expect(parseValue(spec, String(spec.default), paths)).toEqual({ ok: true, value: spec.default });
  });

  it.each(all)('%s keeps secrets off the command line and places out of projects', (_name, spec) => {
    expect(spec.secret !== true || spec.flag === undefined).toBe(true);
    const isPlace = ['path', 'paths', 'url'].includes(spec.type);
    expect(!isPlace || spec.operatorOnly === true).toBe(true);
  });

  it.each(all)('%s has synonyms for its own choices only', (_name, { choices = [], synonyms = {} }) => {
    for (const [word, choice] of Object.entries(synonyms)) {
      expect(choices).toContain(choice);
      expect(choices).not.toContain(word);
      expect(word).toBe(word.toLowerCase());
    }
  });

  it('keeps the names that callers of PAL have in their settings', () => {
    const names = new Set(all.flatMap(([, { env }]) => env));
    for (const name of [
      'DEFAULT_MODEL',
      'CONVERSATION_TIMEOUT_HOURS',
      'MAX_CONVERSATION_TURNS',
      'LOG_LEVEL',
      'DISABLED_TOOLS',
      'LOCALE',
      'MAX_MCP_OUTPUT_TOKENS',
      'PAL_MCP_FORCE_ENV_OVERRIDE',
      'OPENAI_ALLOWED_MODELS',
      'GOOGLE_ALLOWED_MODELS',
      'XAI_ALLOWED_MODELS',
      'OPENROUTER_ALLOWED_MODELS',
      'DIAL_ALLOWED_MODELS',
      'CUSTOM_ALLOWED_MODELS',
      'AZURE_ALLOWED_MODELS',
      'AZURE_OPENAI_ALLOWED_MODELS',
    ]) {
      expect(names).toContain(name);
    }
  });
});
