import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dryRunReason } from '../../../src/models/provider.ts';
import { type Fetch, isPathMissing, vendorFetch, versionedFetch } from '../../../src/providers/shared/http.ts';
import { stubDispatcher } from '../../support/stub-dispatcher.ts';

const names = [Symbol.for('undici.globalDispatcher.1'), Symbol.for('undici.globalDispatcher.2')];
/** Node's own limits have a step of a second. */
const limits = { headersTimeout: 300, bodyTimeout: 300 };

/** What the server does not do before. */
let held: PromiseWithResolvers<void>;
let server: Server;
let url: string;
let before: unknown[];

/** What Node does after 300 s, it does after 300 ms here; `seen` gets the options of each request. */
function shortenNodesLimits(seen: object[]): void {
  void new Response();
  before = names.map(name => Reflect.get(globalThis, name));
  const { constructor: Agent } = before[0] as { constructor: new (options: object) => { dispatch: Dispatch } };
  const agent = new Agent(limits);
  const own = agent.dispatch.bind(agent);
  agent.dispatch = (options, handler) => {
    seen.push(options);
    return own(options, handler);
  };
  for (const name of names) Reflect.set(globalThis, name, agent);
}

type Dispatch = (options: object, handler: unknown) => boolean;

beforeEach(async () => {
  held = Promise.withResolvers();
  server = createServer(async (request, response) => {
    if (request.url === '/moved') return void response.writeHead(307, { location: 'http://127.0.0.2:1/v1' }).end();
    if (request.url === '/late') await held.promise;
    response.write('first ');
    if (request.url === '/pausing') await held.promise;
    response.end('last');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('no port');
  url = `http://127.0.0.1:${address.port}`;
});

afterEach(async () => {
  for (const [index, name] of names.entries()) if (before) Reflect.set(globalThis, name, before[index]);
  server.closeAllConnections();
  await new Promise(resolve => server.close(resolve));
});

describe('vendorFetch', () => {
  it('carries no key to where a redirection points', async () => {
    const asked = vendorFetch(`${url}/moved`, { method: 'POST', headers: { 'x-api-key': 'secret' }, body: '{}' });
    await expect(asked).rejects.toMatchObject({ kind: 'model', details: { class: 'bad_upstream', status: 307 } });
    await expect(asked).rejects.toThrow('http://127.0.0.2:1;');
  });

  it('waits for headers and between pieces for as long as its caller does, through the dispatcher that Node has now', async () => {
    const seen: object[] = [];
    shortenNodesLimits(seen);
    const text = async (path: string, ask: typeof fetch) => (await ask(url + path)).text();
    const patient = [text('/late', vendorFetch), text('/pausing', vendorFetch)];
    // The same limits end what does not go through it.
    const refused = await Promise.allSettled([text('/late', fetch), text('/pausing', fetch)]);
    held.resolve();
    expect(await Promise.all(patient)).toEqual(['first last', 'first last']);
    expect(refused).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
    expect(seen).toHaveLength(4);
    expect(seen.filter(options => 'bodyTimeout' in options)).toMatchObject(
      Array(2).fill({ headersTimeout: 0, bodyTimeout: 0 }),
    );
  });

  it('ends when its caller gives up', async () => {
    const given = new AbortController();
    const asked = vendorFetch(`${url}/late`, { signal: given.signal });
    given.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
  });

  it('answers a rehearsal itself, with an event that says nothing, and asks no server or proxy', async () => {
    const signal = AbortSignal.abort(dryRunReason);
    let asked = 0;
    server.on('connection', () => asked++);
    const response = await vendorFetch(url, { method: 'POST', body: '{}', signal });
    expect([response.status, await response.text()]).toEqual([200, 'data: {}\n\n']);
    await expect(vendorFetch('http://127.0.0.1:1/', { signal: AbortSignal.abort() })).rejects.toThrow('aborted');
    const again = async () => (await vendorFetch(url, { signal })).text();
    const restore = stubDispatcher(() => () => {
      asked++;
      return true;
    });
    expect(await again()).toBe('data: {}\n\n');
    restore();
    const watch = () => asked++;
    subscribe('undici:request:create', watch);
    expect(await again()).toBe('data: {}\n\n');
    unsubscribe('undici:request:create', watch);
    expect(asked).toBe(0);
  });
});

describe('versionedFetch', () => {
  const noPath = { detail: 'Not Found' };
  const noModel = { error: { message: "The model 'typo' does not exist", code: 'model_not_found' } };
  /** A server that answers with these bodies of a 404 by path, and `ok` to all other paths. */
  function serverWith(missing: Record<string, unknown>) {
    const asked: string[] = [];
    const answer: Fetch = async input => {
      const path = String(input).slice('http://host'.length);
      asked.push(path);
      const body = missing[path];
      return body === undefined ? new Response('ok') : Response.json(body, { status: 404 });
    };
    return { asked, ...versionedFetch('http://host', answer) };
  }

  it('gives the refusal of a model where the path is there, and keeps that place', async () => {
    const { asked, fetch: ask, baseUrl } = serverWith({ '/chat': noPath, '/v1/chat': noModel });
    expect(await (await ask('http://host/chat')).json()).toEqual(noModel);
    expect(baseUrl()).toBe('http://host/v1');
    expect(await (await ask('http://host/models')).text()).toBe('ok');
    expect(asked).toEqual(['/chat', '/v1/chat', '/v1/models']);
  });

  it('looks nowhere else where the model is refused as the address was written', async () => {
    const { asked, fetch: ask, baseUrl } = serverWith({ '/chat': noModel });
    expect(await (await ask('http://host/chat')).json()).toEqual(noModel);
    expect([asked, baseUrl()]).toEqual([['/chat'], 'http://host']);
  });

  it('gives the first refusal where neither path is there, and keeps none', async () => {
    const { asked, fetch: ask } = serverWith({ '/chat': noPath, '/v1/chat': { detail: 'Nowhere' } });
    expect(await (await ask('http://host/chat')).json()).toEqual(noPath);
    expect(await (await ask('http://host/models')).text()).toBe('ok');
    expect(asked).toEqual(['/chat', '/v1/chat', '/models']);
  });
});

describe('isPathMissing', () => {
  const error = (statusCode: number, body: unknown) => {
    const responseBody = typeof body === 'string' ? body : JSON.stringify(body);
    return Object.assign(new Error('refused'), { statusCode, responseBody });
  };

  it.each([
    { object: 'error', message: 'The model `typo` does not exist.', type: 'NotFoundError', code: 404 },
    { error: { message: 'Not found', type: 'invalid_request_error', code: 'model_not_found' } },
    { error: "model 'typo' not found" },
    { detail: 'Model typo is not loaded' },
    { error: { message: "OpenAIException - The model `typo` does not exist. LiteLLM: model group 'typo' failed." } },
    { error: { code: '1211', message: '模型不存在' } },
    [{ error: { code: 404, message: 'models/typo is not found', status: 'NOT_FOUND' } }],
    'unknown model typo',
  ])('is not so where a model is missing: %j', body => {
    expect(isPathMissing(error(404, body))).toBe(false);
  });

  it.each([
    { detail: 'Not Found' },
    { error: { message: 'Invalid URL (POST /v1/responses)', type: 'invalid_request_error', code: null } },
    { statusCode: 404, message: 'Cannot POST /models/v1/responses' },
    {
      error: {
        message:
          'litellm.NotFoundError: NotFoundError: OpenAIException - {"detail":"Not Found"} LiteLLM: model group \'gpt-5.2\' failed with the error above. No fallback was attempted.',
        code: '404',
      },
    },
    '404 page not found',
    '<html><title>The models of Example</title></html>',
    '',
  ])('is so where the server has no such path: %j', body => {
    expect(isPathMissing(error(404, body))).toBe(true);
    expect(isPathMissing(error(405, body))).toBe(true);
    expect(isPathMissing(error(400, body))).toBe(false);
  });
});
