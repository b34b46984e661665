import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tools } from '../../src/tools/index.gen.ts';
import { serverCommand } from '../support/mcp-session.ts';
import type { Document } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const inspector = fileURLToPath(new URL('../../node_modules/.bin/mcp-inspector', import.meta.url));
/** The Inspector's other command line, which keeps connections: it alone asks for completions. */
const connections = fileURLToPath(new URL('../../node_modules/.bin/mcpdo', import.meta.url));

let project: TempProject;
let home: TempProject;

beforeAll(async () => {
  [project, home] = await Promise.all([tempProject({ 'plan.md': 'One line.\n' }), tempProject()]);
});

afterAll(async () => {
  await Promise.all([project.dispose(), home.dispose()]);
});

/** What Node compiled of the Inspector is kept from one of its many runs to the next. */
const compiled = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };

interface Inspection {
  code: number;
  /** The protocol's result. */
  result: Document;
  /** The document of a tool's reply. */
  document: Document;
  errors: string;
}

/** One run of the Inspector's command line against a server with the built-in models. */
const inspect = (...args: string[]) => inspectWith({ OFFLINE: '1' }, args);

function inspectWith(settingsOfServer: Record<string, string>, args: string[]): Promise<Inspection> {
  const {
    command,
    args: server,
    cwd,
    env,
  } = serverCommand({
    root: project.root,
    home: home.path('polylogue'),
    env: { POLYLOGUE_PROFILE: 'full', ...settingsOfServer },
  });
  const settings = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const line = [inspector, '--cli', ...settings, command, ...server, ...args, '--format', 'json'];
  const own = { PATH: process.env.PATH ?? '', HOME: home.root, MCP_STORAGE_DIR: home.path('inspector'), ...compiled };
  return new Promise(resolve => {
    execFile(command, line, { cwd, env: own }, (error, stdout, stderr) => {
      const result = JSON.parse(stdout || '{}').result;
      const text = result?.content?.[0]?.text;
      const document = text === undefined ? undefined : JSON.parse(text);
      resolve({ code: error ? Number(error.code) : 0, result, document, errors: stderr });
    });
  });
}

const call = (tool: string, args: object, ...more: string[]) =>
  inspect('--method', 'tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify(args), ...more);

describe('the Inspector', () => {
  it.each([
    ['2025-11-25', []],
    ['2026-07-28', ['--protocol-era', 'modern']],
  ])('connects in %s', async (version, era) => {
    const { code, result } = await inspect('--method', 'initialize', ...era);
    expect(code).toBe(0);
    expect(result).toMatchObject({ protocolVersion: version, serverInfo: { name: 'polylogue' } });
    expect(result.instructions.length).toBeGreaterThan(100);
  });

  it('finds nothing in the schemas that a host could stumble over', async () => {
    // Some tools are there only where their vendor is configured; listing tools asks no vendor.
    const all = { MOONSHOT_API_KEY: 'test-key', ZHIPUAI_API_KEY: 'test-key' };
    const [{ code, result, errors }, { result: modern }] = await Promise.all([
      inspectWith(all, ['--method', 'tools/list', '--strict']),
      inspectWith(all, ['--method', 'tools/list', '--protocol-era', 'modern']),
    ]);
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(result.tools).toHaveLength(tools.length);
    expect(modern.tools).toEqual(result.tools);
  });

  it.each([
    ['legacy', []],
    ['modern', ['--protocol-era', 'modern']],
  ])('calls tools of each kind in the %s era, one process after the other on one thread', async (_era, era) => {
    const chat = await call('chat', { prompt: 'Hello.', absolute_file_paths: ['plan.md'] }, ...era);
    expect(chat).toMatchObject({ code: 0, document: { status: 'continuation_available' } });
    const { continuation_id } = chat.document.continuation_offer;
    const step = { step: 'Look.', findings: 'One line.', total_steps: 2, relevant_files: ['plan.md'], continuation_id };
    const pause = await call('analyze', { ...step, step_number: 1, next_step_required: true }, ...era);
    expect(pause).toMatchObject({ code: 0, document: { status: 'pause_for_analysis', continuation_id } });
    const read = await call('threads', { action: 'read', continuation_id }, ...era);
    expect(read.document.transcript.map((turn: Document) => turn.tool)).toEqual(['chat', 'chat', 'analyze']);
  });

  it.each([
    ['legacy', []],
    ['modern', ['--protocol-era', 'modern']],
  ])('gets prompts and reads resources in the %s era', async (_era, era) => {
    const asked = ['--prompt-name', 'chat:auto', '--prompt-args', 'request=Hello.'];
    const [{ result: listed }, { result: got }, { result: found }, { result: read }] = await Promise.all([
      inspect('--method', 'prompts/list', ...era),
      inspect('--method', 'prompts/get', ...asked, ...era),
      inspect('--method', 'resources/list', ...era),
      inspect('--method', 'resources/read', '--uri', 'polylogue://models', ...era),
    ]);
    expect(listed.prompts.map(({ name }: { name: string }) => name)).toContain('review');
    expect(got.messages[0].content.text).toMatch(/"chat".*model "auto"[\s\S]*Hello\./);
    expect(found.resources[0]).toMatchObject({ uri: 'polylogue://models', mimeType: 'application/json' });
    expect(JSON.parse(read.contents[0].text).models.length).toBeGreaterThan(0);
  });

  it.each(['legacy', 'modern'])('completes what is typed for a command in the %s era', async era => {
    const { command, args, cwd, env } = serverCommand({
      root: project.root,
      home: home.path('polylogue'),
      env: { POLYLOGUE_PROFILE: 'full' },
    });
    const settings = Object.entries({ ...env, OFFLINE: '1' }).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
    const own = {
      PATH: process.env.PATH ?? '',
      HOME: home.root,
      MCP_STORAGE_DIR: home.path('inspector'),
      ...compiled,
      MCP_INSPECTOR_DAEMON_DIR: await mkdtemp(join(tmpdir(), 'mcpdo-')),
      MCP_INSPECTOR_DAEMON_TOKEN: 'of this test',
      MCP_INSPECTOR_SECRET_STORE: 'memory',
    };
    const mcpdo = async (...line: string[]) => {
      const all = [connections, '--connection', era, '--format', 'json', ...line];
      return JSON.parse((await promisify(execFile)(command, all, { cwd, env: own })).stdout);
    };
    try {
      await mcpdo('connect', '--era', era, ...settings, '--', command, ...args);
      const prompt = ['prompts/complete', '--complete-ref-type', 'ref/prompt', '--complete-ref'];
      const models = ['--complete-arg-name', 'model', '--complete-arg-value', 'au'];
      expect(await mcpdo(...prompt, 'review', ...models)).toMatchObject({ values: ['auto'] });
      const nothing = ['--complete-arg-name', 'request', '--complete-arg-value', 'a'];
      expect(await mcpdo(...prompt, 'review', ...nothing)).toMatchObject({ values: [] });
    } finally {
      await promisify(execFile)(command, [connections, 'daemon', 'stop'], { cwd, env: own });
      await rm(own.MCP_INSPECTOR_DAEMON_DIR, { recursive: true, force: true });
    }
  });

  it.each([
    ['legacy', []],
    ['modern', ['--protocol-era', 'modern']],
  ])('exits with 5 on a failed call in the %s era and shows our error', async (_era, era) => {
    const { code, result, document, errors } = await call('chat', { modell: 'x', prompt: 'Hello.' }, ...era);
    expect(code).toBe(5);
    expect(result.isError).toBe(true);
    expect(document.error).toMatchObject({ code: 'INVALID_INPUT_FORMAT', rpc_code: -32602 });
    expect(errors).toContain('tool_is_error');
  });
});
