import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { schemaOf } from '../../../../src/calls/argument-schema.ts';
import { parseArguments } from '../../../../src/calls/arguments.ts';
import { defineTool } from '../../../../src/calls/tool.ts';
import { isAppError } from '../../../../src/core/errors.ts';
import { codereview } from '../../../../src/tools/codereview.ts';
import { debug } from '../../../../src/tools/debug.ts';
import { secaudit } from '../../../../src/tools/secaudit.ts';
import { step } from '../../../tools/workflow-rig.ts';

const parse = (tool: Parameters<typeof schemaOf>[0], more: Record<string, unknown>) =>
  parseArguments(tool, schemaOf(tool), step(1, 2, more));

describe('a step as hosts and models send it', () => {
  it.each([
    ['a list of texts', ['odd']],
    ['a lone text', 'odd'],
    ['a list with gaps', ['odd', null, '']],
  ])('may have %s for issues', (_what, issues_found) => {
    expect(parse(codereview, { issues_found }).args.issues_found).toEqual([
      { severity: 'unrated', description: 'odd' },
    ]);
  });

  it.each([
    ['a list as JSON text', '[{"severity":"low","description":"odd"}]'],
    ['objects as JSON text', ['{"severity":"low","description":"odd"}']],
    ['a lone object', { severity: 'low', description: 'odd' }],
    ['a severity in a list', [{ severity: ['low'], description: 'odd', file: null }]],
    ['a lone object as JSON text', '{"severity":"low","description":"odd"}'],
  ])('may have issues as %s', (_what, issues_found) => {
    expect(parse(codereview, { issues_found }).args.issues_found).toEqual([{ severity: 'low', description: 'odd' }]);
  });

  it('may have an issue that only looks like JSON', () => {
    expect(parse(codereview, { issues_found: ['{oops'] }).args.issues_found).toEqual([
      { severity: 'unrated', description: '{oops' },
    ]);
  });

  it('may have numbers and gaps in a list of texts', () => {
    expect(
      parse(secaudit, { compliance_requirements: ['SOC2', 27001, null, ''] }).args.compliance_requirements,
    ).toEqual(['SOC2', '27001']);
  });

  it.each([
    ['confidence', 'Very High', 'very_high'],
    ['confidence', 'ALMOST-CERTAIN', 'almost_certain'],
    ['use_assistant_model', 'True', true],
    ['use_assistant_model', 'FALSE', false],
    ['step_number', ' 2 ', 2],
  ])('may spell %s as "%s"', (field, given, meant) => {
    expect(parse(debug, { [field]: given }).args[field]).toBe(meant);
  });

  it('may have no findings yet', () => {
    expect(parse(debug, { findings: '' }).args.findings).toBe('');
  });

  it('may name its files as other tools do', () => {
    expect(parse(debug, { absolute_file_paths: 'a.ts' }).args.relevant_files).toEqual(['a.ts']);
  });

  it('is told of a misspelt older word', () => {
    try {
      parseArguments(debug, schemaOf(debug), { promtp: 'why?' });
    } catch (error) {
      expect(isAppError(error) && error.details.validationErrors).toEqual([
        { field: 'promtp', error: 'unknown field', allowed: ['prompt'] },
      ]);
      return;
    }
    throw new Error('nothing was refused');
  });

  it('still is refused where it can not be understood', () => {
    expect(() => parse(debug, { step_number: 'second' })).toThrow(/step_number/);
    expect(() => parse(debug, { confidence: 'sure' })).toThrow(/confidence/);
  });
});

describe('a list of objects with fields', () => {
  const panel = defineTool({
    name: 'panel',
    title: 'Panel',
    description: 'A tool with a list of objects.',
    toolset: 'core',
    tier: 'user',
    effects: { writes: false, destroys: false, network: false, idempotent: true },
    fields: { members: z.array(z.object({ model: z.string(), weight: z.int().optional() })) },
    mode: { kind: 'action', run: async () => ({}) },
  });

  it('takes a text for the one field that it needs, and mends the fields of each', () => {
    const members = ['gpt', '{"model":"claude","weight":"2"}', { model: 'glm', weight: null }];
    expect(parseArguments(panel, schemaOf(panel), { members }).args.members).toEqual([
      { model: 'gpt' },
      { model: 'claude', weight: 2 },
      { model: 'glm' },
    ]);
  });
});
