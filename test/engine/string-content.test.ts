import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';

/** DIAL has its deployments below the root, all others the version path. */
const served = /^\/(?:v1|openai\/deployments\/[^/]+)\/chat\/completions(?:\?|$)/;

/** A server of Chat Completions as many are written: `content` is a string, and nothing else is read. */
let server: Server;
let origin: string;
let bodies: string[];
let project: TempProject;

const verdict = '**Position:** support\n\nIt holds.\n\n## Confidence\n8/10: it was tried.';

beforeAll(async () => {
  project = await tempProject({ 'src/door.ts': 'export const door = "ajar";\n' });
  server = createServer(async (request, response) => {
    if (request.method === 'GET') {
      response.statusCode = /^\/(?:v1|openai)\/(?:models|deployments)/.test(request.url ?? '') ? 200 : 404;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'plain-model', object: 'model', created: 0 }] }));
      return;
    }
    const raw = await text(request);
    const { messages = [] }: { messages?: { role: string; content: unknown }[] } = JSON.parse(raw);
    const wrong = messages.findIndex(({ content }) => typeof content !== 'string');
    if (wrong >= 0 || !served.test(request.url ?? '')) {
      response.statusCode = wrong >= 0 ? 422 : 404;
      response.setHeader('content-type', 'application/json');
      const detail = [{ loc: ['body', 'messages', wrong, 'content'], msg: 'Input should be a valid string' }];
      response.end(JSON.stringify({ detail }));
      return;
    }
    bodies.push(raw);
    response.setHeader('content-type', 'text/event-stream');
    const event = (delta: object, finish: string | null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    response.end(`${event({ role: 'assistant', content: verdict }, null)}${event({}, 'stop')}data: [DONE]\n\n`);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1`;
});

afterAll(async () => {
  server.closeAllConnections();
  await Promise.all([new Promise(resolve => server.close(resolve)), project.dispose()]);
});

beforeEach(() => {
  bodies = [];
});

const wires: readonly (readonly [string, string, () => Record<string, string>])[] = [
  ['custom', 'custom:plain-model', () => ({ CUSTOM_API_URL: origin })],
  ['groq', 'groq:openai/gpt-oss-120b', () => ({ GROQ_API_KEY: 'k-1', GROQ_BASE_URL: origin })],
  ['moonshot', 'moonshot:kimi-k2.6', () => ({ MOONSHOT_API_KEY: 'k-1', MOONSHOT_BASE_URL: origin })],
  ['openrouter', 'openrouter:z-ai/glm-4.6', () => ({ OPENROUTER_API_KEY: 'k-1', OPENROUTER_BASE_URL: origin })],
  ['deepseek', 'deepseek:deepseek-v4-flash', () => ({ DEEPSEEK_API_KEY: 'k-1', DEEPSEEK_BASE_URL: origin })],
  ['zhipu', 'zhipu:glm-4.6', () => ({ ZHIPUAI_API_KEY: 'k-1', ZHIPU_BASE_URL: origin })],
  ['dial', 'dial:plain-model', () => ({ DIAL_API_KEY: 'k-1', DIAL_API_HOST: new URL(origin).origin })],
  [
    'openai, chat style',
    'openai:gpt-4.1',
    () => ({ OPENAI_API_KEY: 'k-1', OPENAI_BASE_URL: origin, OPENAI_API_STYLE: 'chat' }),
  ],
];

async function withProduct(env: Record<string, string>, work: (product: TestProduct) => Promise<void>): Promise<void> {
  const product = await testProduct({ root: project.root, env: { ...env, POLYLOGUE_STORE: 'memory' } });
  try {
    await work(product);
  } finally {
    await product.close();
  }
}

describe.each(wires)('a server behind %s that takes only strings', (_name, model, env) => {
  it('answers with files and in a thread, and what was sent before stays the same in the raw JSON', () =>
    withProduct(env(), async product => {
      const files = [project.path('src/door.ts')];
      const first = await product.call('chat', { prompt: 'What is the door?', model, absolute_file_paths: files });
      expect(first).toMatchObject({ isError: false, content: verdict });
      const { continuation_id } = first.continuation_offer;
      const next = await product.call('chat', { prompt: 'And the window?', model, continuation_id });
      expect(next).toMatchObject({ isError: false, content: verdict });
      const [one = '', two = ''] = bodies.map(body => body.slice(body.indexOf('"messages":')));
      const kept = one.slice(0, one.lastIndexOf('ajar') + 'ajar'.length);
      expect(kept).toContain('What is the door?');
      expect(two.slice(0, kept.length)).toBe(kept);
    }));
});

const withoutVersion = () => new URL(origin).origin;

const addresses: readonly (readonly [string, string, () => Record<string, string>])[] = [
  ['as its documents write it', 'custom:plain-model', () => ({ CUSTOM_API_URL: origin })],
  ['without its version path', 'custom:plain-model', () => ({ CUSTOM_API_URL: withoutVersion() })],
  ['that has no /responses', 'openai:gpt-5.1', () => ({ OPENAI_API_KEY: 'k-1', OPENAI_BASE_URL: origin })],
  ['with neither', 'openai:gpt-5.1', () => ({ OPENAI_API_KEY: 'k-1', OPENAI_BASE_URL: withoutVersion() })],
];

it.each(addresses)('an address %s serves chat, a workflow with its expert, and a consensus', (_name, model, env) =>
  withProduct({ ...env(), CUSTOM_MODEL_NAME: 'plain-model' }, async product => {
    expect(await product.call('chat', { prompt: 'Ajar?', model })).toMatchObject({ isError: false, content: verdict });
    const step = { step: 'Why is the door ajar?', total_steps: 1, step_number: 1, findings: 'It is.', model };
    const debug = await product.call('debug', {
      ...step,
      next_step_required: false,
      relevant_files: [project.path('src/door.ts')],
    });
    expect(debug).toMatchObject({ isError: false });
    expect(JSON.stringify(debug)).toContain('It holds.');
    const consensus = await product.call('consensus', {
      prompt: 'Close the door?',
      models: [
        { model, stance: 'for' },
        { model, stance: 'against' },
      ],
    });
    expect(consensus.isError).toBe(false);
    expect(bodies.length).toBe(5);
  }),
);

it('keeps lists, with their marks, for the vendors behind OpenRouter that want marks', () =>
  withProduct({ OPENROUTER_API_KEY: 'k-1', OPENROUTER_BASE_URL: origin }, async product => {
    const reply = await product.call('chat', { prompt: 'Marked?', model: 'openrouter:anthropic/claude-sonnet-4.5' });
    expect(reply.isError).toBe(true);
    expect(bodies).toEqual([]);
  }));

describe('the address of Anthropic as other programs write it', () => {
  it('answers, and the place that answered is kept and told', async () => {
    const fake = await startAnthropic();
    const written = fake.url.replace(/\/v1$/, '');
    await withProduct({ ...vendorEnv({ anthropic: written }), DEFAULT_MODEL: 'claude-sonnet-5' }, async product => {
      for (const prompt of ['One?', 'Two?'])
        expect(await product.call('chat', { prompt })).toMatchObject({ isError: false });
      const paths = fake.requests.map(({ path }) => path);
      expect(paths.filter(path => path === '/v1/messages')).toHaveLength(2);
      const { remark } = await product.product.models.ping('anthropic', AbortSignal.timeout(5_000));
      expect(remark).toBe(`ANTHROPIC_BASE_URL is used as ${fake.url}`);
    });
    await fake.close();
  });
});

it('a diagnosis says that an address of OpenAI has no /responses', () =>
  withProduct({ OPENAI_API_KEY: 'k-1', OPENAI_BASE_URL: origin }, async product => {
    const { listed, remark } = await product.product.models.ping('openai', AbortSignal.timeout(5_000));
    expect({ listed, remark }).toEqual({ listed: 1, remark: expect.stringContaining('/chat/completions is used') });
  }));

it('a model that the vendor does not have is not taken for a missing interface', () =>
  withProduct({ OPENAI_API_KEY: 'k-1', OPENAI_BASE_URL: origin, OPENAI_API_STYLE: 'responses' }, async product => {
    const reply = await product.call('chat', { prompt: 'Ajar?', model: 'openai:gpt-5.1' });
    expect(reply).toMatchObject({ isError: true, error: { status: 404 } });
    expect(bodies).toEqual([]);
  }));
