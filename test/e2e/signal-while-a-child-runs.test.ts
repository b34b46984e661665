import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vendorEnv } from '../support/product.ts';
import { type ServeProcess, startServe } from '../support/serve-process.ts';
import { type StandIn, standIn } from '../support/stand-in-cli.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { waitUntil } from '../support/wait-until.ts';
import { initializeParams, type RawServer, startRawServer } from './raw-server.ts';

const planted = ['.vscode/tasks.json', '.claude/settings.json', '.mcp.json'];
const slow = `
const { mkdirSync, writeFileSync } = require('node:fs');
require('node:test')('plants', async () => {
  for (const folder of ['.vscode', '.claude']) mkdirSync(folder);
  for (const path of ${JSON.stringify(planted)}) writeFileSync(path, 'evil');
  await new Promise(resolve => setTimeout(resolve, 60_000));
});
`;

let project: TempProject;
let home: TempProject;
let vendor: FakeVendor;
let program: StandIn;
let server: RawServer | undefined;
let daemon: ServeProcess | undefined;
beforeEach(async () => {
  [project, home, vendor, program] = await Promise.all([
    tempProject({ 'slow.test.js': slow, 'quick.test.js': "require('node:test')('x', () => {});\n" }),
    tempProject(),
    startOpenAi(),
    standIn('gemini'),
  ]);
});
afterEach(async () => {
  server?.signal('SIGKILL');
  await Promise.all([server?.ended, daemon?.kill()]);
  [server, daemon] = [undefined, undefined];
  await Promise.all([vendor.close(), project.dispose(), home.dispose(), program.dispose()]);
});

const left = () => planted.filter(path => existsSync(project.path(path)));
const env = () => ({
  ...vendorEnv({ openai: vendor.url }),
  ...{ DEFAULT_MODEL: 'gpt-5-mini', AI_MANAGER: 'rules', POLYLOGUE_TOOLSETS: 'core,code,agent', AGENT_APPROVE: 'all' },
});

/** A server over standard input and output in which an agent runs a test. */
async function running(file: string): Promise<RawServer> {
  vendor.script({ calls: [{ name: 'run_command', args: { argv: ['node', '--test', file] } }] });
  vendor.byDefault({ answer: 'Done.' });
  const started = startRawServer({ root: project.root, home: home.root, env: { ...env(), HOME: home.root } });
  server = started;
  await started.request(1, 'initialize', initializeParams);
  started.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
  return started;
}
const agentWith = (task: string) => ({ name: 'agent', arguments: { task, model: 'gpt-5-mini' } });

describe('while a command of an agent runs', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s ends the server when the command is ended and cleaned up',
    async name => {
      const started = await running('slow.test.js');
      void started.request(2, 'tools/call', agentWith('Test it.'));
      await waitUntil('the files were planted', () => left().length === planted.length, { known: started.told });
      started.signal(name);
      expect(await started.ended).toMatchObject({ code: 0, signal: null });
      expect(started.lines.at(-1)).toContain('INTERRUPTED');
      expect(left()).toEqual([]);
      expect(await readdir(home.path('agent-commands/pending'))).toEqual([]);
    },
  );

  it('SIGKILL leaves to the next run what this one could not remove', async () => {
    const first = await running('slow.test.js');
    void first.request(2, 'tools/call', agentWith('Test it.'));
    await waitUntil('the files were planted', () => left().length === planted.length, { known: first.told });
    first.signal('SIGKILL');
    await first.ended;
    expect(left()).toEqual(planted);
    const second = await running('quick.test.js');
    await second.request(2, 'tools/call', agentWith('Test it again.'));
    expect(left()).toEqual([]);
    expect(vendor.requests.at(-1)?.canonical).toContain('.vscode was removed');
  });
});

describe('while a CLI runs for somebody', () => {
  const chat = { prompt: 'What is a door?' };
  async function serving(more: Record<string, string> = {}) {
    program.script([{ child: 'daemon' }, { hang: true }]);
    vendor.byDefault({ answer: 'Wood.', delayMs: 1_500 });
    const started = await startServe({
      root: project.root,
      home: home.root,
      env: { ...env(), ...program.env, ...more },
    });
    daemon = started;
    const cli = started.post('clink', { prompt: 'Hello', cli_name: 'gemini' }).catch(() => ({ status: 0 }));
    const answer = started.post('chat', chat).catch(() => ({ status: 0 }));
    await waitUntil('the CLI ran', () => program.calls().length === 1, { known: started.log });
    await waitUntil('the model was asked', () =>
      vendor.requests.some(({ canonical }) => canonical.includes(chat.prompt)),
    );
    return { started, cli, answer };
  }

  it('a daemon that is told to end answers the calls of the others first', async () => {
    const { started, cli, answer } = await serving({ POLYLOGUE_DRAIN_SECONDS: '4' });
    started.signal('SIGTERM');
    expect((await answer).status).toBe(200);
    expect((await cli).status).toBe(503);
    expect(await started.ended).toBe(0);
    expect(await program.left()).toEqual([]);
  });

  it('a daemon that is told to end at once ends the CLI with itself, and what that started', async () => {
    const { started } = await serving();
    started.signal('SIGTERM');
    await waitUntil('it drained', () => started.log().includes('stopping'));
    started.signal('SIGTERM');
    expect(await started.ended).toBe(1);
    await waitUntil('the CLI and its daemon ended', async () => (await program.left()).length === 0);
  });
});
