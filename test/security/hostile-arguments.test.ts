import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ownTime } from '../support/own-time.ts';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeAll(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'a.ts': 'export const a = 1;\n' });
  polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5.2' },
  });
});

afterAll(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const step = { step: 'Look.', step_number: 1, total_steps: 2, next_step_required: true, findings: 'None.' };
const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const many = (count: number) => Array.from({ length: count }, (_, index) => `file-${index}`);
const paid = () => vendor.requests.filter(({ dialect }) => dialect !== 'models').length;

describe('arguments that would cost the stack or seconds', () => {
  it.each<[string, string, Record<string, unknown>, string, string]>([
    [
      'nested deeply',
      'debug',
      { ...step, issues_found: [{ a: nested(20_000) }] },
      'INVALID_INPUT_FORMAT',
      'issues_found',
    ],
    [
      'nested deeply in a field nobody knows',
      'chat',
      { prompt: 'x', more: nested(50_000) },
      'INVALID_INPUT_FORMAT',
      'more',
    ],
    [
      'nested deeply within a text',
      'debug',
      { ...step, issues_found: `[{"a":${'['.repeat(9_000)}${']'.repeat(9_000)}}]` },
      'INVALID_INPUT_FORMAT',
      'issues_found',
    ],
    ['a million files', 'chat', { prompt: 'x', absolute_file_paths: many(1_000_000) }, 'LIMIT', 'absolute_file_paths'],
    ['a million checked files', 'debug', { ...step, files_checked: many(1_000_000) }, 'LIMIT', 'files_checked'],
    [
      'ten megabytes within a list',
      'debug',
      { ...step, issues_found: [{ d: 'x'.repeat(10_000_000) }] },
      'LIMIT',
      'issues_found',
    ],
  ])('are refused at once: %s', async (_what, tool, args, code, field) => {
    const before = paid();
    const began = ownTime();
    const reply = await polylogue.call(tool, args);
    expect(ownTime() - began).toBeLessThan(2_000);
    expect(reply).toMatchObject({ isError: true, error: { code } });
    expect(reply.error.validation_errors[0].field).toBe(field);
    expect(reply.error.next.length).toBeGreaterThan(10);
    expect(paid()).toBe(before);
  });

  it('are refused at once: a hundred thousand fields, a name of ten megabytes, a tool of that name', async () => {
    const fields = Object.fromEntries([['prompt', 'x'], ...many(100_000).map(name => [name, 1] as const)]);
    const long = 'y'.repeat(10_000_000);
    for (const [tool, args] of [
      ['chat', fields],
      ['chat', { prompt: 'x', [long]: 1 }],
      [long, {}],
    ] as const) {
      const began = ownTime();
      const reply = await polylogue.call(tool, args);
      expect(ownTime() - began).toBeLessThan(2_000);
      expect(reply.isError).toBe(true);
      expect(reply.error.class).toBe('validation');
      expect(JSON.stringify(reply).length).toBeLessThan(3_000);
    }
  });

  it('leave what callers really send alone', async () => {
    const issues = many(200).map(name => ({
      severity: 'low',
      description: `Something about ${name}.`,
      at: [{ line: 1 }],
    }));
    const reply = await polylogue.call('debug', { ...step, files_checked: many(2_000), issues_found: issues });
    expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
    expect(reply.files_not_found).toHaveLength(2_000);
  });
});

describe('arguments with words that mean something to JavaScript', () => {
  it('change nothing but themselves', async () => {
    const args = JSON.parse('{"prompt":"x","__proto__":{"polluted":1},"constructor":1,"toString":2}');
    const reply = await polylogue.call('chat', args);
    expect(reply.isError).toBe(false);
    expect(reply.metadata.warnings).toHaveLength(3);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
    const issue = JSON.parse('{"__proto__":{"polluted":1},"severity":"low","description":"d"}');
    expect((await polylogue.call('debug', { ...step, issues_found: [issue] })).isError).toBe(false);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});

describe('a text with half of a surrogate pair', () => {
  it('reaches the vendor whole, and the next prompt begins with the same bytes', async () => {
    const first = await polylogue.call('chat', { prompt: 'half \ud83d of \u0000 one' });
    expect(first.isError).toBe(false);
    const one = vendor.requests.at(-1)!;
    expect(JSON.stringify(one.body)).not.toMatch(/\\ud83d/);
    vendor.script({ answer: 'Two.' });
    await polylogue.call('chat', { prompt: 'And?', continuation_id: first.continuation_offer.continuation_id });
    expect(vendor.requests.at(-1)!.canonical.startsWith(one.canonical)).toBe(true);
  });
});
