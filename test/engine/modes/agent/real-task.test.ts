import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { Client, InMemoryTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMcpServer } from '../../../../src/server/mcp/mcp.ts';
import { realClock } from '../../../support/clock.ts';
import { httpMount } from '../../../support/conformance/http-mount.ts';
import { eraVersions } from '../../../support/mcp-session.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../../support/product.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../../support/vendors/start-open-ai.ts';

const broken = 'export function add(a, b) {\n  return a - b;\n}\n';
const mended = 'export function add(a, b) {\n  return a + b;\n}\n';
const files = {
  'package.json': '{"name": "sum", "type": "module", "scripts": {"test": "node --test"}}\n',
  'sum.js': broken,
  'sum.test.js': [
    "import { strictEqual } from 'node:assert';",
    "import test from 'node:test';",
    "import { add } from './sum.js';",
    "test('adds', () => strictEqual(add(2, 3), 5));",
    '',
  ].join('\n'),
};
const patch =
  '--- a/sum.js\n+++ b/sum.js\n@@ -1,3 +1,3 @@\n export function add(a, b) {\n-  return a - b;\n+  return a + b;\n }\n';

let project: TempProject;
let vendor: FakeVendor;
let product: TestProduct;
const closing: (() => Promise<unknown>)[] = [];

async function start(env: Record<string, string> = {}) {
  product = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ openai: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent', ...env },
  });
}

beforeEach(async () => {
  project = await tempProject(files);
  execFileSync('git', ['init', '-q'], { cwd: project.root });
  vendor = await startOpenAi();
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await product.close();
  expect(vendor.violations).toEqual([]);
  await vendor.close();
  await project.dispose();
});

/** A model that reads, patches, tests, and tells how it went. */
function scriptTask(): void {
  vendor.script(
    { calls: [{ name: 'read_file', args: { path: 'sum.js' } }], reasoning: 'First I look.' },
    { calls: [{ name: 'apply_patch', args: { patch } }], reasoning: 'It subtracts.' },
    { calls: [{ name: 'run_command', args: { argv: ['node', '--test'] } }], reasoning: 'Does it pass?' },
    {
      answer: ({ messages }) =>
        messages.some(({ text }) => /^Exit code: 0/m.test(text)) ? 'It passes.' : 'It does not.',
    },
  );
}

const passes = () => {
  try {
    execFileSync(process.execPath, ['--test'], { cwd: project.root, stdio: 'ignore' });
    return true;
  } catch {
    // Exit code 1: a test failed.
    return false;
  }
};

/** A client of either era whose user decides so. */
async function clientOf(era: keyof typeof eraVersions, decide: (message: string) => unknown, asked: string[]) {
  const mode = era === 'modern' ? { pin: eraVersions.modern } : era;
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    asked.push(params.message);
    const decision = decide(params.message);
    return decision === undefined
      ? { action: 'decline' }
      : { action: 'accept', content: { decision: String(decision) } };
  });
  closing.push(() => client.close());
  const { host, root } = product.product;
  if (era === 'modern') {
    const mount = await httpMount(host, root);
    closing.push(() => mount.close());
    await client.connect(new StreamableHTTPClientTransport(new URL(mount.url)));
  } else {
    const [near, far] = InMemoryTransport.createLinkedPair();
    const principal = { owner: 'local', root };
    const options = { host, version: '0', instructions: 'x', principal, clock: realClock() };
    await createMcpServer(options, 'legacy').connect(far);
    await client.connect(near);
  }
  return async (args: Record<string, unknown>): Promise<Document> => {
    const { content } = await client.callTool({ name: 'agent', arguments: args });
    return JSON.parse(content[0]?.type === 'text' ? content[0].text : 'null');
  };
}

describe.each(['legacy', 'modern'] as const)('a real task over the %s era', era => {
  it('is done: it reads, patches once the user approved, runs the test, and it passes', async () => {
    await start();
    scriptTask();
    expect(passes()).toBe(false);
    const asked: string[] = [];
    const call = await clientOf(era, () => 'allow', asked);
    const reply = await call({ task: 'Mend the failing test.', model: 'openai:gpt-5' });
    expect(reply).toMatchObject({ status: 'success', content: 'It passes.', rounds: 4, stop_reason: 'done' });
    expect(asked).toHaveLength(2);
    expect(asked[0]).toContain('+  return a + b;');
    expect(asked[1]).toContain('node --test');
    expect(await readFile(project.path('sum.js'), 'utf8')).toBe(mended);
    expect(passes()).toBe(true);
    expect(reply.changed_files).toEqual([project.path('sum.js')]);
    const backup = /before: (.+)/.exec(vendor.requests[2]!.messages.map(({ text }) => text).join('\n'))?.[1];
    expect(await readFile(String(backup), 'utf8')).toBe(broken);
  });

  it('changes nothing on the disk when the user does not approve', async () => {
    await start();
    scriptTask();
    const asked: string[] = [];
    const call = await clientOf(era, () => undefined, asked);
    const reply = await call({ task: 'Mend the failing test.', model: 'openai:gpt-5' });
    expect(reply.content).toBe('It does not.');
    expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(['ok', 'refused', 'refused']);
    expect(await readFile(project.path('sum.js'), 'utf8')).toBe(broken);
    expect(asked).toHaveLength(2);
  });
});
