import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startMoonshot } from '../../support/vendors/start-moonshot.ts';

const sentence = (n: number) => `In year ${n} the town of ${n % 97} held a fair; nobody there kept an account of it.\n`;
const textOf = (bytes: number) => {
  const lines: string[] = [];
  for (let n = 0, size = 0; size < bytes; size += lines[n]!.length, n++) lines.push(sentence(n));
  return lines.join('');
};

const step = {
  step: 'When was the fair?',
  step_number: 1,
  total_steps: 1,
  next_step_required: false,
  findings: 'It is in the file.',
  use_assistant_model: true,
};

let google: FakeVendor;
let moonshot: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeAll(async () => {
  [google, moonshot] = await Promise.all([startGoogle(), startMoonshot()]);
  project = await tempProject({ 'long.txt': textOf(700_000) });
  polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ google: google.url, moonshot: moonshot.url }), MOONSHOT_ALLOWED_MODELS: 'kimi-k2.6' },
  });
}, 60_000);

afterAll(async () => {
  expect([...google.violations, ...moonshot.violations]).toEqual([]);
  await polylogue.close();
  await Promise.all([google.close(), moonshot.close(), project.dispose()]);
});

/** What of the named file was not sent whole. */
const cutIn = (reply: Document) => reply.metadata.files.skipped ?? [];

describe('a long file, where models of 262,144 tokens and of a million may be asked', () => {
  it.each([
    ['chat', { prompt: 'When was the fair?', absolute_file_paths: ['long.txt'] }],
    ['thinkdeep', { ...step, relevant_files: ['long.txt'] }],
    ['smart_file_query', { question: 'When was the fair?', file_path: 'long.txt' }],
  ])('goes whole to one that holds it beside an answer (%s)', async (tool, args) => {
    const reply = await polylogue.call(tool, args);
    expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
    expect(reply.metadata.files.embedded).toEqual([project.path('long.txt')]);
    expect(cutIn(reply)).toEqual([]);
  });

  it('is cut for the model that the call names', async () => {
    const named = { model: 'kimi-k2.6', prompt: 'When was the fair?', absolute_file_paths: ['long.txt'] };
    expect(cutIn(await polylogue.call('chat', named))).toMatchObject([{ code: 'over_budget' }]);
  });
});
