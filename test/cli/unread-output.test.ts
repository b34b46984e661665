import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { initializeParams } from '../e2e/raw-server.ts';
import { serverCommand } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let home: TempProject;
beforeEach(async () => {
  [vendor, project, home] = await Promise.all([startOpenAi(), tempProject(), tempProject()]);
});
afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

/** Starts the program with these outputs; `pipe` without a reader is closed at once. */
function start(args: string[], stdio: ['pipe' | number, 'pipe' | number]) {
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', AI_MANAGER: 'rules' };
  const { command, args: all, ...place } = serverCommand({ root: project.root, home: home.root, env, args });
  const child = spawn(command, all, { ...place, stdio: ['pipe', ...stdio] });
  // A command reads what is piped into it to the end.
  if (args.length > 0) child.stdin?.end();
  const told = { out: '', err: '' };
  child.stdout?.on('data', text => {
    told.out += text;
  });
  child.stderr?.on('data', text => {
    told.err += text;
  });
  return { child, told, ended: once(child, 'close') };
}

const full = () => openSync('/dev/full', 'w');

async function storedTurns(): Promise<string> {
  const { told, ended } = start(['export', 'last'], ['pipe', 'pipe']);
  await ended;
  return told.out;
}

describe('a command whose output cannot be written', () => {
  it('stores the answer that it paid for, though its reader is gone', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'The answer that was paid for.', when: promise });
    const { child, ended } = start(['ask', 'Why?'], ['pipe', 'pipe']);
    child.stdout?.destroy();
    await expect.poll(() => vendor.requests.length).toBe(1);
    resolve();
    expect(await ended).toEqual([0, null]);
    expect(await storedTurns()).toContain('The answer that was paid for.');
  });

  it('stores it on a full disk, too, and says in one line what failed', async () => {
    vendor.script({ answer: 'The answer that was paid for.' });
    const { told, ended } = start(['ask', 'Why?'], [full(), 'pipe']);
    expect(await ended).toEqual([1, null]);
    expect(told.err).toBe('The output cannot be written (ENOSPC: no space left on device, write).\n');
    expect(await storedTurns()).toContain('The answer that was paid for.');
  });

  it.each([
    ['to a reader that has seen enough', () => 'pipe' as const, [0, '']],
    ['on a full disk', full, [1, 'The output cannot be written (ENOSPC: no space left on device, write).\n']],
  ])('ends an export %s without a fault of its own', async (_name, output, outcome) => {
    vendor.script({ answer: 'A long answer. '.repeat(20_000) });
    await start(['ask', 'Why?'], ['pipe', 'pipe']).ended;
    const { child, told, ended } = start(['export', 'last'], [output(), 'pipe']);
    child.stdout?.destroy();
    const [code] = await ended;
    expect([code, told.err]).toEqual(outcome);
  });

  it('interrupts its call when its terminal hangs up', async () => {
    vendor.script({ answer: 'Late.', when: new Promise(() => undefined) });
    const { child, ended } = start(['ask', 'Why?'], ['pipe', 'pipe']);
    await expect.poll(() => vendor.requests.length).toBe(1);
    child.kill('SIGHUP');
    expect((await ended)[0]).toBeGreaterThan(0);
    expect(await storedTurns()).toContain('interrupted');
  });
});

describe('a server whose log cannot be written', () => {
  it.each([
    ['on a full disk', full],
    ['to a reader that is gone', () => 'pipe' as const],
  ])('%s answers all the same', async (_name, log) => {
    vendor.byDefault({ answer: 'Four.' });
    const { child, told, ended } = start([], ['pipe', log()]);
    child.stderr?.destroy();
    const send = (id: number, method: string, params: object) =>
      child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    send(1, 'initialize', initializeParams);
    for (const id of [2, 3]) {
      send(id, 'tools/call', { name: 'chat', arguments: { prompt: `Why ${id}?` } });
      await expect.poll(() => told.out).toContain(`"id":${id}`);
    }
    child.stdin?.end();
    expect(await ended).toEqual([0, null]);
    expect(told.out.match(/Four\./g)).toHaveLength(2);
  });
});
