import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, FakeVendorOptions } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function vendorWith(options: FakeVendorOptions): Promise<FakeVendor> {
  const vendor = await startOpenAi(options);
  open.push(vendor);
  return vendor;
}

async function productWith(config: Record<string, unknown>, env: Record<string, string> = {}) {
  const project: TempProject = await tempProject({});
  const polylogue = await testProduct({ root: project.root, config, env });
  open.push({
    async close() {
      await polylogue.close();
      await project.dispose();
    },
  });
  return polylogue;
}

const modelsOf = async (polylogue: Awaited<ReturnType<typeof productWith>>, id: string) =>
  (await polylogue.product.models.providers({ fresh: true })).find(provider => provider.id === id)?.models ?? [];

describe('servers of the configuration file', () => {
  it('are providers of their own: any number, each with its address, key and headers', async () => {
    const first = await vendorWith({ keys: ['k-1'], models: [{ id: 'llama-3', window: 16_384 }] });
    const second = await vendorWith({ keys: ['k-2'], models: [{ id: 'qwen3:32b', window: 65_536 }] });
    const polylogue = await productWith({
      endpoints: [
        { id: 'myvllm', names: ['mv'], api_url: first.url, api_key: 'k-1', headers: { 'x-team': 'blue' } },
        { id: 'box', api_url: `${second.url}/`, api_key: 'k-2' },
      ],
    });
    const a = await polylogue.call('chat', { prompt: 'Hi', model: 'myvllm:llama-3' });
    const b = await polylogue.call('chat', { prompt: 'Hi', model: 'box:qwen3:32b' });
    const c = await polylogue.call('chat', { prompt: 'Hi', model: 'mv:llama-3' });
    expect([a, b, c].map(({ metadata }) => metadata.provider_used)).toEqual(['myvllm', 'box', 'myvllm']);
    expect(first.requests.every(({ headers }) => headers['x-team'] === 'blue')).toBe(true);
    expect(await modelsOf(polylogue, 'myvllm')).toMatchObject([
      { id: 'llama-3', window: 16_384, windowAssumed: false },
    ]);
    expect([...first.violations, ...second.violations]).toEqual([]);
    expect(JSON.stringify([a, b, c])).not.toMatch(/assumed/);
  });

  it("may name models themselves, with what is known of them; that wins over the server's word", async () => {
    const vendor = await vendorWith({ keys: [], models: [{ id: 'seer', window: 9_000 }] });
    const polylogue = await productWith({
      endpoints: [
        {
          id: 'box',
          api_url: vendor.url,
          models: [
            'plain',
            { model_name: 'seer', aliases: ['eye'], context_window: 50_000, supports_images: true },
            { model_name: 'bad', intelligence_score: 99 },
          ],
          context_window: 20_000,
        },
      ],
    });
    const models = await modelsOf(polylogue, 'box');
    expect(models).toMatchObject([
      { id: 'plain', window: 20_000 },
      { id: 'seer', window: 50_000, input: ['text', 'image'], aliases: ['eye'] },
      { id: 'bad', window: 20_000 },
    ]);
    expect(polylogue.product.models.warnings).toMatchObject([expect.stringContaining('intelligence_score')]);
    expect(polylogue.log.join()).toContain('intelligence_score');
    const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'eye' });
    expect(reply.metadata).toMatchObject({ provider_used: 'box' });
  });

  it('say in the reply that a window was assumed, and where to set it', async () => {
    const vendor = await vendorWith({
      keys: [],
      models: [
        { id: 'quiet', window: undefined },
        { id: 'x', window: 5_000 },
      ],
    });
    const config = { endpoints: [{ id: 'box', api_url: vendor.url }] };
    const assumed = await (await productWith(config)).call('chat', { prompt: 'Hi', model: 'box:quiet' });
    expect(assumed.metadata.warnings.join()).toMatch(/box does not tell the context window of quiet; 32768 tokens/);
    const told = await productWith(config, { CUSTOM_CONTEXT_WINDOW: '40000' });
    expect((await modelsOf(told, 'box')).find(({ id }) => id === 'quiet')).toMatchObject({ window: 40_000 });
    const reply = await told.call('chat', { prompt: 'Hi', model: 'box:quiet' });
    expect(JSON.stringify(reply.metadata.warnings ?? [])).not.toContain('does not tell');
  });

  it('are disabled one by one: the others answer, and the log says what is wrong', async () => {
    const vendor = await vendorWith({ keys: [] });
    const polylogue = await productWith({
      endpoints: [
        { id: 'g', api_url: vendor.url },
        { id: 'broken', api_url: 'nowhere' },
        { id: 'sound', api_url: vendor.url, models: ['m'] },
      ],
    });
    const ids = (await polylogue.product.models.providers({ fresh: true })).map(({ id }) => id);
    expect(ids).toContain('sound');
    expect(ids).not.toContain('broken');
    expect(ids).not.toContain('g');
    expect(polylogue.log.join('\n')).toMatch(/"broken" \(config\.json\) is disabled: api_url must be/);
    expect(polylogue.log.join('\n')).toMatch(/"g" is disabled: "g" is the name of a provider/);
    expect((await polylogue.call('chat', { prompt: 'Hi', model: 'sound:m' })).isError).toBe(false);
  });

  it('count as local on this machine, and are not asked for anything where nothing may leave it', async () => {
    const vendor = await vendorWith({ keys: [], models: [{ id: 'm', window: 9_000 }] });
    const far = { id: 'far', api_url: 'http://models.example.com:9/v1', models: ['m'] };
    const polylogue = await productWith(
      { endpoints: [{ id: 'near', api_url: vendor.url }, far] },
      { LOCAL_ONLY: 'true' },
    );
    expect((await polylogue.call('chat', { prompt: 'Hi', model: 'near:m' })).isError).toBe(false);
    expect(await polylogue.call('chat', { prompt: 'Hi', model: 'far:m' })).toMatchObject({
      error: { code: 'MODEL_NOT_FOUND', class: 'restricted' },
    });
    expect(polylogue.log.join()).not.toContain('models of far');
  });
});

describe('LM Studio', () => {
  it("tells windows and kinds in a listing beside the dialect's own", async () => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.url ?? '');
      const bodies: Record<string, unknown> = {
        '/v1/models': { data: ['llama', 'seer', 'embedder', 'new'].map(id => ({ id, object: 'model' })) },
        '/api/v0/models': {
          data: [
            { id: 'llama', type: 'llm', state: 'loaded', max_context_length: 131_072, loaded_context_length: 8_192 },
            { id: 'seer', type: 'vlm', state: 'not-loaded', max_context_length: 32_768 },
            { id: 'embedder', type: 'embeddings', max_context_length: 2_048 },
          ],
        },
      };
      const body = bodies[request.url ?? ''];
      response.statusCode = body ? 200 : 404;
      response.end(JSON.stringify(body ?? { error: 'Unexpected endpoint' }));
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    open.push({
      async close() {
        server.closeAllConnections();
        await new Promise(resolve => server.close(resolve));
      },
    });
    const polylogue = await productWith({ endpoints: [{ id: 'studio', api_url: `http://127.0.0.1:${port}/v1` }] });
    expect(await modelsOf(polylogue, 'studio')).toMatchObject([
      { id: 'llama', window: 8_192, input: ['text'] },
      { id: 'seer', window: 32_768, input: ['text', 'image'] },
      { id: 'new', window: 32_768, windowAssumed: true },
    ]);
    expect(seen).toEqual(['/v1/models', '/api/v0/models']);
  });
});
