import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { answerFetch } from '../../../src/providers/shared/non-streaming.ts';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** The body comes in one piece, or in several with a rest between them. */
async function answered(body: string | string[], method = 'POST', type = 'application/json; charset=utf-8') {
  const server = createServer(async (_request, response) => {
    response.writeHead(200, { 'content-type': type });
    for (const piece of [body].flat()) {
      response.write(piece);
      if (piece !== body) await setTimeout(20);
    }
    response.end();
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('no port');
  const response = await answerFetch(`http://127.0.0.1:${address.port}/`, { method });
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
}

describe('answerFetch', () => {
  it.each([
    ['{"error":{"message":"no","code":429}}', 429],
    ['{"error":{"message":"no","code":"rate_limit"}}', 500],
    ['{"error":"no"}', 500],
    ['{"error":{"message":"no","code":200}}', 500],
    ['{"base_resp":{"status_code":1008,"status_msg":"no"}}', 402],
    ['{"code":20015,"message":"no","data":null}', 500],
    ['{"success":false,"message":"no","code":401}', 401],
    ['{"detail":"no"}', 500],
    ['{"object":"response","status":"failed","error":{"code":"server_error","message":"no"},"output":[]}', 500],
  ])('gives the error %s the status that it should have had', async (body, status) => {
    expect(await answered(body)).toMatchObject({ status, text: expect.stringContaining('no') });
  });

  it.each(['', 'null', '[]', '[{"a":1}]', '{"a":1}', '{', '{"error":null}', '{"base_resp":{"status_code":0}}'])(
    'passes on what is no answer that it knows: %s',
    async body => {
      expect(await answered(body)).toMatchObject({ status: 200, type: expect.stringContaining('json'), text: body });
    },
  );

  it('touches neither streams nor what was not asked of a model', async () => {
    const whole = '{"choices":[{"message":{"content":"x"}}]}';
    expect((await answered(whole, 'GET')).text).toBe(whole);
    const stream = 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n';
    for (const type of ['text/event-stream', 'text/plain'])
      expect((await answered(stream, 'POST', type)).text).toBe(stream);
    for (const type of ['application/json', 'text/event-stream', 'text/plain'])
      expect(await answered(whole, 'POST', type)).toMatchObject({
        type: 'text/event-stream',
        text: expect.stringMatching(/^data: \{/),
      });
  });

  it('waits for a document behind white space that keeps the connection alive', async () => {
    const whole = '{"choices":[{"message":{"content":"x"}}]}';
    expect(await answered(['\n  ', whole])).toMatchObject({ text: expect.stringMatching(/^data: \{/) });
  });

  it('makes events of any choices, however odd', async () => {
    const { text } = await answered('{"choices":[null,3,{"message":{"content":"x"},"index":0}]}');
    expect(JSON.parse(text.slice('data: '.length))).toMatchObject({ choices: [{ index: 0, delta: { content: 'x' } }] });
  });

  const events = (text: string) =>
    text
      .split('\n\n')
      .filter(Boolean)
      .map(event => JSON.parse(event.slice('data: '.length)));

  it('keeps all blocks of an Anthropic answer: thoughts with their seal, sealed ones, searches, calls and quotes', async () => {
    const content = [
      { type: 'thinking', thinking: 'Hm.', signature: 'seal' },
      { type: 'redacted_thinking', data: 'sealed' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
      { type: 'text', text: 'Yes.', citations: [{ type: 'web_search_result_location', url: 'https://a.test' }] },
      { type: 'tool_use', id: 't', name: 'look', input: { path: 'a' } },
    ];
    const found = events((await answered(JSON.stringify({ type: 'message', content, stop_reason: 'tool_use' }))).text);
    const deltas = found.filter(({ type }) => type === 'content_block_delta').map(({ index, delta }) => [index, delta]);
    expect(deltas).toEqual([
      [0, { type: 'thinking_delta', thinking: 'Hm.' }],
      [0, { type: 'signature_delta', signature: 'seal' }],
      [2, { type: 'input_json_delta', partial_json: '{"query":"x"}' }],
      [4, { type: 'text_delta', text: 'Yes.' }],
      [4, { type: 'citations_delta', citation: { type: 'web_search_result_location', url: 'https://a.test' } }],
      [5, { type: 'input_json_delta', partial_json: '{"path":"a"}' }],
    ]);
    const starts = found.filter(({ type }) => type === 'content_block_start').map(event => event.content_block);
    expect(starts[1]).toEqual(content[1]);
    expect(starts[3]).toEqual(content[3]);
    expect(starts[5]).toEqual({ ...content[5], input: {} });
  });

  it('keeps refusals, quotes and summaries of a Responses answer', async () => {
    const note = { type: 'url_citation', url: 'https://a.test', title: 'A', start_index: 0, end_index: 1 };
    const output = [
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      {
        type: 'message',
        id: 'm',
        content: [
          { type: 'output_text', text: 'Yes.', annotations: [note] },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
    ];
    const found = events((await answered(JSON.stringify({ object: 'response', status: 'completed', output }))).text);
    expect(found.map(({ type, delta, annotation }) => [type, delta ?? annotation])).toEqual([
      ['response.created', undefined],
      ['response.output_item.added', undefined],
      ['response.reasoning_summary_part.added', undefined],
      ['response.reasoning_summary_text.delta', 'Hm.'],
      ['response.output_item.done', undefined],
      ['response.output_item.added', undefined],
      ['response.output_text.delta', 'Yes.'],
      ['response.output_text.annotation.added', note],
      ['response.output_text.delta', 'No.'],
      ['response.output_item.done', undefined],
      ['response.incomplete', undefined],
    ]);
  });

  it('says of a page what to check', async () => {
    await expect(answered('<html>Log in</html>', 'POST', 'text/html')).rejects.toMatchObject({
      message: 'The answer was no stream of events, but a page (text/html).',
      details: { class: 'bad_upstream', next: expect.stringContaining('base URL') },
    });
  });

  const chunk = (choice: object) => `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`;
  const hello = chunk({ delta: { content: 'Hi' } });
  it.each([
    [
      'puts a reason before a lone end',
      `${hello}data: [DONE]\n\n`,
      `${hello}${chunk({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`,
    ],
    ['leaves a reason', `${hello}${chunk({ finish_reason: 'length' })}data: [DONE]\n\n`, undefined],
    ['leaves a stream that was cut', hello, undefined],
    ['leaves what is no chat', 'data: {"a":1}\n\ndata: [DONE]\n\n', undefined],
    ['leaves words of the answer', `${chunk({ delta: { content: '\ndata: [DONE]' } })}`, undefined],
  ])('%s', async (_name, body, expected = body) => {
    expect((await answered(body, 'POST', 'text/event-stream')).text).toBe(expected);
  });
});
