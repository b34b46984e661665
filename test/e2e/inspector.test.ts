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
/** The Inspector's other command line, which keeps connections. */
const connections = fileURLToPath(new URL('../../node_modules/.bin/mcpdo', import.meta.url));

let project: TempProject;
let home: TempProject;

beforeAll(async () => {
  [project, home] = await Promise.all([tempProject({ 'plan.md': 'One line.\n' }), tempProject()]);
});

afterAll(async () => {
  await Promise.all([project.dispose(), home.dispose()]);
});

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

/** How the server is started, with its settings as both command lines take them. */
function started(more: Record<string, string>) {
  const env = { POLYLOGUE_PROFILE: 'full', ...more };
  const { command, args, env: all } = serverCommand({ root: project.root, home: home.path('polylogue'), env });
  return { command, args, settings: Object.entries(all).flatMap(([name, value]) => ['-e', `${name}=${value}`]) };
}

/** Of the Inspector. What Node compiled of it is kept from one of its many runs to the next. */
const ownEnv = () => ({
  PATH: process.env.PATH ?? '',
  HOME: home.root,
  MCP_STORAGE_DIR: home.path('inspector'),
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
});

function inspectWith(settingsOfServer: Record<string, string>, args: string[]): Promise<Inspection> {
  const { command, args: server, settings } = started(settingsOfServer);
  const line = [inspector, '--cli', ...settings, command, ...server, ...args, '--format', 'json'];
  return new Promise(resolve => {
    execFile(process.execPath, line, { cwd: project.root, env: ownEnv() }, (error, stdout, stderr) => {
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
  ])('exits with 5 on a failed call in the %s era and shows our error', async (_era, era) => {
    const { code, result, document, errors } = await call('chat', { modell: 'x', prompt: 'Hello.' }, ...era);
    expect(code).toBe(5);
    expect(result.isError).toBe(true);
    expect(document.error).toMatchObject({ code: 'INVALID_INPUT_FORMAT', rpc_code: -32602 });
    expect(errors).toContain('tool_is_error');
  });
});

describe('connections of the Inspector', () => {
  let own: NodeJS.ProcessEnv;
  /** What a command prints; each command is a process, and the server of a connection is one for all of them. */
  const run = async (...line: string[]) => {
    const all = [connections, '--format', 'json', ...line];
    return (await promisify(execFile)(process.execPath, all, { cwd: project.root, env: own })).stdout;
  };

  beforeAll(async () => {
    own = {
      ...ownEnv(),
      MCP_INSPECTOR_DAEMON_DIR: await mkdtemp(join(tmpdir(), 'mcpdo-')),
      MCP_INSPECTOR_DAEMON_TOKEN: 'of this test',
      MCP_INSPECTOR_SECRET_STORE: 'memory',
    };
    const { command, args, settings } = started({ OFFLINE: '1' });
    for (const era of ['legacy', 'modern'])
      await run('--connection', era, 'connect', '--era', era, ...settings, '--', command, ...args);
  });
  afterAll(async () => {
    await run('daemon', 'stop');
    await rm(own.MCP_INSPECTOR_DAEMON_DIR ?? '', { recursive: true, force: true });
  });

  describe.each([
    ['legacy', '2025-11-25'],
    ['modern', '2026-07-28'],
  ])('of the %s era', (era, version) => {
    const mcpdo = async (...line: string[]): Promise<Document> => JSON.parse(await run('--connection', era, ...line));

    it('know whom they are with, get prompts and read resources', async () => {
      const [shown, listed, got, found, read] = await Promise.all([
        mcpdo('connections/show'),
        mcpdo('prompts/list'),
        mcpdo('prompts/get', 'chat:auto', '--prompt-args', 'request=Hello.'),
        mcpdo('resources/list'),
        mcpdo('resources/read', 'polylogue://models'),
      ]);
      expect(shown).toMatchObject({ protocolVersion: version, serverInfo: { name: 'polylogue' } });
      expect(shown.instructions.length).toBeGreaterThan(100);
      expect(listed.prompts.map(({ name }: { name: string }) => name)).toContain('review');
      expect(got.messages[0].content.text).toMatch(/"chat".*model "auto"[\s\S]*Hello\./);
      expect(found.resources[0]).toMatchObject({ uri: 'polylogue://models', mimeType: 'application/json' });
      expect(JSON.parse(read.contents[0].text).models.length).toBeGreaterThan(0);
    });

    it('complete what is typed for a command', async () => {
      const review = ['prompts/complete', '--complete-ref-type', 'ref/prompt', '--complete-ref', 'review'];
      const completed = (name: string, value: string) =>
        mcpdo(...review, '--complete-arg-name', name, '--complete-arg-value', value);
      const [models, nothing] = await Promise.all([completed('model', 'au'), completed('request', 'a')]);
      expect([models, nothing]).toMatchObject([{ values: ['auto'] }, { values: [] }]);
    });
  });
});
