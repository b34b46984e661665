import { createServer, type IncomingMessage, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { liveList } from '../../../src/providers/shared/list-models.ts';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function serve(answer: (request: IncomingMessage) => { status?: number; body: unknown } | undefined) {
  const seen: string[] = [];
  server = createServer((request, response) => {
    seen.push(request.url ?? '');
    const said = answer(request);
    if (!said) return;
    response.statusCode = said.status ?? 200;
    response.end(typeof said.body === 'string' ? said.body : JSON.stringify(said.body));
  });
  await new Promise<void>(resolve => server!.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const source = {
    provider: 'alpha',
    baseUrl: `http://127.0.0.1:${port}/v1`,
    headers: { authorization: 'Bearer k-1' },
  };
  return { seen, list: (signal = new AbortController().signal) => liveList(source, signal) };
}

describe('the live list', () => {
  it('follows the pages, takes windows under any name, and leaves out what is no model', async () => {
    const pages: Record<string, unknown> = {
      '/v1/models': { data: [{ id: 'a', max_model_len: 8192 }, { id: '' }, 7, null], has_more: true, last_id: 'a' },
      '/v1/models?after_id=a': {
        data: [
          { id: 'b', context_length: 100, max_completion_tokens: 40 },
          { id: 'c', context_window: 'x' },
          { id: 'd', meta: { n_ctx_train: 262_144, n_ctx: 8192 } },
          { id: 'e', active: false, context_window: 100 },
        ],
        has_more: false,
      },
    };
    const { list, seen } = await serve(request => ({ body: pages[request.url ?? ''] }));
    expect(await list()).toEqual([
      { id: 'a', window: 8192 },
      { id: 'b', window: 100, maxOutput: 40 },
      { id: 'c' },
      { id: 'd', window: 8192 },
    ]);
    expect(seen).toHaveLength(2);
  });

  it('ends at a server that pages in a circle', async () => {
    const { list, seen } = await serve(() => ({ body: { data: [{ id: 'a' }], has_more: true, last_id: 'a' } }));
    expect(await list()).toEqual([{ id: 'a' }]);
    expect(seen).toHaveLength(2);
  });

  it('fails typed when it is refused, and when a page comes instead', async () => {
    const refused = await serve(() => ({
      status: 401,
      body: { error: { message: 'Incorrect API key provided: k-1.' } },
    }));
    await expect(refused.list()).rejects.toMatchObject({ kind: 'model', details: { class: 'auth', status: 401 } });
    await expect(refused.list()).rejects.not.toThrow('k-1');
    const page = await serve(() => ({ body: '<html><h1>Sign in</h1></html>' }));
    await expect(page.list()).rejects.toMatchObject({
      details: { class: 'bad_upstream' },
      message: expect.stringContaining('Sign in'),
    });
  });

  it('stops with its signal', async () => {
    const caller = new AbortController();
    const { list } = await serve(() => {
      caller.abort(new Error('enough'));
      return undefined;
    });
    await expect(list(caller.signal)).rejects.toThrow('enough');
  });
});
