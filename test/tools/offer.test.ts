import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/calls/argument-schema.ts';
import { workflowOf } from '../../src/calls/tool.ts';
import { createToolTable } from '../../src/engine/engine.ts';
import { catalogueVersion, createPrompts, exposeTools } from '../../src/engine/exposure.ts';
import { type ExposurePolicy, instructionsFor, offerOf, selectTools } from '../../src/engine/offer.ts';
import { tools } from '../../src/tools/index.gen.ts';
import { offered as generated } from '../../src/tools/offered.gen.ts';

const standard: ExposurePolicy = { profile: 'standard', toolsets: ['core', 'code'], disabled: [], readOnly: false };
const offered = (policy: Partial<ExposurePolicy>) => exposeTools(tools, { ...standard, ...policy });
const names = (policy: Partial<ExposurePolicy>) => offered(policy).tools.map(tool => tool.name);
const principal = { owner: 'local', root: '/project' };

describe('the tools that are offered', () => {
  it('are, in the lean profile, a handful in at most 4,000 bytes', () => {
    const offer = offered({ profile: 'lean' });
    const expected = ['chat', 'consensus', 'job', 'threads', 'workflow'];
    expect(
      offer.tools
        .map(tool => tool.name)
        .filter(name => name !== 'consensus')
        .toSorted(),
    ).toEqual(expected.filter(name => name !== 'consensus'));
    const { listings } = createToolTable(offer);
    expect(Buffer.byteLength(JSON.stringify(listings))).toBeLessThanOrEqual(4_000);
  });

  it('are listed as their fields say where the schemas were made before, also with fewer fields', () => {
    const made = new Map(tools.map((tool, at) => [tool, generated[at]!.listing]));
    for (const policy of [{ profile: 'full' }, { profile: 'lean' }, { profile: 'full', readOnly: true }] as const) {
      const offer = offered(policy);
      expect(createToolTable(offer, made).listings).toEqual(createToolTable(offer).listings);
    }
  });

  it.each<[string, Partial<ExposurePolicy>]>([
    ['as they are', {}],
    ['all', { profile: 'full', configured: ['moonshot', 'zhipu', 'glm', 'kimi'] }],
    ['of some toolsets', { toolsets: ['ops', 'wrapper', 'nonsense'] }],
    ['few', { only: ['Debug', 'threads', 'nothing'] }],
    ['few in the lean profile', { profile: 'lean', only: ['chat'] }],
    ['without some', { disabled: ['chat', 'consensus'] }],
    ['without steps', { only: ['chat'] }],
    ['where nothing is written', { profile: 'full', readOnly: true }],
    ['where generated code is written', { profile: 'full', writesCode: true }],
    ['where both is said', { profile: 'full', writesCode: true, readOnly: true }],
  ])('are told before their definitions are loaded in the same bytes: %s', (_what, policy) => {
    const chosen = { ...standard, ...policy };
    const offer = exposeTools(tools, chosen);
    const told = offerOf(generated, chosen);
    expect(JSON.stringify(told?.listings)).toBe(JSON.stringify(createToolTable(offer).listings));
    expect(told?.instructions).toBe(instructionsFor(offer.tools.filter(workflowOf).map(({ name }) => name)));
    expect(selectTools(generated, chosen).unknown).toEqual(offer.unknown);
  });

  it('are told by their definitions alone in the lean profile', () => {
    expect(offerOf(generated, { ...standard, profile: 'lean' })).toBeUndefined();
  });

  it('lead, in the lean profile, to every workflow by its kind, and to tools that are not listed', () => {
    const { lookUp } = createToolTable(offered({ profile: 'lean' }));
    const found = lookUp({ name: 'workflow', arguments: { kind: 'debug', step: 'Look.' }, principal });
    expect(found.tool.name).toBe('debug');
    expect(found.request).toMatchObject({ name: 'debug', arguments: { step: 'Look.' } });
    expect(found.request.arguments).not.toHaveProperty('kind');
    expect(lookUp({ name: 'version', arguments: {}, principal }).tool.name).toBe('version');
    for (const kind of [undefined, 'chat', 'workflow', 7]) {
      expect(() => lookUp({ name: 'workflow', arguments: { kind }, principal })).toThrow(/one of .*debug/);
    }
  });

  it('are without those that write or destroy where the server is read-only, and those are refused by name', () => {
    const offer = offered({ readOnly: true, profile: 'full' });
    for (const { effects } of offer.tools) expect(effects).toMatchObject({ writes: false, destroys: false });
    expect(offer.tools.map(tool => tool.name)).toContain('chat');
    expect(offer.tools.map(tool => tool.name)).not.toContain('import_thread');
    const { lookUp, listings } = createToolTable(offer);
    expect(() => lookUp({ name: 'import_thread', arguments: {}, principal })).toThrow(/read-only/);
    const chat = listings.find(({ name }) => name === 'chat');
    expect(chat?.inputSchema.properties).not.toHaveProperty('working_directory_absolute_path');
    expect(chat?.annotations.readOnlyHint).toBe(true);
  });

  it('keep version and listmodels, whatever is disabled, and leave out what is', () => {
    const left = names({ disabled: ['Version', 'chat', 'nonsense'] });
    expect(left).toContain('version');
    expect(left).not.toContain('chat');
    expect(offered({ disabled: ['nonsense'] }).unknown).toEqual(['Unknown tool "nonsense".']);
    expect(offered({ toolsets: ['core', 'coed'] }).unknown).toEqual([
      expect.stringMatching(/^Unknown toolset "coed"; known toolsets: .*\bcode\b/),
    ]);
    expect(names({ only: ['debug'] }).toSorted()).toEqual(['debug', 'listmodels', 'version']);
    const everything = tools.filter(({ tier }) => tier === 'user').map(({ name }) => name);
    expect(names({ profile: 'full', toolsets: [] }).toSorted()).toEqual(everything.toSorted());
  });

  it('have a version that was raised when one of them changed', () => {
    const listings = tools.map(tool => schemaOf(tool).listing);
    const snapshot = JSON.parse(readFileSync(new URL('../fixtures/catalogue.json', import.meta.url), 'utf8'));
    const release = catalogueVersion(listings).split('+')[0];
    // After a change of a tool: raise `release` in src/engine/exposure.ts, then run "npm run snapshot".
    expect({ release, tools: JSON.parse(JSON.stringify(listings)) }).toEqual(snapshot);
  });
});

describe('prompts', () => {
  const { list, text } = createPrompts(offered({}));

  it('are one a tool by the names of PAL, and one to go on', () => {
    const listed = list().map(prompt => prompt.name);
    expect(listed).toEqual(expect.arrayContaining(['chat', 'thinkdeeper', 'review', 'debug', 'continue']));
    expect(new Set(listed).size).toBe(listed.length);
    expect(listed).not.toContain('codereview');
  });

  it('name the tool, the model and the thread', () => {
    const said = text('review', { request: 'Look at a.ts.', model: 'flash', continuation_id: 'last' });
    expect(said).toMatch(/"codereview".*model "flash" and continuation_id "last"/);
    expect(said).toContain('Look at a.ts.');
    expect(text('codereview', {})).toBe(text('review', {}));
    expect(text('continue', {})).toContain('continuation_id "last"');
  });

  it('take the model after a colon, with its own colons', () => {
    expect(text('chat:openai:gpt-5:high', {})).toContain('model "openai:gpt-5:high"');
  });

  it('are undefined for what has no such name', () => {
    for (const name of ['', 'nothing', 'toString', ':x', '__proto__']) expect(text(name, {})).toBeUndefined();
  });

  it('lead through the one workflow tool where that is the listed one', () => {
    const lean = createPrompts(offered({ profile: 'lean' }));
    expect(lean.text('debug', {})).toContain('"workflow" with kind "debug"');
    expect(lean.list().map(prompt => prompt.name)).not.toContain('workflow');
  });
});
