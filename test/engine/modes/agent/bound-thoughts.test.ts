import { expect, it } from 'vitest';
import { testProduct, vendorEnv } from '../../../support/product.ts';
import { tempProject } from '../../../support/temp-project.ts';
import { startAnthropic } from '../../../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../../../support/vendors/start-open-ai.ts';

const reading = (path: string) => ({ calls: [{ name: 'read_file', args: { path } }], reasoning: `I read ${path}.` });

it.each(['claude-opus-5-5', 'claude-haiku-5-5', 'claude-fable-5-1', 'claude-opus-4-8'])(
  '%s goes on when a long result is cut that it thought about',
  async model => {
    const vendor = await startAnthropic();
    const project = await tempProject({ 'big.txt': 'a line of some length\n'.repeat(1_200), 'small.txt': 'x\n' });
    const env = { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent' };
    const product = await testProduct({ root: project.root, env });
    vendor.script(reading('big.txt'), reading('small.txt'), reading('small.txt'), { answer: 'Done.' });
    expect(await product.call('agent', { task: 'Read.', model: `anthropic:${model}` })).toMatchObject({
      content: 'Done.',
    });
    expect(vendor.violations).toEqual([]);
    const bodies = vendor.requests.map(({ body }) => JSON.stringify(body));
    expect(bodies.map(body => body.includes('"prefix_mismatch_behavior":"drop_block"'))).toEqual(
      bodies.map((_, at) => at > 0 && model !== 'claude-opus-4-8'),
    );
    await Promise.all([product.close(), vendor.close(), project.dispose()]);
  },
);

it('a model that always thinks is given no tools through Chat Completions: another one works, or the way is told', async () => {
  const vendor = await startOpenAi();
  const project = await tempProject();
  const env = { ...vendorEnv({ openai: vendor.url }), OPENAI_API_STYLE: 'chat', POLYLOGUE_TOOLSETS: 'core,agent' };
  const product = await testProduct({ root: project.root, env });
  vendor.byDefault({ answer: 'Done.' });
  expect(await product.call('agent', { task: 'Look.' })).toMatchObject({ content: 'Done.' });
  expect(JSON.stringify(vendor.requests.map(({ body }) => body))).not.toContain('gpt-6.2-sol');
  const named = await product.call('agent', { task: 'Look.', model: 'openai:gpt-6.1-sol' });
  expect(JSON.stringify(named)).toMatch(/calls tools through \/responses alone.*Set OPENAI_API_STYLE/);
  expect(vendor.violations).toEqual([]);
  await Promise.all([product.close(), vendor.close(), project.dispose()]);
});
