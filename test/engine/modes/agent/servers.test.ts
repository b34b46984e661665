import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readServerList } from '../../../../src/engine/modes/agent/mcp-servers.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../../support/product.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../../support/vendors/start-open-ai.ts';

const program = fileURLToPath(new URL('../../../fixtures/mcp-server.ts', import.meta.url));

let project: TempProject;
let vendor: FakeVendor;
let product: TestProduct;
beforeEach(async () => {
  project = await tempProject();
  vendor = await startOpenAi();
});
afterEach(async () => {
  await product.close();
  expect(vendor.violations).toEqual([]);
  await vendor.close();
  await project.dispose();
});

async function start(servers: unknown, env: Record<string, string> = {}) {
  await project.write('servers.json', JSON.stringify({ mcpServers: servers }));
  product = await testProduct({
    root: project.root,
    env: {
      ...vendorEnv({ openai: vendor.url }),
      POLYLOGUE_TOOLSETS: 'core,agent',
      POLYLOGUE_MCP_SERVERS: project.path('servers.json'),
      ...env,
    },
  });
}

const fixture = { command: process.execPath, args: [program], env: { UNIT: 'celsius' } };
const told = () =>
  vendor.requests
    .at(-1)!
    .messages.map(({ text }) => text)
    .join('\n');

describe('tools of configured MCP servers', () => {
  it("are called like the agent's own, behind the same gate and the same caps, without our keys", async () => {
    await start({ town: { ...fixture, trusted: true }, gone: { command: '/nowhere/at-all' } });
    vendor.script(
      {
        calls: [
          { name: 'town__weather', args: { town: 'Ulm' } },
          { name: 'town__much', args: {} },
          { name: 'town__weather', args: { city: 'Ulm' } },
        ],
        reasoning: 'Ask.',
      },
      { answer: 'Rain.' },
    );
    const reply = await product.call('agent', { task: 'What is the weather?', model: 'openai:gpt-5' });
    expect(reply.content).toBe('Rain.');
    // Reading by a trusted server needs no approval; anything else does.
    expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(['ok', 'refused', 'failed']);
    expect(told()).toContain('Ulm: rain, celsius, no key');
    expect(reply.metadata.warnings.join(' ')).toContain('gone');
  });

  it('are named where they are left out, and name the resources that they tell of', async () => {
    const many = { ...fixture, env: { MANY: '80', LONG: '30000' } };
    await start({ one: many, two: many }, { AGENT_APPROVE: 'all' });
    vendor.script({ calls: [{ name: 'one__links', args: {} }], reasoning: 'Ask.' }, { answer: 'Done.' });
    const reply = await product.call('agent', { task: 'Look.', model: 'openai:gpt-5' });
    const warnings = reply.metadata.warnings.join('\n');
    expect(warnings).toMatch(/^Tools of one were left out, their schemas are too long: long$/m);
    expect(warnings).toMatch(/^Tools of one were left out, it has more than 60: many_55, many_56, /m);
    expect(warnings).toMatch(/^Tools were left out, of the same name or beyond the first 120: two__many_\d+/m);
    expect(told()).toContain('[resource_link: notes, notes://1]\n[resource: notes://blob]');
  });

  it('end with the run, also when they fail, bring much or hang', async () => {
    await start({ town: { ...fixture, tools: ['fail', 'much', 'hang'] } }, { AGENT_APPROVE: 'all' });
    vendor.script(
      { calls: ['fail', 'much', 'weather'].map(name => ({ name: `town__${name}`, args: {} })), reasoning: 'Ask.' },
      { calls: [{ name: 'town__hang', args: {} }], reasoning: 'Wait.' },
    );
    const stop = new AbortController();
    const onProgress = ({ message }: { message: string }) => {
      if (message.includes('town__hang')) stop.abort();
    };
    const options = { signal: stop.signal, onProgress };
    const reply = await product.call('agent', { task: 'Try.', model: 'openai:gpt-5' }, options);
    expect(reply).toMatchObject({ isError: true, error: { code: 'CANCELLED' } });
    expect(reply.tool_calls.map(({ name, outcome }: Document) => `${name} ${outcome}`)).toEqual([
      'town__fail failed',
      'town__much ok',
      'town__weather invalid',
    ]);
    expect(told().length).toBeLessThan(150_000);
  });
});

describe('a server that wishes harm', () => {
  it('neither stops this one with what is slow to check, nor fills every question', async () => {
    const hostile = fileURLToPath(new URL('../../../fixtures/hostile-mcp-server.ts', import.meta.url));
    await start({ bad: { command: process.execPath, args: [hostile] } }, { AGENT_APPROVE: 'all' });
    vendor.script({ calls: [{ name: 'bad__slow', args: {} }], reasoning: 'Ask.' }, { answer: 'Done.' });
    const began = performance.now();
    const reply = await product.call('agent', { task: 'Try.', model: 'openai:gpt-5' });
    expect(reply.tool_calls).toMatchObject([{ name: 'bad__slow', outcome: 'ok' }]);
    expect(performance.now() - began).toBeLessThan(60_000);
    expect(reply.metadata.warnings.join(' ')).toContain('huge');
    expect(JSON.stringify(vendor.requests[0]).length).toBeLessThan(100_000);
  });

  it('does not fill the memory over HTTP', async () => {
    let sent = 0;
    const piece = Buffer.alloc(65_536, ' ');
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const send = () => {
        for (let full = false; !full && !response.destroyed; sent += piece.length) full = !response.write(piece);
      };
      response.on('drain', send);
      send();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    await start({ bad: { url: `http://127.0.0.1:${typeof address === 'object' && address?.port}/mcp` } });
    vendor.script({ answer: 'Done.' });
    const reply = await product.call('agent', { task: 'Try.', model: 'openai:gpt-5' });
    server.closeAllConnections();
    server.close();
    expect(reply.metadata.warnings.join(' ')).toContain('did not end after 67108864 bytes');
    expect(sent).toBeLessThan(256 * 1024 * 1024);
  });
});

describe('a file of servers', () => {
  it('is taken in the form of the hosts, and told what is wrong with it', async () => {
    await start({});
    const list = (servers: unknown) => readServerList(JSON.stringify({ mcpServers: servers }));
    expect(
      list({ a: { command: 'x' }, b: { url: 'https://x.test/mcp' }, c: { command: 'y', disabled: true } }),
    ).toMatchObject({
      servers: [
        { id: 'a', args: [] },
        { id: 'b', headers: {} },
      ],
    });
    expect(list({ 'bad name': { command: 'x' } })).toMatchObject({ problem: expect.stringContaining('bad name') });
    expect(list({ a: { url: 'file:///etc/passwd' } })).toHaveProperty('problem');
    expect(readServerList('{')).toEqual({ problem: 'it is no JSON' });
  });
});
