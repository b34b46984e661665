import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parseArguments } from '../../src/calls/arguments.ts';
import { createToolTable } from '../../src/engine/engine.ts';
import { narrowExposure } from '../../src/engine/exposure.ts';
import type { ExposurePolicy } from '../../src/engine/offer.ts';
import { tools } from '../../src/tools/index.gen.ts';

const standard: ExposurePolicy = { profile: 'standard', toolsets: ['core', 'code'], disabled: [], readOnly: false };
const names = (permissions: Partial<Parameters<typeof narrowExposure>[2]>, policy = standard) => {
  const { tools: listed, unlisted } = narrowExposure(tools, policy, { readOnly: false, ...permissions });
  return { listed: listed.map(({ name }) => name), unlisted: unlisted.map(({ name }) => name) };
};
const all = names({}).listed;

describe('narrow', () => {
  it('leaves everything to who may do everything', () => {
    expect(all.length).toBeGreaterThan(15);
    expect(narrowExposure(tools, { ...standard, toolsets: ['nonsense'] }, { readOnly: false }).unknown).toHaveLength(1);
  });

  it('lets names through by their globs, whatever their case, and a refused one never', () => {
    expect(names({ allow: ['CHAT', 'thread*', '*list*'] }).listed).toEqual(['chat', 'listmodels', 'threads']);
    expect(names({ allow: ['*'], deny: ['*a*', 'version'] }).listed.filter(name => /a/.test(name))).toEqual([]);
    expect(names({ allow: ['c*t'], deny: ['chat'] }).listed).toEqual([]);
    expect(names({ allow: [] }).listed).toEqual([]);
    expect(names({ allow: ['cha', 'hat', '.*', 'chat?', '[c]hat', 'ch*ha*t'] }).listed).toEqual([]);
  });

  it('takes groups away and adds none', () => {
    const core = names({ toolsets: ['core'] }).listed;
    expect(core).toContain('chat');
    expect(core).not.toContain('codereview');
    expect(names({ toolsets: ['core', 'wrapper', 'ops'] }).listed).toEqual(core);
    expect(names({ allow: ['status', 'prompt'] }).listed).toEqual([]);
    expect(narrowExposure(tools, standard, { readOnly: false, toolsets: ['cores'] }).unknown[0]).toContain('"cores"');
  });

  it('is read-only where the process or the caller is', () => {
    const destroying = (list: readonly string[]) => list.includes('import_thread');
    const full: ExposurePolicy = { ...standard, profile: 'full' };
    expect(destroying(names({}, full).listed)).toBe(true);
    expect(destroying(names({ readOnly: true }, full).listed)).toBe(false);
    expect(destroying(names({}, { ...full, readOnly: true }).listed)).toBe(false);
  });

  it.each([
    ['threads', 'action', ['list', 'search', 'read', 'sent']],
    ['job', 'action', ['status']],
    ['kimi_manage_files', 'operation', ['list']],
  ])('leaves the part of %s that only reads', (name, field, values) => {
    const full: ExposurePolicy = { ...standard, profile: 'full', configured: ['moonshot'] };
    const { tools: listed } = narrowExposure(tools, full, { readOnly: true });
    const { effects, fields } = listed.find(tool => tool.name === name)!;
    expect(effects).toMatchObject({ writes: false, destroys: false });
    expect(z.toJSONSchema(z.object(fields)).properties?.[field]).toMatchObject({ enum: values });
  });

  it('says of a call that only a writing server takes why it is refused', () => {
    const table = createToolTable(narrowExposure(tools, { ...standard, profile: 'full' }, { readOnly: true }));
    const principal = { owner: 'local', root: '/' };
    const call = (given: Record<string, unknown>) => {
      const { tool, schema } = table.lookUp({ name: 'threads', arguments: given, principal });
      return () => parseArguments(tool, schema, given);
    };
    expect(call({ action: 'delete', continuation_id: 'last', confirm: true })).toThrow(/client, is read-only/);
    expect(call({ action: 'read', continuation_id: 'last' })).not.toThrow();
    expect(call({ action: 'burn' })).toThrow(/action/);
    expect(call({ action: 'burn' })).not.toThrow(/read-only/);
    expect(() => table.lookUp({ name: 'import_thread', arguments: {}, principal })).toThrow(/client, is read-only/);
  });

  it('leads from the one tool of a lean profile to nothing that is refused', () => {
    const lean: ExposurePolicy = { ...standard, profile: 'lean' };
    const { tools: listed } = narrowExposure(tools, lean, { readOnly: false, deny: ['debug', 'job'] });
    const mode = listed.find(({ name }) => name === 'workflow')?.mode;
    expect(mode?.kind === 'alias' && mode.to).not.toContain('debug');
    expect(mode?.kind === 'alias' && mode.to).toContain('codereview');
    expect(names({ deny: ['workflow'] }, lean).listed).not.toContain('workflow');
  });
});
