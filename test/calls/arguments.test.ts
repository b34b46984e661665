import { describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/calls/argument-schema.ts';
import { parseArguments } from '../../src/calls/arguments.ts';
import { isAppError } from '../../src/core/errors.ts';
import { analyze } from '../../src/tools/analyze.ts';
import { chat } from '../../src/tools/chat.ts';
import { debug } from '../../src/tools/debug.ts';

const parse = (tool: Parameters<typeof schemaOf>[0], raw: Record<string, unknown>) =>
  parseArguments(tool, schemaOf(tool), raw);

function refusal(run: () => unknown) {
  try {
    run();
  } catch (error) {
    if (isAppError(error)) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

const step = { step: 'look', step_number: 1, total_steps: 2, next_step_required: true, findings: 'none yet' };

describe('arguments as hosts and models send them', () => {
  it('drop null and empty text', () => {
    expect(parse(chat, { prompt: 'hi', model: null, continuation_id: '' }).args).toEqual({ prompt: 'hi' });
  });

  it('may have lists, numbers and booleans as text', () => {
    const { args } = parse(analyze, {
      ...step,
      step_number: '1',
      next_step_required: 'false',
      relevant_files: '["a.ts","b.ts"]',
    });
    expect(args).toMatchObject({ step_number: 1, next_step_required: false, relevant_files: ['a.ts', 'b.ts'] });
  });

  it('may have a lone text where a list belongs, brackets in a name included', () => {
    expect(parse(chat, { prompt: 'x', absolute_file_paths: 'a.ts' }).args.absolute_file_paths).toEqual(['a.ts']);
    expect(parse(chat, { prompt: 'x', absolute_file_paths: '[id].ts' }).args.absolute_file_paths).toEqual(['[id].ts']);
  });

  it('may use older names', () => {
    expect(parse(chat, { question: 'why?', files: ['a.ts'] }).args).toEqual({
      prompt: 'why?',
      absolute_file_paths: ['a.ts'],
    });
  });

  it('keep the real name when both are sent', () => {
    expect(parse(chat, { question: 'old', prompt: 'new' }).args.prompt).toBe('new');
    expect(parse(chat, { prompt: 'new', question: 'old' }).args.prompt).toBe('new');
  });

  it('may carry what a host added, with a warning', () => {
    const { args, warnings } = parse(chat, { prompt: 'hi', toolCallId: '7' });
    expect(args).toEqual({ prompt: 'hi' });
    expect(warnings).toEqual(['Ignored unknown field "toolCallId" of chat.']);
  });

  it.each([
    ['modell', 'model'],
    ['Model', 'model'],
    ['continuation-id', 'continuation_id'],
    ['absolut_file_paths', 'absolute_file_paths'],
  ])('are refused when %s was probably meant to be %s', (given, meant) => {
    const error = refusal(() => parse(chat, { prompt: 'hi', [given]: 'x' }));
    expect(error.details).toMatchObject({
      code: 'INVALID_INPUT_FORMAT',
      validationErrors: [{ field: given, allowed: [meant] }],
    });
  });

  it('are refused with every field that is wrong and what it takes', () => {
    const error = refusal(() => parse(debug, { ...step, step_number: 0, confidence: 'sure' }));
    expect(error.details.code).toBe('INVALID_INPUT_FORMAT');
    expect(error.details.validationErrors?.map(field => field.field)).toEqual(['step_number', 'confidence']);
    expect(error.details.validationErrors?.[1]?.allowed).toContain('almost_certain');
  });

  it('are MISSING_PARAMETER when all that is wrong is missing', () => {
    const error = refusal(() => parse(chat, {}));
    expect(error.details).toMatchObject({
      code: 'MISSING_PARAMETER',
      validationErrors: [{ field: 'prompt', error: 'missing' }],
    });
  });

  it('can not reach what JavaScript objects have of themselves', () => {
    const raw: Record<string, unknown> = JSON.parse('{"prompt":"hi","__proto__":{"model":"x"},"constructor":"y"}');
    expect(parse(chat, raw).args).toEqual({ prompt: 'hi' });
  });
});
