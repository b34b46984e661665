import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { longestTurn } from '../../support/longest-turn.ts';
import { type Document, type TestProduct, testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const window = 32_000;
const body = (name: string, lines: number) =>
  Array.from(
    { length: lines },
    (_, n) => `  const step${n} = prepare('${name}', ${n}); // keeps what came before`,
  ).join('\n');
const moduleOf = (name: string, lines: number) =>
  `export class ${name}Service {\n  start() {\n${body(name, lines)}\n  }\n  stop() {\n${body(name, lines)}\n  }\n}\n`;

/** About 5 MB: 340 modules, as many tests, documents, settings and logs. */
function repository(): Record<string, string> {
  const files: Record<string, string> = {};
  for (let n = 0; n < 340; n++) {
    files[`src/module${n}.ts`] = moduleOf(`Part${n}`, 95);
    files[`test/module${n}.test.ts`] = moduleOf(`Check${n}`, 12);
  }
  files['src/payment-retry.ts'] = moduleOf('PaymentRetry', 40).replace('  stop() {', '  exponentialBackoff() {');
  files['docs/guide.md'] = Array.from(
    { length: 90 },
    (_, n) => `## Chapter ${n}\n\nIt must not fail in case ${n}.\n`,
  ).join('\n');
  files['config/settings.yaml'] = Array.from({ length: 3_000 }, (_, n) => `key${n}: value${n}`).join('\n');
  files['logs/server.log'] = Array.from({ length: 8_000 }, (_, n) => `2026-01-01 line ${n} all is well`).join('\n');
  files['named/wanted.ts'] = moduleOf('Wanted', 30);
  files['named/huge.ts'] = Array.from({ length: 300 }, (_, n) => `export function huge${n}() {\n${body('h', 8)}\n}`)
    .join('\n')
    .replace('huge77()', 'refundCustomer()');
  files['named/story.md'] = Array.from(
    { length: 400 },
    (_, n) => `## Part ${n}\n\n${'Something happened on the way and was told at length. '.repeat(6)}\n`,
  ).join('\n');
  return files;
}

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
let reply: Document;
let sent: string;
const ask = async (more: Record<string, unknown>) => {
  const answer = await polylogue.call('chat', { prompt: 'How does exponentialBackoff of payments work?', ...more });
  expect(answer.isError, JSON.stringify(answer.error)).toBe(false);
  sent = vendor.requests
    .at(-1)!
    .messages.map(message => message.text)
    .join('\n');
  return answer;
};

beforeAll(async () => {
  vendor = await startOpenAi({ window });
  project = await tempProject(repository());
  polylogue = await testProduct({
    root: project.root,
    env: {
      CUSTOM_API_URL: vendor.url,
      CUSTOM_API_KEY: 'test-key',
      CUSTOM_MODEL_NAME: 'any',
      CUSTOM_CONTEXT_WINDOW: String(window),
      DEFAULT_MODEL: 'custom:any',
    },
  });
  reply = await ask({ absolute_file_paths: ['.', 'named/wanted.ts'] });
}, 120_000);

afterAll(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

describe('a repository of 5 MB for a model with a window of 32,000 tokens', () => {
  it('is of that size', () => {
    const bytes = Object.values(repository()).reduce((sum, text) => sum + text.length, 0);
    expect(bytes).toBeGreaterThan(5_000_000);
  });

  it('obeys the window, and uses most of what there is for files', () => {
    const { budget } = reply.metadata;
    expect(vendor.requests[0]!.tokens + budget.answer).toBeLessThanOrEqual(window);
    expect(budget.files).toBeGreaterThan((window - budget.answer) * 0.6);
  });

  it('lets others have their turn meanwhile', async () => {
    const longest = await longestTurn(() => ask({ absolute_file_paths: ['.', 'named/wanted.ts'] }), 60);
    expect(longest).toBeLessThan(60);
  });

  it('sends the named file first and whole, then source that speaks of the question', () => {
    const embedded: string[] = reply.metadata.files.embedded;
    expect(embedded.slice(0, 2)).toEqual([project.path('named/wanted.ts'), project.path('src/payment-retry.ts')]);
    expect(embedded.filter(path => path.startsWith(project.path('src'))).length).toBeGreaterThan(0);
    expect(embedded.some(path => path.startsWith(project.path('logs')))).toBe(false);
  });

  it('outlines source that has no room, names its lines, and never drops anything without a word', () => {
    const { embedded, outlined, skipped } = reply.metadata.files;
    expect(outlined.length).toBeGreaterThan(10);
    expect(sent).toMatch(
      /--- BEGIN OUTLINE: \S+src\/module\d+\.ts \(\d+ lines, [^)]*\) ---\n1-\d+│ export class Part\d+Service/,
    );
    const [last] = skipped.filter((skip: { code: string }) => skip.code === 'over_budget').slice(-1);
    const more = Number(/and (\d+) more/.exec(last.reason)?.[1]);
    const counted = skipped.filter((skip: { code: string }) => skip.code === 'over_budget').length + more;
    expect(embedded.length + outlined.length + counted).toBeGreaterThanOrEqual(Object.keys(repository()).length - 1);
  });

  it('shows a large named file by its outline and the lines that the question is about', async () => {
    const answer = await ask({ prompt: 'What does refundCustomer do?', absolute_file_paths: ['named/huge.ts'] });
    expect(answer.metadata.files.outlined).toEqual([project.path('named/huge.ts')]);
    expect(sent).toContain('BEGIN OUTLINE');
    expect(sent).toMatch(/ \d+│ export function refundCustomer\(\) \{\n/);
    expect(answer.metadata.files.skipped[0].reason).toContain('only an outline and lines');
    expect(answer.status).toBe('partial');
  });

  it('sums up a long text by its parts, each with its lines', async () => {
    const answer = await ask({ prompt: 'Tell me of it.', absolute_file_paths: ['named/story.md'] });
    expect(answer.metadata.files.summarised).toEqual([project.path('named/story.md')]);
    expect(sent).toMatch(/--- BEGIN SUMMARY: \S+story\.md \(\d+ lines[^)]*\) ---\n1-\d+│ ## Part 0/);
  });

  it('looks through a long log for what the question is about without holding up others', async () => {
    const lines = Array.from(
      { length: 40_000 },
      (_, n) => `2026-01-01 12:00 request ${n} of payments took ${n % 90} ms`,
    );
    lines[31_415] = 'the elephant sat down on the payments';
    await project.write('named/long.log', lines.join('\n'));
    const question = { prompt: 'Where did the elephant sit?', absolute_file_paths: ['named/long.log'] };
    const longest = await longestTurn(() => ask(question), 150);
    expect(sent).toMatch(/31416│ the elephant sat down/);
    expect(longest).toBeLessThan(150);
  });

  it('embeds an outlined file whole when there is room for it later', async () => {
    await project.write('named/later.ts', moduleOf('Later', 400));
    const first = await ask({ absolute_file_paths: ['named/later.ts'] });
    expect(first.metadata.files.outlined).toEqual([project.path('named/later.ts')]);
    await project.write('named/later.ts', moduleOf('Later', 20));
    const id = first.continuation_offer.continuation_id;
    const second = await ask({ continuation_id: id, absolute_file_paths: ['named/later.ts'] });
    expect([...(second.metadata.files.embedded ?? []), ...(second.metadata.files.changed ?? [])]).toEqual([
      project.path('named/later.ts'),
    ]);
    expect(sent).toContain(`--- BEGIN FILE: ${project.path('named/later.ts')} (46 lines) ---`);
  });

  it('does not send the same outline twice', async () => {
    const first = await ask({ prompt: 'What is this?', absolute_file_paths: ['named/huge.ts'] });
    const id = first.continuation_offer.continuation_id;
    await ask({ prompt: 'What is this?', continuation_id: id, absolute_file_paths: ['named/huge.ts'] });
    expect(sent.split('BEGIN OUTLINE').length - 1).toBeLessThanOrEqual(2);
  });
});
