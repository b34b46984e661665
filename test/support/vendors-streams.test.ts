import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Asked, askHeaders, askVendors, type Wire } from './ask-vendors.ts';
import { multibyteAnswer } from './vendors/fake-vendor.ts';
import { o200kTokens } from './vendors/o200k-tokens.ts';

let asked: Asked;
beforeEach(async () => {
  asked = await askVendors();
});
afterEach(() => asked.close());

/** The data of each event; a line that is neither field nor blank fails the test. */
function events(text: string): Wire[] {
  return text
    .split('\n\n')
    .filter(block => block !== '')
    .map(block => {
      const lines = block.split('\n');
      const data = lines.at(-1) ?? '';
      expect(data).toMatch(/^data: /);
      const value = data === 'data: [DONE]' ? { type: '[DONE]' } : JSON.parse(data.slice('data: '.length));
      if (lines.length > 1) expect(lines).toEqual([`event: ${value.type}`, data]);
      return value;
    });
}

describe('the streams', () => {
  it('Responses: numbers its events and closes everything that it opened', async () => {
    asked.openAi.script({ answer: 'One two three.', chunks: 3, reasoning: 'Hm.' });
    const response = await asked.responses({ stream: true, reasoning: { effort: 'low', summary: 'auto' } });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const got = events(await response.text());
    expect(got.map(event => event.sequence_number)).toEqual(got.map((_, index) => index));
    expect(got.map(event => event.type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(got.map(event => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')).toBe(
      'One two three.',
    );
    expect(got.at(-1)?.response.usage).toMatchObject({
      input_tokens: 1,
      output_tokens: o200kTokens('Hm.').length + o200kTokens('One two three.').length,
      output_tokens_details: { reasoning_tokens: o200kTokens('Hm.').length },
    });
  });

  it('Chat: ends with the usage that was asked for and [DONE]', async () => {
    asked.openAi.script({ answer: 'One two.', chunks: 2 });
    const got = events(await (await asked.chat({ stream: true, stream_options: { include_usage: true } })).text());
    expect(got.map(event => event.choices?.[0]?.delta?.content)).toEqual([
      '',
      'One ',
      'two.',
      undefined,
      undefined,
      undefined,
    ]);
    expect(got.at(-3)?.choices[0].finish_reason).toBe('stop');
    expect(got.at(-2)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 },
    });
    expect(got.at(-1)?.type).toBe('[DONE]');
    const without = events(await (await asked.chat({ stream: true })).text());
    expect(without.some(event => 'usage' in event)).toBe(false);
  });

  it('Messages: frames each block and reports the stop reason at the end', async () => {
    asked.anthropic.script({ answer: 'One two.', chunks: 2, reasoning: 'Hm.' });
    const got = events(
      await (await asked.claude({ stream: true, thinking: { type: 'enabled', budget_tokens: 1_024 } })).text(),
    );
    expect(got.map(event => event.delta?.type ?? event.type)).toEqual([
      'message_start',
      'content_block_start',
      'thinking_delta',
      'signature_delta',
      'content_block_stop',
      'content_block_start',
      'ping',
      'text_delta',
      'text_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    expect(got.at(-2)).toMatchObject({ delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 + 2 } });
  });

  it('answers in one piece when nobody asked for a stream', async () => {
    for (const vendor of [asked.openAi, asked.anthropic]) vendor.byDefault({ answer: 'Whole.' });
    expect(await (await asked.responses({ store: false })).json()).toMatchObject({
      object: 'response',
      status: 'completed',
      store: false,
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'Whole.' }] }],
    });
    expect(await (await asked.chat()).json()).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: 'Whole.' }, finish_reason: 'stop' }],
    });
    expect(await (await asked.claude()).json()).toMatchObject({
      type: 'message',
      content: [{ type: 'text', text: 'Whole.' }],
      stop_reason: 'end_turn',
    });
  });

  it('cuts an answer at the limit of the request and says so', async () => {
    const answer = '漢字 '.repeat(100);
    for (const vendor of [asked.openAi, asked.anthropic]) vendor.byDefault({ answer });
    const cut: Wire = (await (await asked.responses({ max_output_tokens: 16 })).json()) as Wire;
    expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    expect(cut.usage.output_tokens).toBe(16);
    expect(answer.startsWith(cut.output[0].content[0].text)).toBe(true);
    expect(await (await asked.claude({ max_tokens: 7 })).json()).toMatchObject({
      stop_reason: 'max_tokens',
      usage: { output_tokens: 7 },
    });
  });
});

describe('the faults', () => {
  it.each(['crlf', 'split_utf8'] as const)('%s carries the whole answer', async fault => {
    asked.openAi.script({ fault });
    const text = await (await asked.responses({ stream: true })).text();
    expect(text.includes('\r\n\r\n')).toBe(fault === 'crlf');
    const deltas = events(text.replaceAll('\r\n', '\n')).filter(event => event.type === 'response.output_text.delta');
    expect(deltas.map(event => event.delta).join('')).toBe(multibyteAnswer);
  });

  it('split_utf8 leaves characters in two pieces on the wire', async () => {
    asked.openAi.script({ fault: 'split_utf8' });
    const pieces = await new Promise<Buffer[]>((resolve, reject) => {
      const got: Buffer[] = [];
      const request = httpRequest(
        `${asked.openAi.url}/responses`,
        { method: 'POST', headers: askHeaders },
        response => {
          response.on('data', (piece: Buffer) => got.push(piece));
          response.on('end', () => resolve(got));
        },
      );
      request.on('error', reject);
      request.end(JSON.stringify({ model: 'gpt-5', input: 'Hi', stream: true }));
    });
    expect(pieces.some(piece => piece.toString().includes('\uFFFD'))).toBe(true);
    expect(Buffer.concat(pieces).toString()).not.toContain('\uFFFD');
  });

  it.each(['cut_mid_stream', 'reset'] as const)(
    '%s breaks the connection, which is no abort of the client',
    async fault => {
      asked.openAi.script({ fault });
      await expect(asked.responses({ stream: true }).then(response => response.text())).rejects.toThrow();
      expect(asked.openAi.requests[0]?.wasAborted()).toBe(false);
    },
  );

  it.each(['hang_before_headers', 'hang_after_headers', 'hang_mid_stream', 'slow_drip'] as const)(
    '%s holds the connection until the client lets go of it',
    async fault => {
      asked.openAi.script({ fault });
      const stop = new AbortController();
      const answer = asked.responses({ stream: true }, stop.signal).then(response => response.text());
      const failed = expect(answer).rejects.toThrow();
      await expect.poll(() => asked.openAi.requests.length).toBe(1);
      expect(asked.openAi.openSockets()).toBe(1);
      expect(asked.openAi.requests[0]?.wasAborted()).toBe(false);
      stop.abort();
      await failed;
      await asked.openAi.requests[0]?.aborted;
      expect(asked.openAi.requests[0]?.wasAborted()).toBe(true);
      expect(asked.openAi.openSockets()).toBe(0);
    },
  );

  it.each([
    ['hang_mid_stream', multibyteAnswer.slice(0, 20)],
    ['slow_drip', multibyteAnswer.slice(0, 5)],
  ] as const)('%s lets text through before that', async (fault, beginning) => {
    asked.openAi.script({ fault, chunkDelayMs: 1 });
    const stop = new AbortController();
    const response = await asked.responses({ stream: true }, stop.signal);
    let text = '';
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      const deltas = [...text.matchAll(/"delta":"([^"]*)"/g)].map(match => match[1]);
      if (deltas.join('').startsWith(beginning)) break;
    }
    expect(text).toContain('response.output_text.delta');
    expect(text).not.toContain('response.completed');
    stop.abort();
  });

  it('error_in_stream speaks as each vendor does after its 200', async () => {
    for (const vendor of [asked.openAi, asked.anthropic]) vendor.byDefault({ fault: 'error_in_stream' });
    const ends = (text: string) => events(text).slice(-2);
    expect(ends(await (await asked.responses({ stream: true })).text())).toMatchObject([
      { type: 'error', code: 'server_error' },
      { type: 'response.failed', response: { status: 'failed', error: { code: 'server_error' } } },
    ]);
    expect(ends(await (await asked.chat({ stream: true })).text())[1]).toMatchObject({
      error: { type: 'server_error' },
    });
    expect(ends(await (await asked.claude({ stream: true })).text())[1]).toMatchObject({
      type: 'error',
      error: { type: 'overloaded_error' },
    });
  });

  it.each([
    ['empty', ''],
    ['whitespace_and_comments', /^(\s*(:[^\n]*)?\n)*\s*$/],
    ['html', /^<!DOCTYPE html>/],
    ['garbage', /^data: \{"type": "resp/],
  ] as const)('%s is a 200 without an answer', async (fault, body) => {
    asked.openAi.script({ fault });
    const response = await asked.responses({ stream: true });
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(body);
  });

  it('end_mid_stream ends cleanly after as many chunks as it was told', async () => {
    asked.openAi.script({ fault: 'end_mid_stream', answer: 'One two three four five six.', after: 1 });
    const got = events(await (await asked.responses({ stream: true })).text());
    expect(got.map(event => event.type).slice(-2)).toEqual([
      'response.content_part.added',
      'response.output_text.delta',
    ]);
  });

  it.each([401, 403, 404, 429, 500, 529])('a scripted %i looks like the vendor', async status => {
    for (const vendor of [asked.openAi, asked.anthropic])
      vendor.script({ fault: 'status', status, headers: { 'retry-after': '7' } });
    const fromOpenAi = await asked.responses();
    expect(fromOpenAi.status).toBe(status);
    expect(fromOpenAi.headers.get('retry-after')).toBe('7');
    expect(await fromOpenAi.json()).toEqual({ error: expect.objectContaining({ message: expect.any(String) }) });
    expect(await (await asked.claude()).json()).toMatchObject({ type: 'error', request_id: expect.any(String) });
    expect(asked.openAi.violations).toEqual([]);
  });

  it('a client that leaves while it still sends breaks no rule', async () => {
    const request = httpRequest(`${asked.openAi.url}/responses`, {
      method: 'POST',
      headers: { ...askHeaders, 'content-length': 100 },
    });
    request.on('error', () => undefined);
    request.write('{');
    await expect.poll(() => asked.openAi.openSockets()).toBe(1);
    request.destroy();
    await expect.poll(() => asked.openAi.openSockets()).toBe(0);
    expect(asked.openAi.violations).toEqual([]);
  });

  it('a test whose own answer throws learns of it', async () => {
    asked.openAi.script({
      answer: () => {
        throw new Error('unexpected question');
      },
    });
    await expect(asked.responses()).rejects.toThrow();
    expect(asked.openAi.violations).toEqual([expect.stringContaining('unexpected question')]);
  });

  it('sends a scripted body as it is, and steps for one dialect wait for it', async () => {
    asked.openAi.script({ on: 'models', fault: 'status', status: 503, body: '<html>down</html>' }, { answer: 'first' });
    expect(JSON.stringify(await (await asked.responses()).json())).toContain('first');
    const listing = () => fetch(`${asked.openAi.url}/models`, { headers: askHeaders });
    const down = await listing();
    expect([down.status, down.headers.get('content-type'), await down.text()]).toEqual([
      503,
      'text/html',
      '<html>down</html>',
    ]);
    expect(await (await listing()).json()).toEqual({ object: 'list', data: [] });
  });
});
