import { describe, expect, it } from 'vitest';
import type { CliEvent } from '../../../../src/providers/external-cli/clis/cli.ts';
import { clis } from '../../../../src/providers/external-cli/clis/index.gen.ts';
import { type CliOutput, readOutput } from '../../../../src/providers/external-cli/command/output.ts';

/** What a CLI printed, read as it came: in chunks of a few bytes. */
function read(name: string, printed: string, chunk = 7): CliOutput & { streamed: string; events: CliEvent[] } {
  const cli = clis.find(each => each.name === name);
  if (!cli) throw new Error(`there is no ${name}`);
  const events: CliEvent[] = [];
  let streamed = '';
  const reader = readOutput(cli, {
    onText(delta) {
      streamed += delta;
    },
    onEvent: event => events.push(event),
    onFull: () => undefined,
  });
  const bytes = Buffer.from(printed);
  for (let at = 0; at < bytes.length; at += chunk) reader.push(bytes.subarray(at, at + chunk));
  return { ...reader.end(), streamed, events };
}

const lines = (...events: unknown[]) => events.map(event => JSON.stringify(event)).join('\n');

describe('gemini', () => {
  it('streams text, tells its tools, and sums its tokens up', () => {
    const out = read(
      'gemini',
      lines(
        { type: 'init', session_id: 's', model: 'm' },
        { type: 'message', role: 'user', content: 'question' },
        { type: 'message', role: 'assistant', content: 'One ', delta: true },
        { type: 'tool_use', tool_name: 'read_file', tool_id: 't1', parameters: { path: 'a.ts' } },
        { type: 'tool_result', tool_id: 't1', status: 'error', error: { type: 'x', message: 'no such file' } },
        { type: 'error', severity: 'warning', message: 'loop detected' },
        { type: 'message', role: 'assistant', content: 'two.', delta: true },
        {
          type: 'result',
          status: 'success',
          stats: { input_tokens: 9, output_tokens: 4, cached: 3, models: { m2: {} } },
        },
      ),
    );
    expect(out).toMatchObject({
      text: 'One two.',
      streamed: 'One two.',
      session: 's',
      model: 'm2',
      tools: 1,
      failed: false,
    });
    expect(out.usage).toMatchObject({ input: 9, output: 4, cacheRead: 3 });
    expect(out.warnings).toEqual(['loop detected']);
    expect(out.events).toContainEqual({ type: 'tool_use', name: 'read_file', id: 't1', detail: '{"path":"a.ts"}' });
    expect(out.events).toContainEqual(expect.objectContaining({ type: 'tool_result', ok: false }));
  });

  it('is understood when it prints one document over several lines, behind a banner', () => {
    const tokens = { prompt: 50, candidates: 7, thoughts: 3, cached: 20 };
    const document = { session_id: 's', response: 'All of it.', stats: { models: { 'gemini-x': { tokens } } } };
    const out = read('gemini', `Data collection is off.\n${JSON.stringify(document, null, 2)}\n`);
    expect(out).toMatchObject({ text: 'All of it.', session: 's', model: 'gemini-x' });
    expect(out.usage).toMatchObject({ input: 50, output: 10, reasoning: 3, cacheRead: 20 });
  });

  it('fails by its own word', () => {
    const error = { type: 'ApiError', message: 'quota exceeded', code: 429 };
    expect(read('gemini', lines({ type: 'result', status: 'error', error }))).toMatchObject({
      failed: true,
      errors: ['quota exceeded'],
    });
    expect(read('gemini', JSON.stringify({ error }, null, 1)).errors).toEqual(['quota exceeded']);
  });
});

describe('codex', () => {
  it('joins its messages, tells its commands, and what its session used', () => {
    const item = (type: string, id: string, more: object) => ({ type: `item.${type}`, item: { id, ...more } });
    const command = { type: 'command_execution', command: 'ls' };
    const out = read(
      'codex',
      lines(
        { type: 'thread.started', thread_id: 'abc' },
        item('completed', '0', { type: 'error', message: 'model metadata not found' }),
        item('completed', '1', { type: 'reasoning', text: 'thinking' }),
        item('completed', '2', { type: 'agent_message', text: 'I look.' }),
        item('started', '3', { ...command, status: 'in_progress', exit_code: null }),
        item('completed', '3', { ...command, status: 'failed', exit_code: 2, aggregated_output: 'nothing' }),
        item('completed', '4', { type: 'agent_message', text: 'Done.' }),
        {
          type: 'turn.completed',
          usage: { input_tokens: 30, cached_input_tokens: 10, output_tokens: 6, reasoning_output_tokens: 2 },
        },
      ),
    );
    expect(out).toMatchObject({ text: 'I look.\n\nDone.', session: 'abc', usageOfSession: true, tools: 1, errors: [] });
    expect(out.usage).toMatchObject({ input: 30, output: 6, reasoning: 2, cacheRead: 10 });
    expect(out.warnings).toEqual(['model metadata not found']);
    expect(out.events).toContainEqual({ type: 'note', text: 'thinking' });
    expect(out.events).toContainEqual({
      type: 'tool_result',
      name: 'command_execution',
      id: '3',
      ok: false,
      detail: 'nothing',
    });
  });

  it('fails by its own word', () => {
    const out = read(
      'codex',
      lines({ type: 'error', message: 'retrying' }, { type: 'turn.failed', error: { message: 'no way' } }),
    );
    expect(out).toMatchObject({ failed: true, errors: ['retrying', 'no way'], text: '' });
  });
});

describe('claude', () => {
  const result = {
    type: 'result',
    subtype: 'success',
    is_error: false,
    result: 'The end.',
    session_id: 's',
    total_cost_usd: 0.5,
  };

  it.each([
    ['a line an event', lines({ type: 'system', subtype: 'init', model: 'sonnet', session_id: 's' }, result)],
    ['one list', JSON.stringify([{ type: 'system', subtype: 'init', model: 'sonnet', session_id: 's' }, result])],
  ])('answers with its result, printed as %s', (_, printed) => {
    expect(read('claude', printed)).toMatchObject({ text: 'The end.', session: 's', model: 'sonnet', costUsd: 0.5 });
  });

  it('counts what came out of the cache as sent', () => {
    const usage = { input_tokens: 3, cache_read_input_tokens: 100, cache_creation_input_tokens: 20, output_tokens: 8 };
    expect(read('claude', JSON.stringify({ ...result, usage })).usage).toMatchObject({
      input: 123,
      cacheRead: 100,
      cacheWrite: 20,
      output: 8,
    });
  });

  it('costs what came since its last result, subagents included, and not the session once more', () => {
    const of = (inputTokens: number, costUSD: number) => ({
      inputTokens,
      outputTokens: 1,
      cacheReadInputTokens: 5,
      costUSD,
    });
    const usage = { input_tokens: 1, output_tokens: 1 };
    const out = read(
      'claude',
      lines(
        { ...result, usage, model_usage_since_last_result: { opus: of(100, 0.25), haiku: of(10, 0.05) } },
        { ...result, usage, model_usage_since_last_result: {} },
      ),
    );
    expect(out.costUsd).toBeCloseTo(0.3);
    expect(out.usage).toMatchObject({ input: 120, output: 2, cacheRead: 10 });
  });

  it('has no answer in an error', () => {
    const out = read('claude', JSON.stringify({ ...result, is_error: true, result: 'Credit balance is too low' }));
    expect(out).toMatchObject({ text: '', failed: true, errors: ['Credit balance is too low'] });
  });
});

it('opencode adds its steps up', () => {
  const part = (type: string, more: object) => ({ type, sessionID: 'ses_1', part: more });
  const step = { tokens: { input: 5, output: 2, reasoning: 1, cache: { read: 10, write: 4 } }, cost: 0.25 };
  const state = { status: 'completed', input: { path: 'a' }, output: 'text of a' };
  const out = read(
    'opencode',
    lines(
      part('step_start', {}),
      part('tool_use', { tool: 'read', callID: 'c1', state }),
      part('step_finish', step),
      part('text', { text: 'It says a.' }),
      part('step_finish', step),
    ),
  );
  expect(out).toMatchObject({ text: 'It says a.', session: 'ses_1', costUsd: 0.5, tools: 1 });
  expect(out.usage).toMatchObject({ input: 38, output: 6, reasoning: 2, cacheRead: 20, cacheWrite: 8 });
});

describe('whatever a CLI prints', () => {
  it.each([
    'null',
    '[]',
    '{}',
    '{"type":null}',
    '{"type":"result","stats":[1],"usage":"x","error":7}',
    '{"type":"message","role":"assistant","content":{"a":1}}',
    '{"type":"assistant","message":{"content":[null,1,"x",{"type":"tool_use"}]}}',
    '{"type":"item.completed","item":[]}',
    '{"type":"item.completed","item":{"type":{},"exit_code":"x"}}',
    '{"type":"turn.completed","usage":{"input_tokens":-5,"output_tokens":1e999}}',
    '{"type":"step_finish","part":{"tokens":{"input":"many"},"cost":-1}}',
    '{"__proto__":{"type":"result"},"type":"constructor"}',
    '['.repeat(5_000),
    `{"type":"error","error":${'{"error":'.repeat(50_000)}1${'}'.repeat(50_000)}}`,
    '\u0000\u001b[31m\ufeff{',
  ])('is no answer and no failure of ours: %s', printed => {
    for (const { name } of clis.filter(cli => cli.read)) {
      const out = read(name, printed, 1_000);
      expect(out.text, name).toBe('');
      for (const count of Object.values(out.usage ?? {})) expect(count).toBeGreaterThanOrEqual(0);
    }
  });
});
