import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createMcpServer } from '../../../src/server/mcp/mcp.ts';
import { resultOf } from '../../../src/server/mcp/results.ts';
import { realClock } from '../../support/clock.ts';
import { type Document, type TestProduct, testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'a.ts': 'export const a = 1;\n' });
});

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

afterAll(async () => {
  await vendor.close();
  await project.dispose();
});

async function start(env: Record<string, string> = {}): Promise<TestProduct> {
  const custom = { CUSTOM_API_URL: vendor.url, CUSTOM_API_KEY: 'test-key', CUSTOM_MODEL_NAME: 'wide' };
  const limits = { CUSTOM_CONTEXT_WINDOW: '1000000', DEFAULT_MODEL: 'custom:wide' };
  const product = await testProduct({ root: project.root, env: { ...custom, ...limits, ...env } });
  open.push(product);
  return product;
}

/** The official client under a host's name, on the product's own MCP server. */
async function clientNamed(name: string, { product }: TestProduct): Promise<Client> {
  const client = new Client({ name, version: '1' });
  const [near, far] = InMemoryTransport.createLinkedPair();
  const principal = { owner: 'local', root: project.root };
  await createMcpServer(
    { host: product.host, version: '0', instructions: 'x', principal, clock: realClock() },
    'legacy',
  ).connect(far);
  await client.connect(near);
  open.push(client);
  return client;
}

interface Blocks {
  head: Document;
  texts: string[];
  bytes: number;
  isError: boolean;
  meta: Document;
  structured: Document;
}

async function call(client: Client, name: string, args: Record<string, unknown>): Promise<Blocks> {
  const { content, isError, _meta, structuredContent } = await client.callTool({ name, arguments: args });
  const [first = '', ...texts] = content.map(block => (block.type === 'text' ? block.text : ''));
  const bytes = content.reduce((sum, block) => sum + Buffer.byteLength(block.type === 'text' ? block.text : ''), 0);
  const head = first.startsWith('{') ? JSON.parse(first) : first;
  return { head, texts, bytes, isError: isError ?? false, meta: _meta, structured: structuredContent };
}

/** All pages of a reply, as a model reads them that does what `next_page` says. */
async function readAll(client: Client, first: Blocks, limit: number): Promise<string> {
  let text = '';
  for (let page = first; ; ) {
    expect(page.bytes).toBeLessThanOrEqual(limit);
    expect(page.texts).toHaveLength(1);
    text += page.texts[0];
    const way = /^Call "job" with job_id "(.+)" and page (\d+)\.$/.exec(page.head.next_page ?? '');
    if (!way) return text;
    page = await call(client, 'job', { job_id: way[1], page: Number(way[2]) });
    expect(page.head.page).toMatch(new RegExp(`^${way[2]} of `));
  }
}

const prose = (lines: number) =>
  Array.from({ length: lines }, (_, n) => `${n}: "the quick fox" jumps — über\tthe 懒狗, 🦊 again.`).join('\n');

describe('a long answer', () => {
  it.each([
    ['claude-code', 30_000],
    ['codex-mcp-client', 9_000],
    ['qwen-code', 22_000],
    ['a client nobody knows', 40_000],
  ])('is read by %s to its end, in pages of at most %i bytes', async (name, limit) => {
    const answer = prose(1_500);
    vendor.byDefault({ answer });
    const client = await clientNamed(name, await start());
    const first = await call(client, 'chat', { prompt: 'Everything.' });
    expect(Object.keys(first.head).slice(0, 2)).toEqual(['status', 'continuation_offer']);
    expect(first.head.page).toMatch(/^1 of \d+$/);
    expect(first.head.content).toBe('The text follows in the next content block.');
    expect(await readAll(client, first, limit)).toBe(answer);
  });

  it('is read to its end where it is one line, in letters of four bytes', async () => {
    const answer = '🦊'.repeat(20_000);
    vendor.byDefault({ answer });
    const client = await clientNamed('codex', await start());
    const first = await call(client, 'chat', { prompt: 'Everything.' });
    expect(await readAll(client, first, 9_000)).toBe(answer);
  });

  it('of a replay, a workflow and several models comes the same way', async () => {
    const answer = prose(1_000);
    vendor.byDefault({ answer });
    const client = await clientNamed('claude-code', await start());
    const step = { step: 's', step_number: 1, total_steps: 1, next_step_required: false, findings: 'f' };
    const expert = await call(client, 'debug', { ...step, relevant_files: ['a.ts'], use_assistant_model: true });
    expect(expert.head.page).toMatch(/^1 of/);
    expect(await readAll(client, expert, 30_000)).toContain(answer);
    const stances = ['for', 'against'].map(stance => ({ model: 'custom:wide', stance }));
    const panel = await call(client, 'consensus', { prompt: 'p', models: stances });
    expect(panel.head, JSON.stringify(panel.head)).toHaveProperty('page');
    expect((await readAll(client, panel, 30_000)).length).toBeGreaterThan(answer.length);
    const key = { _meta: { idempotencyKey: 'once' } };
    const asked = { name: 'chat', arguments: { prompt: 'again' }, ...key };
    const [once, twice] = [await client.callTool(asked), await client.callTool(asked)];
    expect(twice.content[1]).toEqual(once.content[1]);
  });

  it('keeps within what the operator allows, and as Markdown or with structured content too', async () => {
    const answer = prose(1_500);
    vendor.byDefault({ answer });
    const small = await clientNamed('x', await start({ MAX_MCP_OUTPUT_TOKENS: '4000' }));
    expect(await readAll(small, await call(small, 'chat', { prompt: 'p' }), 2 * 4_000)).toBe(answer);
    const page = await clientNamed('x', await start({ REPLY_FORMAT: 'markdown' }));
    const first = await call(page, 'chat', { prompt: 'p' });
    expect(first.head.page).toMatch(/^1 of/);
    expect((await readAll(page, first, 40_000)).startsWith(answer)).toBe(true);
    const both = await call(await clientNamed('x', await start({ REPLY_FORMAT: 'structured' })), 'chat', {
      prompt: 'p',
    });
    expect(both.structured).toMatchObject({ status: 'continuation_available', content: both.texts[0] });
  });

  it('of up to 4,000 characters stays in the document, and other doors get it whole', async () => {
    const product = await start();
    const client = await clientNamed('codex', product);
    vendor.byDefault({ answer: 'x\n'.repeat(2_000) });
    const short = await call(client, 'chat', { prompt: 'p' });
    expect(short).toMatchObject({ texts: [], head: { content: 'x\n'.repeat(2_000) } });
    vendor.byDefault({ answer: prose(300) });
    const reply = await product.call('chat', { prompt: 'q' });
    expect(reply).toMatchObject({ content: prose(300), metadata: { usage: { input: expect.any(Number) } } });
  });
});

describe('a short answer', () => {
  it('costs at most 600 bytes beside its text, and has its facts in _meta', async () => {
    vendor.byDefault({ answer: 'Yes.' });
    const settings: Record<string, string>[] = [{}, { REPLY_FORMAT: 'structured' }];
    for (const env of settings) {
      const client = await clientNamed('claude-code', await start(env));
      for (const args of [{ prompt: 'p' }, { prompt: 'p', absolute_file_paths: ['a.ts'] }]) {
        const { head, bytes, meta } = await call(client, 'chat', args);
        expect(bytes - 4).toBeLessThanOrEqual(600);
        expect(head).toEqual({
          status: 'continuation_available',
          continuation_offer: {
            continuation_id: expect.any(String),
            note: expect.any(String),
            remaining_turns: expect.any(Number),
          },
          content_type: 'text',
          content: 'Yes.',
          metadata: { tool_name: 'chat', model_used: 'wide', provider_used: 'custom' },
        });
        expect(meta['polylogue/facts']).toMatchObject({
          metadata: { usage: { output: expect.any(Number) }, routing_reason: expect.any(String) },
          continuation_offer: { expires_at: expect.any(String) },
        });
      }
    }
  });

  it('shows its warnings and the files that were left out', async () => {
    const client = await clientNamed('codex', await start());
    const { head } = await call(client, 'chat', { prompt: 'p', absolute_file_paths: ['a.ts', 'no.ts'], colour: 1 });
    expect(head.metadata.warnings.join(' ')).toContain('colour');
    expect(JSON.stringify(head.metadata.files.skipped)).toContain('no.ts');
    expect(head.status).toBe('continuation_available');
  });
});

it('a summary in the place of a CLI’s long answer is called one', async () => {
  const metadata = { tool_name: 'clink', output_summarized: true, output_original_length: 21_000 };
  const document = { status: 'success', content: 'In short.', metadata };
  const reader = { client: undefined, keep: async () => undefined };
  const { content } = await resultOf({ isError: false, document, text: '' }, reader);
  expect(JSON.parse(content[0]?.text ?? '').metadata).toEqual({ tool_name: 'clink', output_summarized: true });
});

describe('an error', () => {
  const step = { step: 's', step_number: 1, total_steps: 1, next_step_required: false, findings: 'f' };

  it.each([
    ['chat', {}, 'MISSING_PARAMETER', 'prompt'],
    ['chat', { prompt: 'p', model: 'no-such-model' }, 'MODEL_NOT_FOUND', undefined],
    ['threads', { action: 'delete' }, 'MISSING_PARAMETER', 'continuation_id'],
    ['nothing', {}, 'TOOL_NOT_FOUND', 'name'],
  ])('of %s %j has one shape', async (name, args, code, field) => {
    const { head, isError } = await call(await clientNamed('x', await start()), name, args);
    expect(isError).toBe(true);
    expect(head).toMatchObject({ status: 'error', content_type: 'text', tool_name: name, error: { code } });
    expect(head.content).toBe(`${head.error.message} ${head.error.next}`);
    if (field !== undefined) expect(head.error.validation_errors[0].field).toBe(field);
  });

  it.each([
    ['chat', { prompt: 'p', files: ['/etc/hosts'] }, 'files'],
    ['chat', { prompt: 'p', absolute_file_paths: ['/etc/hosts'] }, 'absolute_file_paths'],
    ['debug', { ...step, use_assistant_model: true, absolute_file_paths: ['/etc/hosts'] }, 'absolute_file_paths'],
    ['chat', { question: '' }, 'prompt'],
    ['job', { job_id: 'none' }, 'job_id'],
    ['chat', { prompt: 'p', model: { deep: 1 } }, 'model'],
    ['chat', { prompt: 'p', files: [1, { x: 1 }] }, 'files.1'],
    ['consensus', { prompt: 'p', models: [{ model: 'custom:wide', stance: 'odd' }] }, 'models.0.stance'],
    ['consensus', { prompt: 'p', models: { model: 'custom:wide', stance: 'odd' } }, 'models.stance'],
  ])('of %s %j names the field as the caller wrote it', async (name, args, field) => {
    const { head } = await call(await clientNamed('x', await start()), name, args);
    expect(head.error.validation_errors[0].field).toBe(field);
  });

  it('of a workflow claims no finished work, and one as Markdown keeps its code', async () => {
    const args = { ...step, relevant_files: ['a.ts'], use_assistant_model: true, model: 'no-such-model' };
    const { head } = await call(await clientNamed('x', await start()), 'debug', args);
    expect(head).toMatchObject({ status: 'error', content: expect.stringContaining(head.error.next) });
    expect(Object.keys(head).filter(key => /complete/.test(key))).toEqual([]);
    const page = await call(await clientNamed('x', await start({ REPLY_FORMAT: 'markdown' })), 'chat', {});
    expect(page.head).toContain('MISSING_PARAMETER');
  });
});

describe('a tool that is not offered', () => {
  it.each([
    ['clink', {}, /toolset "agent".+POLYLOGUE_TOOLSETS=core,code,files,agent/],
    ['chat', { DISABLED_TOOLS: 'chat' }, /DISABLED_TOOLS/],
    ['debug', { POLYLOGUE_TOOLS: 'chat' }, /POLYLOGUE_TOOLS/],
    ['smart_file_query', {}, /needs kimi|needs moonshot|needs /],
    ['chatt', {}, /mean chat/],
  ])('%s with %j is told how to have it', async (name, env, words) => {
    const { head } = await call(await clientNamed('x', await start(env)), name, { prompt: 'p' });
    expect(head.error.code).toBe('TOOL_NOT_FOUND');
    expect(head.content).toMatch(words);
  });
});

describe('slash commands', () => {
  it('have no arguments where a host would split them, and take arguments all the same', async () => {
    const product = await start();
    const split = (await (await clientNamed('claude-code', product)).listPrompts()).prompts;
    expect(split.length).toBeGreaterThan(10);
    expect(split.flatMap(prompt => prompt.arguments ?? [])).toEqual([]);
    const gemini = await clientNamed('gemini-cli-mcp-client', product);
    const { prompts } = await gemini.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(split.map(({ name }) => name));
    const debugOf = async (client: string) => {
      const { prompts } = await (await clientNamed(client, product)).listPrompts();
      return prompts.find(({ name }) => name === 'debug')?.arguments?.map(({ name, required }) => [name, required]);
    };
    expect(await debugOf('gemini-cli-mcp-client')).toEqual([
      ['request', true],
      ['model', false],
      ['continuation_id', false],
    ]);
    expect(await debugOf('qwen-code')).toEqual([['request', false]]);
    expect(await debugOf('opencode')).toEqual([]);
    expect((await debugOf('cursor-vscode'))?.length).toBe(3);
    for (const [client, args, words] of [
      [await clientNamed('Claude Code', product), { request: 'why does it throw' }, 'why does it throw'],
      [gemini, { request: 'why', model: 'flash' }, 'flash'],
      [await clientNamed('claude-code', product), undefined, 'typed after the command'],
    ] as const) {
      const { messages } = await client.getPrompt({ name: 'debug', ...(args && { arguments: args }) });
      expect(JSON.stringify(messages)).toContain(words);
    }
  });
});

describe('what hosts may run without asking', () => {
  it('is chat and what reads its pages, unless it may write', async () => {
    const hints = async (env: Record<string, string>) => {
      const { tools } = await (await clientNamed('codex', await start(env))).listTools();
      return Object.fromEntries(tools.map(tool => [tool.name, tool]));
    };
    const usual = await hints({});
    for (const name of ['chat', 'job', 'consensus'])
      expect(usual[name]?.annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false });
    expect(Object.keys(usual.chat?.inputSchema.properties ?? {})).not.toContain('working_directory_absolute_path');
    const writing = await hints({ WRITE_GENERATED_CODE: 'on' });
    expect(writing.chat?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: false });
    expect(Object.keys(writing.chat?.inputSchema.properties ?? {})).toContain('working_directory_absolute_path');
    const guarded = await hints({ WRITE_GENERATED_CODE: 'on', POLYLOGUE_READ_ONLY: 'on' });
    expect(guarded.chat?.annotations).toMatchObject({ readOnlyHint: true });
  });
});
