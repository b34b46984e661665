import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createAddressGuard } from '../../../src/server/access/addresses.ts';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let project: TempProject;
let daemon: TestDaemon;
let port: string;

beforeAll(async () => {
  project = await tempProject();
  // Without a token: whoever is let in may do everything.
  const env = { OFFLINE: 'true', POLYLOGUE_ORIGINS: 'https://app.example', POLYLOGUE_HOSTS: 'poly.example' };
  daemon = await testDaemon({ root: project.root, env });
  port = new URL(daemon.url).port;
});
afterAll(async () => {
  await daemon?.close();
  await project.dispose();
});

type Headers = Record<string, string>;

interface Sent {
  method?: string;
  path: string;
  headers: Headers;
  body?: string;
}

function send({
  method = 'GET',
  path,
  headers,
  body,
}: Sent): Promise<{ status: number; location: string; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest({ host: '127.0.0.1', port, method, path, headers }, response => {
      let text = '';
      response.on('data', chunk => {
        text += chunk;
        // A stream that listens goes on for good.
        if (text.length > 200_000) response.destroy();
      });
      response.on('close', () =>
        resolve({ status: response.statusCode ?? 0, location: response.headers.location ?? '', text }),
      );
    });
    asked.on('error', reject).end(body);
  });
}

/** Whether a page is let in by a WebSocket: `mcp`, or the frame protocol. */
function opens(headers: Headers, protocols: string[]): Promise<boolean> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, protocols, { headers });
  return new Promise(resolve => {
    socket.once('open', () => {
      socket.close();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } },
});
const doors: readonly Omit<Sent, 'headers'>[] = [
  { path: '/api/tools' },
  { method: 'POST', path: '/api/tools/version', body: '{}' },
  { method: 'POST', path: '/mcp', body: initialize },
  { path: '/metrics' },
  { path: '/healthz' },
  { path: '/readyz' },
  { path: '/' },
  { path: '/threads' },
];

/** The statuses of all doors, and of both protocols of `/ws`. */
async function everyDoor(headers: Headers): Promise<(number | boolean)[]> {
  const all = await Promise.all(doors.map(door => send({ ...door, headers: { ...json, ...headers } })));
  const sockets = [await opens(headers, ['mcp']), await opens(headers, [])];
  return [...all.map(({ status }) => status), ...sockets];
}

const refused = [...doors.map(() => 403), false, false];
const letIn = [...doors.map(() => 200), true, true];

describe('a daemon without a token', () => {
  it.each<[string, (own: string) => Headers]>([
    ['another port of this machine', () => ({ origin: 'http://localhost:5173' })],
    ['another port of its own address', () => ({ origin: 'http://127.0.0.1:5173' })],
    ['its port under the name of both addresses', own => ({ origin: `http://localhost:${own}` })],
    [
      'its port under that name, called by it',
      own => ({ origin: `http://localhost:${own}`, host: `localhost:${own}` }),
    ],
    ['its port under the other address', own => ({ origin: `http://[::1]:${own}` })],
    ['its port under another address of loopback', own => ({ origin: `http://127.0.0.2:${own}` })],
    ['its own address by https', own => ({ origin: `https://127.0.0.1:${own}` })],
    ['its own address without the port', () => ({ origin: 'http://127.0.0.1' })],
    ['a subdomain of localhost', own => ({ origin: `http://app.localhost:${own}` })],
    ['a page without an origin', () => ({ origin: 'null' })],
    ['another site', () => ({ origin: 'https://evil.example' })],
    ['another port of a listed page', () => ({ origin: 'https://app.example:8443' })],
    ['another port of a listed host', () => ({ origin: 'https://poly.example:8443', host: 'poly.example' })],
    [
      'a listed host by another scheme',
      () => ({ origin: 'http://poly.example', host: 'poly.example', 'x-forwarded-proto': 'https' }),
    ],
    ['another page that says no origin', () => ({ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' })],
    ['another site that says no origin', () => ({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })],
    [
      'a page by the shared name that says no origin',
      own => ({ 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', host: `localhost:${own}` }),
    ],
    ['a name that was pointed at this machine', () => ({ host: 'evil.example' })],
  ])('refuses %s at every door', async (_what, headersOf) => {
    expect(await everyDoor(headersOf(port))).toEqual(refused);
  });

  it.each<[string, (own: string) => Headers]>([
    ['a program', () => ({})],
    ['a program that calls it localhost', own => ({ host: `localhost:${own}` })],
    ['its own page', own => ({ origin: `http://127.0.0.1:${own}` })],
    [
      'its own page that says no origin',
      own => ({ 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', host: `127.0.0.1:${own}` }),
    ],
    ['a page that the operator lists', () => ({ origin: 'https://app.example' })],
    [
      'the page of a proxy that the operator names',
      () => ({ origin: 'https://poly.example', host: 'poly.example', 'x-forwarded-proto': 'https' }),
    ],
    ['who follows a link', () => ({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' })],
  ])('lets %s in', async (_what, headersOf) => {
    expect(await everyDoor(headersOf(port))).toEqual(letIn);
  });

  it('sends a browser that came by the shared name to its own address', async () => {
    const headers = { host: `localhost:${port}`, 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' };
    const moved = await send({ path: '/threads?q=a%20b', headers });
    expect([moved.status, moved.location]).toEqual([307, `${daemon.url}/threads?q=a%20b`]);
    const otherPort = await send({ path: '/threads', headers: { ...headers, host: 'localhost:9' } });
    expect(otherPort.status).toBe(200);
  });
});

describe('own pages', () => {
  const passes = (bind: string, address: string, page: string) =>
    createAddressGuard({ bind, address, port: 80, hosts: [], origins: [] })({ host: ['localhost'], origin: [page] }) ===
    undefined;

  it('are those of what it really listens on', () => {
    expect(passes('::', '::', 'http://localhost')).toBe(true);
    expect(passes('::', '::', 'http://[::1]')).toBe(true);
    expect(passes('0.0.0.0', '0.0.0.0', 'http://127.0.0.1')).toBe(true);
    expect(passes('0.0.0.0', '0.0.0.0', 'http://localhost')).toBe(false);
    expect(passes('localhost', '::1', 'http://[::1]')).toBe(true);
    expect(passes('localhost', '::1', 'http://127.0.0.1')).toBe(false);
    expect(passes('localhost', '127.0.0.1', 'http://localhost')).toBe(false);
    expect(passes('box.lan', '10.0.0.5', 'http://box.lan')).toBe(true);
  });
});
