import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/calls/argument-schema.ts';
import { tools } from '../../src/tools/index.gen.ts';

const folder = new URL('../../src/tools', import.meta.url);
const files = readdirSync(folder)
  .filter(name => name.endsWith('.ts') && !name.endsWith('.gen.ts'))
  .map(name => name.slice(0, -3));

describe('the tools as a whole', () => {
  it('are one a file, each named after its file', () => {
    expect(tools.map(tool => tool.name).sort()).toEqual(files.map(name => name.replaceAll('-', '_')).sort());
  });

  const bytesOf = (toolsets: readonly string[]) => {
    const listed = tools.filter(({ toolset }) => toolsets.includes(toolset)).map(tool => schemaOf(tool).listing);
    return Buffer.byteLength(JSON.stringify(listed));
  };

  it('stay below the ceilings of tools/list', () => {
    expect(bytesOf(['core', 'code'])).toBeLessThanOrEqual(16_500);
    expect(bytesOf(['wrapper'])).toBeLessThan(3_000);
    expect(bytesOf(['files'])).toBeLessThanOrEqual(2_500);
    expect(bytesOf(tools.map(({ toolset }) => toolset))).toBeLessThan(27_000);
  });
});

describe.each(tools.map(tool => [tool.name, tool] as const))('%s', (_name, tool) => {
  const { listing, properties } = schemaOf(tool);

  it('says what it is for in one sentence that a search finds', () => {
    expect(tool.title.length).toBeLessThanOrEqual(40);
    expect(tool.description).toMatch(/^[A-Z].{20,150}\.$/s);
  });

  it('has all annotations that say something of it, and none that contradict each other', () => {
    const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = listing.annotations;
    for (const hint of [readOnlyHint, destructiveHint, openWorldHint]) expect(typeof hint).toBe('boolean');
    // The protocol gives it a meaning for tools that write alone.
    expect(typeof idempotentHint).toBe(readOnlyHint ? 'undefined' : 'boolean');
    if (readOnlyHint) expect(destructiveHint).toBe(false);
  });

  it('has a schema that every host takes: no dialect, no nested definitions, one union', () => {
    // A model of a panel is a text or an object: real hosts take that (test/e2e/hosts), and refuse the text where it is not said.
    const panelist = /"items":\{"anyOf":\[\{"type":"string"\},\{"type":"object"/;
    const text = JSON.stringify(listing.inputSchema).replace(tool.name === 'consensus' ? panelist : '', '');
    expect(listing.inputSchema.type).toBe('object');
    expect(text).not.toMatch(/\$schema|\$ref|anyOf|oneOf|allOf|additionalProperties/);
  });

  it('hides nothing that it advertises, and renames to fields that exist', () => {
    for (const hidden of Object.keys(tool.accepts ?? {})) expect(tool.fields).not.toHaveProperty(hidden);
    for (const target of Object.values(tool.renamed ?? {})) expect(properties).toHaveProperty(target);
  });
});
