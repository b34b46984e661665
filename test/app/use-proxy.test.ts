import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runProgram } from '../cli/run-program.ts';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

interface Proxy {
  address: string;
  /** What it was asked to reach. */
  targets: string[];
  close(): Promise<void>;
}

/** A proxy that leads every host to this port. */
async function startProxy(port: number): Promise<Proxy> {
  const targets: string[] = [];
  const server = createServer((_request, response) => void response.writeHead(400).end());
  server.on('connect', (request, socket) => {
    targets.push(request.url ?? '');
    const upstream = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    // Either side may go first.
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('the proxy has no port');
  return {
    address: `127.0.0.1:${address.port}`,
    targets,
    async close() {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

let vendor: FakeVendor;
let proxy: Proxy;
let project: TempProject;

beforeEach(async () => {
  vendor = await startOpenAi();
  proxy = await startProxy(Number(new URL(vendor.url).port));
  project = await tempProject();
});

afterEach(async () => {
  await proxy.close();
  await vendor.close();
  await project.dispose();
});

const ask = (env: Record<string, string>) =>
  runProgram(['ask', 'Hello'], {
    // A proxy holds for all that a process does from then on.
    ownProcess: true,
    cwd: project.root,
    env: { ...vendorEnv({ openai: 'http://vendor.test/v1' }), ...env },
  });

describe('a proxy', () => {
  it('is used when the environment names one, without any switch of Node', async () => {
    expect(await ask({ HTTP_PROXY: `http://${proxy.address}` })).toMatchObject({ code: 0, out: 'Answer 1.\n' });
    expect(proxy.targets).toEqual(['vendor.test:80']);
  });

  it('may be named in lower case and without a scheme, or in .env of the data folder', async () => {
    expect((await ask({ http_proxy: proxy.address })).code).toBe(0);
    await project.write('home/.env', `HTTP_PROXY=${proxy.address}\n`);
    expect((await ask({ POLYLOGUE_HOME: project.path('home') })).code).toBe(0);
    expect(proxy.targets).toHaveLength(2);
  });

  it('is not used for what NO_PROXY names, nor for this machine', async () => {
    const through = { HTTP_PROXY: proxy.address };
    expect((await ask({ ...through, OPENAI_BASE_URL: vendor.url })).code).toBe(0);
    expect((await ask({ ...through, NO_PROXY: '.test', CALL_TIMEOUT_SECONDS: '2' })).code).toBe(1);
    expect(proxy.targets).toEqual([]);
  });

  it('is used for https', async () => {
    await ask({ OPENAI_BASE_URL: 'https://vendor.test/v1', HTTPS_PROXY: proxy.address, CALL_TIMEOUT_SECONDS: '2' });
    expect(proxy.targets[0]).toBe('vendor.test:443');
  });

  it('that can not be one is refused by name, without its password', async () => {
    const { code, err } = await ask({ HTTPS_PROXY: 'socks5://ada:hidden-word@127.0.0.1:1' });
    expect(code).toBe(2);
    expect(err).toContain('HTTPS_PROXY');
    expect(err).not.toContain('hidden-word');
  });

  it('file of authorities that is not there is refused by name', async () => {
    await project.write('home/.env', 'NODE_EXTRA_CA_CERTS=missing.pem\n');
    const { code, err } = await ask({ POLYLOGUE_HOME: project.path('home') });
    expect(code).toBe(2);
    expect(err).toContain('NODE_EXTRA_CA_CERTS');
  });
});
