import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../../src/models/catalogue.ts';
import { type RunningVendor, startEveryVendor } from '../../support/every-vendor.ts';
import { type TestProduct, testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

describe('every vendor whose models call tools', () => {
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
      if (!loadCatalogue().find(each => each.provider === id && each.id === model)?.tools) continue;
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
      expect([reply.content, fake.violations], `${id}: ${JSON.stringify(reply)}`).toEqual(['Read.', []]);
      const last =
        fake.requests
          .at(-1)
          ?.messages.map(({ text }) => text)
          .join('\n') ?? '';
      expect(last, id).toContain('alpha');
      const closed = await product.call('agent', { ...args, max_rounds: 1 });
      expect([closed.content, closed.stop_reason, fake.violations], id).toEqual(['Enough.', 'max_rounds', []]);
      worked.push(id);
    }
    const able = ['anthropic', 'deepseek', 'google', 'groq', 'minimax', 'moonshot', 'ollama', 'openai', 'xai', 'zhipu'];
    expect(worked).toEqual(expect.arrayContaining(able));
  });
});
