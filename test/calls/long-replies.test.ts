import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { o200kTokens } from '../support/vendors/o200k-tokens.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

/** The default limit in the tokens of the strictest host, as o200k counts them. */
const cap = Math.floor(25_000 / 1.45);
const principal = (root: string) => ({ owner: 'local', root, client: 'test' });

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

/** A model that may answer that much at once. */
const widely = (url: string) => ({
  CUSTOM_API_URL: url,
  CUSTOM_API_KEY: 'test-key',
  CUSTOM_MODEL_NAME: 'wide',
  CUSTOM_CONTEXT_WINDOW: '1000000',
});

async function start(env: Record<string, string> = {}) {
  polylogue = await testProduct({
    root: project.root,
    env: { ...widely(vendor.url), DEFAULT_MODEL: 'custom:wide', ...env },
  });
}

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'a.ts': 'export const a = 1;\n' });
});

afterEach(async () => {
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

/** A call as the transport sees it: the text block. */
async function textOf(name: string, args: Record<string, unknown>): Promise<string> {
  const request = { name, arguments: args, principal: principal(project.root) };
  return (await polylogue.product.host.call(request, new AbortController().signal)).text;
}

/** Reads the rest of an answer page by page, checking each page's size. */
async function readOn(id: string, cursor: string): Promise<string> {
  let rest = '';
  for (let next: string | undefined = cursor; next !== undefined; ) {
    const text = await textOf('threads', { action: 'read', continuation_id: id, cursor: next });
    expect(o200kTokens(text).length).toBeLessThanOrEqual(cap);
    const page = JSON.parse(text);
    for (const turn of page.transcript) rest += turn.content;
    next = page.next_cursor;
  }
  return rest;
}

/** About 120,000 tokens of numbered prose, quotes and line breaks included. */
const long = Array.from(
  { length: 5_800 },
  (_, n) => `Line ${n}: "the quick brown fox" jumps over\tthe lazy dog, again and again.`,
).join('\n');

describe('an answer of 120,000 tokens', () => {
  it('comes in a reply within the cap and pages to its end without loss', async () => {
    await start();
    vendor.byDefault({ answer: long });
    const text = await textOf('chat', { prompt: 'Everything, please.' });
    expect(o200kTokens(text).length).toBeLessThanOrEqual(cap);
    const reply = JSON.parse(text);
    expect(o200kTokens(long).length).toBeGreaterThan(118_000);
    expect(reply.truncated.total_tokens).toBeGreaterThanOrEqual(118_000);
    expect(long.startsWith(reply.content)).toBe(true);
    const rest = await readOn(reply.continuation_offer.continuation_id, reply.truncated.next_cursor);
    expect(reply.content + rest).toBe(long);
  });

  it('does so for the expert of a workflow', async () => {
    await start();
    vendor.byDefault({ answer: long });
    const step = {
      step: 's',
      step_number: 1,
      total_steps: 1,
      next_step_required: false,
      findings: 'f',
      relevant_files: ['a.ts'],
    };
    const text = await textOf('analyze', step);
    expect(o200kTokens(text).length).toBeLessThanOrEqual(cap);
    const reply = JSON.parse(text);
    const rest = await readOn(reply.continuation_id, reply.truncated.next_cursor);
    expect(reply.expert_analysis.raw_analysis + rest).toBe(long);
  });

  it('obeys a smaller cap of the operator', async () => {
    await start({ MAX_MCP_OUTPUT_TOKENS: '4000' });
    vendor.byDefault({ answer: long });
    const text = await textOf('chat', { prompt: 'Everything, please.' });
    expect(o200kTokens(text).length).toBeLessThanOrEqual(4_000 / 1.45);
  });
});

describe('any other reply', () => {
  it('that is too long is cut and says so', async () => {
    await start();
    const findings = 'word '.repeat(11_000);
    const step = {
      step: findings,
      step_number: 1,
      total_steps: 1,
      next_step_required: false,
      findings,
      use_assistant_model: false,
    };
    for (let n = 0; n < 3; n++) await textOf('debug', step);
    const text = await textOf('threads', { action: 'list' });
    expect(o200kTokens(text).length).toBeLessThanOrEqual(cap);
  });
});

describe('REPLY_FORMAT', () => {
  it('structured gives the same object as structured content', async () => {
    await start({ REPLY_FORMAT: 'structured' });
    const request = { name: 'chat', arguments: { prompt: 'hi' }, principal: principal(project.root) };
    const reply = await polylogue.product.host.call(request, new AbortController().signal);
    expect(reply.structured).toEqual(reply.document);
    expect(JSON.parse(reply.text)).toEqual(reply.document);
  });

  it('markdown gives the answer first, then metadata, files and the id', async () => {
    await start({ REPLY_FORMAT: 'markdown' });
    vendor.byDefault({ answer: 'The answer.' });
    const text = await textOf('chat', { prompt: 'hi', absolute_file_paths: ['a.ts'] });
    expect(text).toMatch(/^The answer\.\n\n## Metadata\n- status: success\n- tool_name: chat\n/);
    expect(text).toContain('## Files Processed\n- embedded: ');
    expect(text).toMatch(/## Continuation ID\n[0-9a-f-]{36}\n/);
  });

  it('markdown gives errors as what was wrong and what to do', async () => {
    await start({ REPLY_FORMAT: 'markdown' });
    const text = await textOf('chat', {});
    expect(text).toContain('prompt: missing');
    expect(text).toContain('resend the call');
  });
});
