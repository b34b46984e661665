import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningVendor, startEveryVendor } from '../../support/every-vendor.ts';
import { paragraph, pdfFile, sheetFile, textCell, wordFile } from '../../support/office-files.ts';
import { testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const files = {
  'report.pdf': pdfFile('First page.', 'The bridge of Ostrava closes on Friday.'),
  'letter.docx': wordFile(paragraph('Dear reader,') + paragraph('The bridge of Ostrava closes on Friday.')),
  'plan.xlsx': sheetFile({ Plan: [textCell('A1', 'The bridge of Ostrava closes on Friday.')] }),
};

let vendors: RunningVendor[];
let project: TempProject;

beforeAll(async () => {
  project = await tempProject({ 'note.txt': 'A note.\n' });
  for (const [name, bytes] of Object.entries(files)) await writeFile(project.path(name), bytes);
  vendors = await startEveryVendor();
});

afterAll(async () => {
  await Promise.all(vendors.map(({ fake }) => fake.close()));
  await project.dispose();
});

const fileNames = Object.keys(files);

it('reads a PDF, a DOCX and an XLSX with the key of each vendor alone', async () => {
  const table: string[] = [];
  for (const { id, fake, model, env } of vendors) {
    const product = await testProduct({ root: project.root, env });
    for (const name of fileNames) {
      const reply = await product.call('chat', {
        prompt: 'What closes on Friday?',
        absolute_file_paths: [name],
        model: `${id}:${model}`,
      });
      expect(reply.isError, `${id} ${name} ${JSON.stringify(reply.error)}`).toBe(false);
      expect(reply.metadata.files.embedded, id).toEqual([project.path(name)]);
      const sent = fake.requests.at(-1)!.messages.map(({ text }) => text);
      expect(sent.join('\n'), `${id} ${name}`).toContain('The bridge of Ostrava closes on Friday.');
      expect(sent.join('\n')).toContain(`--- BEGIN DOCUMENT: ${project.path(name)}`);
    }
    // Custom endpoints are asked in several ways what they are.
    expect(fake.violations.filter(said => !said.startsWith('GET '))).toEqual([]);
    table.push(`${id.padEnd(12)} ${fileNames.join(', ')}`);
    await product.close();
  }
  process.stdout.write(`${table.join('\n')}\n`);
  expect(vendors.length).toBeGreaterThanOrEqual(12);
}, 120_000);

describe('a document that cannot be read here', () => {
  it.each([
    ['scan.pdf', pdfFile('', ''), 'pages may be scans'],
    ['broken.docx', Buffer.from('PK\0'), 'cannot be read as DOCX'],
    ['old.doc', Buffer.from('\xd0\xcf\x11\xe0\0'), 'Save it as PDF, DOCX'],
  ])('is told before a model is paid (%s)', async (name, bytes, reason) => {
    await writeFile(project.path(name), bytes);
    const openai = await startOpenAi();
    const env = { OPENAI_API_KEY: 'test-key', OPENAI_BASE_URL: openai.url };
    const product = await testProduct({ root: project.root, env });
    const reply = await product.call('chat', { prompt: 'What?', absolute_file_paths: [name] });
    expect(reply).toMatchObject({ isError: true, error: { message: expect.stringContaining(reason) } });
    expect(openai.requests).toEqual([]);
    const other = await product.call('chat', { prompt: 'What?', absolute_file_paths: [name, 'note.txt'] });
    expect(other.metadata.files.skipped).toMatchObject([{ path: name, reason: expect.stringContaining(reason) }]);
    await product.close();
    await openai.close();
  });
});
