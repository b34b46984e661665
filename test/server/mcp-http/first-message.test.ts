import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let project: TempProject;
let daemon: TestDaemon;

beforeAll(async () => {
  project = await tempProject();
  daemon = await testDaemon({ root: project.root, env: { OFFLINE: 'true' } });
});

afterAll(async () => {
  await daemon.close();
  await project.dispose();
});

const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

const post = (message: object) =>
  daemon.ask('/mcp', { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });

const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };

it.each([
  ['a request', { roots: null, sampling: null }],
  ['what it can do', { roots: { listChanged: null } }],
])('begins a session where null stands for what is left out in %s', async (_what, capabilities) => {
  const response = await post({ id: 'i', method: 'initialize', params: { ...params, capabilities } });
  expect(response.status).toBe(200);
  expect(response.headers.get('mcp-session-id')).not.toBeNull();
  expect(await response.text()).toContain('"id":"i"');
});

it.each([
  [{ ...params, capabilities: [] }, /^Invalid params: params\.capabilities: \w.*object/],
  [{ ...params, clientInfo: { name: 'x', version: null } }, /^Invalid params: params\.clientInfo\.version: \w/],
  [undefined, /^Invalid params: params: \w/],
])('says what does not fit in an initialize with %j, by its id', async (given, message) => {
  const response = await post({ id: 'mine', method: 'initialize', params: given });
  expect(response.headers.get('mcp-session-id')).toBeNull();
  expect([response.status, await response.json()]).toEqual([
    400,
    { jsonrpc: '2.0', id: 'mine', error: { code: -32_602, message: expect.stringMatching(message) } },
  ]);
});

it('tells a client that is set to the transport of 2024 which one to set', async () => {
  const response = await daemon.ask('/mcp', { headers: { Accept: 'text/event-stream' } });
  expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(/"sse.*Streamable HTTP/)]);
});

it('asks anybody else without a session to begin', async () => {
  const response = await post({ id: 1, method: 'tools/list' });
  expect([response.status, await response.json()]).toEqual([
    400,
    { jsonrpc: '2.0', id: null, error: { code: -32_000, message: expect.stringContaining('Begin with "initialize"') } },
  ]);
});
