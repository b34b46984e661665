import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningVendor, startEveryVendor } from '../../../support/every-vendor.ts';
import { type TestProduct, testProduct } from '../../../support/product.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import { geminiSignature } from '../../../support/vendors/check-tools.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';

/** Servers of one's own are asked for lists that not all of them have. */
const refused = ({ violations }: FakeVendor) => violations.filter(line => line.startsWith('POST'));

describe("every vendor, deployments and servers of one's own among them", () => {
  let vendors: RunningVendor[];
  let project: TempProject;
  let product: TestProduct;
  beforeAll(async () => {
    project = await tempProject({ 'a.txt': 'alpha\n' });
    vendors = await startEveryVendor();
    const env = Object.assign({}, ...vendors.map(vendor => vendor.env));
    product = await testProduct({ root: project.root, env: { ...env, POLYLOGUE_TOOLSETS: 'core,agent' } });
  });
  afterAll(async () => {
    await product.close();
    for (const { fake } of vendors) await fake.close();
    await project.dispose();
  });

  it('works through the loop: calls, parallel calls, results in order, an answer, and a closing one without tools', async () => {
    const worked: string[] = [];
    for (const { id, fake, model } of vendors) {
      const read = { name: 'read_file', args: { path: 'a.txt' } };
      const list = { name: 'list_dir', args: {} };
      fake.script(
        { calls: [read], reasoning: 'First.' },
        { calls: [list, read], reasoning: 'Then.' },
        { answer: 'Read.' },
        { calls: [read], reasoning: 'Again.' },
        { answer: 'Enough.' },
      );
      const args = { task: 'Read it.', model: `${id}:${model}` };
      const reply = await product.call('agent', args);
      expect([reply.content, refused(fake)], `${id}: ${JSON.stringify(reply)}`).toEqual(['Read.', []]);
      const last =
        fake.requests
          .at(-1)
          ?.messages.map(({ text }) => text)
          .join('\n') ?? '';
      expect(last, id).toContain('alpha');
      const closed = await product.call('agent', { ...args, max_rounds: 1 });
      expect([closed.content, closed.stop_reason, refused(fake)], id).toEqual(['Enough.', 'max_rounds', []]);
      worked.push(id);
    }
    expect(worked).toHaveLength(vendors.length);
    expect(worked.length).toBeGreaterThanOrEqual(14);
  });

  /** What is behind them is not known to take thoughts, and some servers refuse a message that has any. */
  const wantNone = ['custom', 'dial', 'groq'];

  it('gets the thoughts of a round back with the next one, or is listed as wanting none', async () => {
    const thought = 'The file comes first.';
    const forms = [thought, Buffer.from(thought).toString('base64'), geminiSignature('read_file')];
    const without: string[] = [];
    for (const { id, fake, model } of vendors) {
      const read = { name: 'read_file', args: { path: 'a.txt' } };
      fake.script({ calls: [read], reasoning: thought }, { answer: 'Read.' });
      const task = { task: 'Read it.', model: `${id}:${model}`, thinking_mode: 'high' };
      expect(await product.call('agent', task), id).toMatchObject({ content: 'Read.' });
      const sent = JSON.stringify(fake.requests.at(-1)?.body);
      if (!forms.some(form => sent.includes(form))) without.push(id);
      expect(refused(fake), id).toEqual([]);
    }
    expect(without.toSorted()).toEqual(wantNone);
  });
});
