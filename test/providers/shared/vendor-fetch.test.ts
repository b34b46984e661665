import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vendorFetch } from '../../../src/providers/shared/http.ts';

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
});
