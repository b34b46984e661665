import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { searchWaitMs } from '../../../src/workspace/search-index/search-index.ts';
import { realClock } from '../../support/clock.ts';
import { type Document, type TestProduct, testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startEmbeddings } from '../../support/vendors/start-embeddings.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const filler = (name: string) =>
  Array.from({ length: 60 }, (_, n) => `export function ${name}${n}() {\n  return ${n};\n}\n`).join('\n');
const secret = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;

const real = realClock();
/** Calls wait for the index as long as a busy machine needs. */
const clock = { ...real, after: (ms: number, run: () => void) => real.after(ms === searchWaitMs ? 60_000 : ms, run) };

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
let sent: string;
async function ask(tool: string, args: Record<string, unknown>, watch = {}): Promise<Document> {
  const answer = await polylogue.call(tool, args, watch);
  expect(answer.isError, JSON.stringify(answer.error)).toBe(false);
  sent = vendor.requests
    .at(-1)!
    .messages.map(message => message.text)
    .join('\n');
  return answer;
}

beforeAll(async () => {
  vendor = await startOpenAi({ window: 32_000 });
  project = await tempProject({
    'src/shipping.ts': `${filler('early')}\n/** Chooses how a parcel travels. */\nexport function chooseCarrier(weight: number) {\n  return '${secret}' + weight;\n}\n\n${filler('late')}`,
    'src/other.ts': filler('other'),
    'src/small.ts': 'export const carrierNames = ["a"];\n',
    '.env': 'CARRIER=parcel\n',
  });
  polylogue = await testProduct({
    root: project.root,
    clock,
    env: {
      CUSTOM_API_URL: vendor.url,
      CUSTOM_API_KEY: 'test-key',
      CUSTOM_MODEL_NAME: 'any',
      CUSTOM_CONTEXT_WINDOW: '32000',
      DEFAULT_MODEL: 'custom:any',
    },
  });
});

afterAll(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

describe('a call with use_search', () => {
  it('sends the places that speak of the question, masked and with their lines, and tells which', async () => {
    const stages: string[] = [];
    const onProgress = ({ message }: { message?: string }) => stages.push(message ?? '');
    const reply = await ask(
      'chat',
      { prompt: 'How is a carrier chosen for a parcel?', use_search: true },
      { onProgress },
    );
    const { found, embedded } = reply.metadata.files;
    expect(found[0]).toMatch(/src\/shipping\.ts:\d+-\d+$/);
    expect(found).toContain(`${project.path('src/small.ts')}:1-1`);
    expect(embedded).toBeUndefined();
    const [, from, to] = /:(\d+)-(\d+)$/.exec(found[0]) ?? [];
    expect(sent).toContain(`--- BEGIN FILE: ${project.path('src/shipping.ts')} (lines ${from}-${to} of `);
    expect(sent).toMatch(/\d+│ export function chooseCarrier/);
    expect(sent).not.toContain('early1()');
    expect(sent).not.toContain(secret);
    expect(sent).toContain('[masked:');
    expect(stages).toContain('indexing 4 of 4');
  });

  it('does not send a place again that stands in the prompt, and sees an edit at once', async () => {
    const first = await ask('chat', { prompt: 'What is chooseCarrier?', use_search: true });
    const id = first.continuation_offer.continuation_id;
    const second = await ask('chat', { prompt: 'And chooseCarrier again?', use_search: true, continuation_id: id });
    expect((second.metadata.files?.found ?? []).join()).not.toContain('shipping.ts');
    expect(sent.split('export function chooseCarrier').length - 1).toBe(1);
    await project.write('src/small.ts', 'export const zeppelinTimetable = 1;\n');
    const third = await ask('chat', { prompt: 'Is there a zeppelin timetable?', use_search: true });
    expect(third.metadata.files.found).toEqual([`${project.path('src/small.ts')}:1-1`]);
    await project.write('src/small.ts', 'export const carrierNames = ["a"];\n');
  });

  it('leaves a file alone that is named: it is there whole', async () => {
    const files = [project.path('src/small.ts')];
    const reply = await ask('chat', { prompt: 'carrierNames?', use_search: true, absolute_file_paths: files });
    expect(reply.metadata.files.embedded).toEqual(files);
    expect((reply.metadata.files.found ?? []).join()).not.toContain('small.ts');
  });

  it('says so when nothing is found', async () => {
    const reply = await ask('chat', { prompt: 'Xylophone?', use_search: true });
    expect(reply.metadata.files?.found).toBeUndefined();
    expect(reply.metadata.warnings.join()).toContain('use_search found nothing');
  });

  it('works in workflows and panels, and does nothing unless it is asked for', async () => {
    const step = { step: 'How is a carrier chosen?', step_number: 1, total_steps: 1, next_step_required: false };
    await ask('analyze', { ...step, findings: 'chooseCarrier', relevant_files: ['src/other.ts'], use_search: true });
    expect(sent).toMatch(/\d+│ export function chooseCarrier/);
    const models = [{ model: 'custom:any' }, { model: 'custom:any', stance: 'against' }];
    const panel = await ask('consensus', { prompt: 'Is chooseCarrier right?', models, use_search: true });
    expect(panel.metadata.files.found[0]).toContain('src/shipping.ts:');
    await ask('chat', { prompt: 'How is a carrier chosen for a parcel?' });
    expect(sent).not.toContain('chooseCarrier');
  });
});

describe('a call with use_search where EMBEDDING_MODEL is set', () => {
  it('finds by meaning, and goes on by words when that model fails', async () => {
    const embeddings = await startEmbeddings();
    const place = await tempProject({
      'src/refund.ts': 'export function refundPayment(order: string) {\n  return order;\n}\n',
      'src/other.ts': filler('other'),
    });
    const withVectors = await testProduct({
      root: place.root,
      clock,
      env: {
        CUSTOM_API_URL: vendor.url,
        CUSTOM_API_KEY: 'test-key',
        CUSTOM_MODEL_NAME: 'any',
        CUSTOM_CONTEXT_WINDOW: '32000',
        DEFAULT_MODEL: 'custom:any',
        OPENAI_API_KEY: 'test-key',
        OPENAI_BASE_URL: embeddings.url,
        EMBEDDING_MODEL: 'openai:text-embedding-3-small',
      },
    });
    const first = await withVectors.call('chat', { prompt: 'Reimbursement?', use_search: true });
    expect(first.metadata.files.found[0]).toBe(`${place.path('src/refund.ts')}:1-3`);
    embeddings.fail = 400;
    await place.write('src/new.ts', 'export const brandNewThing = 1;\n');
    const second = await withVectors.call('chat', { prompt: 'brandNewThing?', use_search: true });
    expect(second.metadata.files.found).toEqual([`${place.path('src/new.ts')}:1-1`]);
    expect(second.metadata.warnings.join()).toContain('words alone decide');
    await withVectors.close();
    await embeddings.close();
    await place.dispose();
  });
});

describe('places that a search found', () => {
  it('come after named files, and what has no room is told', async () => {
    await project.write(
      'src/wide.ts',
      `/* wide */ export const wideTable = [\n${'  "wideTable row of many",\n'.repeat(60)}];\n`,
    );
    for (let n = 0; n < 30; n++) {
      await project.write(
        `src/wide${n}.ts`,
        `export function wideTable${n}() {\n${'  // wideTable row of many words\n'.repeat(80)}}\n`,
      );
    }
    await project.write('src/named.ts', filler('named'));
    const args = { prompt: 'wideTable?', use_search: true, absolute_file_paths: [project.path('src/named.ts')] };
    const reply = await ask('chat', args);
    const { embedded, found, skipped } = reply.metadata.files;
    expect(embedded).toEqual([project.path('src/named.ts')]);
    expect(found.length).toBeGreaterThan(5);
    expect(skipped[0]).toMatchObject({ code: 'over_budget', reason: expect.stringContaining('use_search') });
    expect(sent.indexOf('named.ts')).toBeLessThan(sent.indexOf('src/wide'));
    const { budget } = reply.metadata;
    expect(vendor.requests.at(-1)!.tokens + budget.answer).toBeLessThanOrEqual(32_000);
  });
});
