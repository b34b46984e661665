import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { answerFetch } from '../../../src/providers/shared/non-streaming.ts';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function answered(body: string, method = 'POST', type = 'application/json; charset=utf-8') {
  const server = createServer((_request, response) => void response.writeHead(200, { 'content-type': type }).end(body));
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
    expect((await answered(whole, 'POST', 'text/event-stream')).text).toBe(whole);
    expect(await answered(whole)).toMatchObject({
      type: 'text/event-stream',
      text: expect.stringMatching(/^data: \{/),
    });
  });

  it('makes events of any choices, however odd', async () => {
    const { text } = await answered('{"choices":[null,3,{"message":{"content":"x"},"index":0}]}');
    expect(JSON.parse(text.slice('data: '.length))).toMatchObject({ choices: [{ index: 0, delta: { content: 'x' } }] });
  });
});
