import { describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/calls/argument-schema.ts';
import { parseArguments } from '../../src/calls/arguments.ts';
import { isAppError } from '../../src/core/errors.ts';
import { isRecord } from '../../src/core/json.ts';
import { analyze } from '../../src/tools/analyze.ts';
import { chat } from '../../src/tools/chat.ts';
import { debug } from '../../src/tools/debug.ts';
import { tools } from '../../src/tools/index.gen.ts';
import { job } from '../../src/tools/job.ts';
import { thinkdeep } from '../../src/tools/thinkdeep.ts';
import { threads } from '../../src/tools/threads.ts';

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

  it('are refused with the list of choices once', () => {
    const { message } = refusal(() => parse(chat, { prompt: 'hi', context: 'all' }));
    expect(message).toBe('chat got invalid arguments: context: not an allowed value (allowed: thread, files, none).');
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

describe('what is no text where a text belongs', () => {
  const cause = { cause: 'off by one' };
  it.each([
    ['an object', cause, '{"cause":"off by one"}'],
    ['a list', ['a', null, 'b'], 'a\nb'],
    ['a list of objects', [cause, ['c', 1]], '{"cause":"off by one"}\nc\n1'],
    ['a number', 12, '12'],
  ])('is kept as text in a step: %s', (_what, findings, text) => {
    const whole = parse(debug, { ...step, findings, step: findings, hypothesis: findings }).args;
    expect(whole).toMatchObject({ findings: text, step: text, hypothesis: text });
    const more = parse(debug, { ...step, findings, error_context: ['E1', 'E2'] }).args;
    expect(more.findings).toBe(`${text}\n\nerror context: E1\nE2`);
  });

  it.each([
    [{ prompt: 'why?', findings: { cause: 'X1' } }, '{"cause":"X1"}'],
    [{ prompt: 'why?', findings: ['X2a'], step: ['S1', 'S2'] }, 'X2a\n\nS1\nS2'],
    [{ prompt: 'why?', findings: 12, confidence: { level: 'high' } }, '12\n\nconfidence: {"level":"high"}'],
    [{ prompt: 'why?', findings: [] }, ''],
  ])('is kept as text beside a question: %j', (raw, findings) => {
    expect(parse(debug, raw).args).toMatchObject({ step: 'why?', step_number: 1, findings });
  });

  it('may be the question itself', () => {
    expect(parse(debug, { prompt: ['why?', 'how?'] }).args.step).toBe('why?\nhow?');
    expect(parse(thinkdeep, { problem_context: ['slow', 'wrong'] }).args.step).toBe('slow\nwrong');
  });

  it('is a mistake in every field that names something, and in none of the others', () => {
    const taking = new Set<string>();
    const refusing = new Set<string>();
    for (const tool of tools) {
      const schema = schemaOf(tool);
      for (const [name, { type, enum: words, items }] of Object.entries(schema.properties)) {
        if (words !== undefined || (type !== 'string' && !(isRecord(items) && items.type === 'string'))) continue;
        const slips = type === 'string' ? [{ a: 1 }, ['a', 'b']] : [[{ a: 1 }]];
        for (const slip of slips) {
          let text = '';
          try {
            parse(tool, { [name]: slip });
          } catch (error) {
            if (isAppError(error)) text = JSON.stringify(error.details.validationErrors);
          }
          (text.includes('expected string') ? refusing : taking).add(name);
        }
      }
    }
    expect([...taking].toSorted()).toEqual(
      [
        ...[
          'command',
          'compliance_requirements',
          'findings',
          'focus_areas',
          'focus_on',
          'hypothesis',
          'problem_context',
        ],
        ...['prompt', 'query', 'question', 'relevant_context', 'search_query', 'security_scope', 'standards', 'stderr'],
        ...['step', 'target_description', 'task', 'text'],
      ].toSorted(),
    );
    expect([...taking].filter(name => refusing.has(name))).toEqual([]);
    expect([...refusing]).toEqual(
      expect.arrayContaining([
        'continuation_id',
        'job_id',
        'model',
        'synthesizer',
        'file_path',
        'output_dir',
        'images',
      ]),
    );
  });
});

describe('ids as models write them', () => {
  const id = '92e7c0de-1234-4abc-8def-0123456789ab';
  it.each([` ${id} `, id.toUpperCase(), `"${id}"`, `\n\`'${id}'\``])('are found: %j', written => {
    expect(parse(chat, { prompt: 'hi', continuation_id: written }).args.continuation_id).toBe(id);
    expect(parse(job, { job_id: written }).args.job_id).toBe(id);
  });

  it.each(['LAST', 'Last ', '"last"'])('mean the newest thread: %j', written => {
    expect(parse(threads, { action: 'read', continuation_id: written }).args.continuation_id).toBe('last');
  });

  it.each(['null', 'None', ' undefined ', '"new"', '', '  ', '""'])('mean none: %j', written => {
    expect(parse(chat, { prompt: 'hi', continuation_id: written }).args).toEqual({ prompt: 'hi' });
    expect(refusal(() => parse(job, { job_id: written })).details).toMatchObject({
      code: 'MISSING_PARAMETER',
      validationErrors: [{ field: 'job_id', error: 'missing' }],
    });
  });

  it('are left alone where they are none', () => {
    const odd = 'not an id\n  at all';
    expect(parse(chat, { prompt: ' New ', continuation_id: odd }).args).toEqual({
      prompt: ' New ',
      continuation_id: odd,
    });
    expect(refusal(() => parse(chat, { prompt: 'hi', continuation_id: [id] })).details.code).toBe(
      'INVALID_INPUT_FORMAT',
    );
  });
});
