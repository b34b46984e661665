import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type McpSession, startSession } from '../support/mcp-session.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

/** How a vendor frames what it closes: its first line, its headers, and the bytes that go out for a body. */
interface Closing {
  version?: string;
  headers(length: number): string[];
  framed?(body: Buffer): Buffer;
}

const chunked = (body: Buffer) =>
  Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);

const closings: [string, Closing][] = [
  ['a length, and `close`', { headers: length => ['Connection: close', `Content-Length: ${length}`] }],
  ['`close` alone', { headers: () => ['Connection: close'] }],
  ['nothing', { headers: () => [] }],
  ['`keep-alive` alone', { headers: () => ['Connection: keep-alive'] }],
  ['both, and a length', { headers: length => ['Connection: keep-alive, close', `Content-Length: ${length}`] }],
  ['chunks, and `close`', { headers: () => ['Connection: close', 'Transfer-Encoding: chunked'], framed: chunked }],
  ['HTTP/1.0', { version: '1.0', headers: () => [] }],
  ['HTTP/1.0 with a length', { version: '1.0', headers: length => [`Content-Length: ${length}`] }],
  ['HTTP/1.0 with chunks', { version: '1.0', headers: () => ['Transfer-Encoding: chunked'], framed: chunked }],
];

const sizes = [100_000, 540_000, 5_000_000];

let [server, url, project, session]: [Server?, string?, TempProject?, McpSession?] = [];
let closing: Closing;
let [bytes, lists] = [0, 0];

beforeAll(async () => {
  server = createServer(socket => {
    let said = '';
    socket.on('error', () => {});
    socket.on('data', data => {
      said += data.toString('latin1');
      const [head = '', sent = ''] = said.split('\r\n\r\n');
      if (!said.includes('\r\n\r\n') || sent.length < Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)) return;
      const [type, body] = answer(head, sent);
      const lines = [
        `HTTP/${closing.version ?? '1.1'} 200 OK`,
        `Content-Type: ${type}`,
        ...closing.headers(body.length),
      ];
      socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), closing.framed?.(body) ?? body]));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('no port');
  url = `http://127.0.0.1:${address.port}/v1`;
  project = await tempProject();
});

/** As many bytes as are wanted, mostly in fields that nobody reads; a stream has an event for each thousand. */
function answer(head: string, sent: string): [type: string, body: Buffer] {
  const pad = 'x'.repeat(1_000);
  if (head.startsWith('GET')) {
    lists += 1;
    const row = (index: number) => ({ id: `model-${index}`, object: 'model', description: pad });
    const data = Array.from({ length: bytes / 1_000 }, (_, index) => row(index));
    return ['application/json', Buffer.from(JSON.stringify({ object: 'list', data }))];
  }
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
  const choice = { index: 0, finish_reason: 'stop' };
  if (sent.includes('AT-ONCE')) {
    const message = { role: 'assistant', content: 'It is fine.' };
    const whole = {
      id: 'c',
      object: 'chat.completion',
      choices: [{ ...choice, message }],
      usage,
      pad: pad.repeat(bytes / 1_000),
    };
    return ['application/json', Buffer.from(JSON.stringify(whole))];
  }
  const event = (delta: object, more: object = {}) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, ...more }], pad })}\n\n`;
  const thoughts = Array.from({ length: bytes / 1_000 }, () => event({ content: '' }));
  const events = [...thoughts, event({ content: 'It is fine.' }), event({}, choice), 'data: [DONE]\n\n'];
  return ['text/event-stream', Buffer.from(events.join(''))];
}

afterEach(async () => {
  await session?.close();
  session = undefined;
});

afterAll(async () => {
  server?.close();
  await project?.dispose();
});

describe.each(closings)('a vendor that closes after each answer, which has %s', (_, how) => {
  it('is read to its end by a server that goes on', async () => {
    [closing, bytes, lists] = [how, 5_000_000, 0];
    const home = await tempProject();
    const env = { CUSTOM_API_URL: url ?? '', DEFAULT_MODEL: 'custom:model-7', MODEL_LISTS: 'auto' };
    session = await startSession({ root: project?.root ?? '', home: home.root, env });
    for (bytes of sizes)
      for (const prompt of ['How, AT-ONCE?', 'How, as a stream?'])
        expect(await session.call('chat', { prompt }), `${prompt} ${bytes}`).toMatchObject({ content: 'It is fine.' });
    expect(lists).toBeGreaterThan(0);
    expect(session.log()).not.toContain('AssertionError');
    await session.close();
    await home.dispose();
  });
});
