import { afterEach, describe, expect, it } from 'vitest';
import { connectHttp } from '../support/http-session.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const open: { project?: TempProject; vendor?: FakeVendor; collector?: OtlpReceiver; product?: TestProduct } = {};
afterEach(async () => {
  await open.product?.close();
  await open.vendor?.close();
  await open.collector?.close();
  await open.project?.dispose();
});

async function start(env: (collector: string) => Record<string, string>) {
  const project = await tempProject({ 'a.ts': 'export const answer = 42;\n' });
  const vendor = await startOpenAi();
  const collector = await startOtlpReceiver();
  const settings = { ...vendorEnv({ openai: vendor.url }), ...env(collector.url) };
  const product = await testProduct({ root: project.root, env: settings });
  Object.assign(open, { project, vendor, collector, product });
  return { project, vendor, collector, product };
}

/** The newest call and its attempts. */
function traceOf({ spans }: OtlpReceiver) {
  const call = spans.find(({ name }) => name.startsWith('tools/call'));
  return { call, attempts: spans.filter(({ parentSpanId }) => parentSpanId === call?.spanId) };
}

const usage = { input: 200, output: 30, reasoning: 10, cacheRead: 50 };
const question = { prompt: 'What is PROMPTTEXT?', model: 'openai:gpt-5.2', absolute_file_paths: ['a.ts'] };

describe('traces', () => {
  it('tell of a call and its attempts by the conventions for MCP and generative AI, without a text', async () => {
    const { product, vendor, collector, project } = await start(url => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/`,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-team=a%20b,authorization=Bearer%20CollectorToken1',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_SERVICE_NAME: 'my-polylogue',
    }));
    vendor.script({ fault: 'status', status: 503 }, { answer: 'It is ANSWERTEXT.', usage });
    const files = [project.path('a.ts')];
    const reply = await product.call('chat', { ...question, absolute_file_paths: files });
    await product.product.close();

    expect(collector.violations).toEqual([]);
    const [request] = collector.requests;
    expect(request?.path).toBe('/v1/traces');
    expect(request?.headers).toMatchObject({ 'x-team': 'a b', authorization: 'Bearer CollectorToken1' });
    const { call, attempts } = traceOf(collector);
    expect(call).toMatchObject({
      name: 'tools/call chat',
      kind: 2,
      status: 0,
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'chat',
        'polylogue.req_id': reply.metadata.req_id,
        'polylogue.owner': 'local',
        'polylogue.client': 'test',
        'polylogue.files.sent': 1,
      },
      resource: {
        'service.name': 'my-polylogue',
        'service.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
        'deployment.environment.name': 'test',
      },
    });
    const vendorWords = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-5.2',
    };
    expect(attempts).toMatchObject([
      {
        name: 'chat gpt-5.2',
        kind: 3,
        status: 2,
        traceId: call?.traceId,
        attributes: {
          ...vendorWords,
          'polylogue.attempt': 1,
          'polylogue.outcome': 'retry',
          'http.response.status_code': 503,
        },
      },
      {
        kind: 3,
        status: 0,
        traceId: call?.traceId,
        attributes: {
          ...vendorWords,
          'polylogue.attempt': 2,
          'gen_ai.request.stream': true,
          'gen_ai.response.finish_reasons': ['stop'],
          'gen_ai.conversation.id': reply.continuation_offer.continuation_id,
          'gen_ai.usage.input_tokens': 200,
          'gen_ai.usage.output_tokens': 30,
          'gen_ai.usage.reasoning.output_tokens': 10,
          'gen_ai.usage.cache_read.input_tokens': 50,
        },
      },
    ]);
    expect(attempts[0]?.attributes['error.type']).toEqual(expect.any(String));
    expect(collector.requests.map(({ body }) => body).join('')).not.toMatch(/PROMPTTEXT|ANSWERTEXT|answer = 42/);
  });

  it('hold what was asked and answered where the operator wants it, secrets masked', async () => {
    const { product, vendor, collector } = await start(url => ({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/custom/path`,
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
    }));
    vendor.script({ answer: 'It is ANSWERTEXT with ghp_cAnArY7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0Js.' });
    await product.call('chat', { prompt: question.prompt, model: question.model });
    await product.product.close();
    expect(collector.violations).toEqual([]);
    expect(collector.requests[0]?.path).toBe('/custom/path');
    const [attempt] = traceOf(collector).attempts;
    const asked = JSON.parse(String(attempt?.attributes['gen_ai.input.messages']));
    expect(asked.at(0)).toMatchObject({ role: 'system', parts: [{ type: 'text', content: expect.any(String) }] });
    expect(JSON.stringify(asked)).toContain('PROMPTTEXT');
    expect(JSON.parse(String(attempt?.attributes['gen_ai.output.messages']))).toEqual([
      {
        role: 'assistant',
        parts: [{ type: 'text', content: expect.stringMatching(/^It is ANSWERTEXT with \[masked:github_token:/) }],
        finish_reason: 'stop',
      },
    ]);
  });

  it('tell of a call that failed by its code, and of a model that was not asked', async () => {
    const { product, collector } = await start(url => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url }));
    await product.call('chat', { prompt: 'Hi', model: 'no-such-model' });
    await product.product.close();
    const { call, attempts } = traceOf(collector);
    expect(call).toMatchObject({
      status: 2,
      attributes: {
        'error.type': 'tool_error',
        'polylogue.error.code': 'MODEL_NOT_FOUND',
        'polylogue.status': 'error',
      },
    });
    expect(attempts).toEqual([]);
  });

  const [traceId, spanId, other] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7', 'b7ad6b7169203331'];
  const inHeader = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: 'rojo=1,congo=2' };
  const inMeta = { traceparent: `00-${traceId}-${other}-01` };

  it('go on with the caller’s own: of the call itself first, else of the request that brought it', async () => {
    const { product, collector } = await start(url => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OFFLINE: 'true' }));
    const daemon = await product.product.openDaemon({ port: 0 });
    const json = { 'Content-Type': 'application/json' };
    const call = (headers: Record<string, string>) =>
      fetch(`${daemon.url}/api/tools/version`, { method: 'POST', headers: { ...json, ...headers }, body: '{}' });
    const traced = (headers: Record<string, string>) => (input: string | URL | Request, init?: RequestInit) => {
      const all = new Headers(init?.headers);
      for (const [name, value] of Object.entries(headers)) all.set(name, value);
      return fetch(input, { ...init, headers: all });
    };
    await call(inHeader);
    for (const era of ['modern', 'legacy'] as const) {
      const session = await connectHttp(daemon.url, era, { fetch: traced(inHeader) });
      await session.client.callTool({ name: 'version', arguments: {}, _meta: inMeta });
      await session.close();
    }
    for (const traceparent of [
      `00-${'0'.repeat(32)}-${spanId}-01`,
      `ff-${traceId}-${spanId}-01`,
      `00-${traceId}-${spanId}-01-more`,
      `00-${traceId.toUpperCase()}-${spanId}-01`,
      'x'.repeat(9_000),
    ]) {
      expect((await call({ traceparent })).status).toBe(200);
    }
    // Who records nothing himself is not recorded here either.
    await call({ traceparent: `00-${traceId}-${spanId}-00` });
    await call({ traceparent: `cc-${traceId}-${spanId}-01-of-a-later-version` });
    await daemon.close();
    await product.product.close();

    expect(collector.violations).toEqual([]);
    const linked = { traceId, parentSpanId: other, links: [`${traceId} ${spanId}`] };
    expect(collector.spans).toMatchObject([
      { name: 'tools/call version', traceId, parentSpanId: spanId, traceState: 'rojo=1,congo=2', links: [] },
      linked,
      linked,
      ...Array.from({ length: 5 }, () => ({ links: [], traceId: expect.not.stringContaining(traceId) })),
      { traceId, parentSpanId: spanId, links: [] },
    ]);
    const bare = collector.spans.slice(3, 8).map(({ parentSpanId }) => parentSpanId);
    expect(bare).toEqual(Array.from({ length: 5 }, () => undefined));
  });

  it('are those of the operator’s sampler where that leaves callers no say', async () => {
    const env = { OTEL_TRACES_SAMPLER: 'always_on', OFFLINE: 'true' };
    const { product, collector } = await start(url => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env }));
    const trace = { parent: `00-${traceId}-${spanId}-00` };
    const principal = { owner: 'local', root: product.product.root };
    await product.product.host.call({ name: 'version', arguments: {}, principal, trace }, new AbortController().signal);
    await product.product.close();
    expect(collector.spans).toMatchObject([{ traceId, parentSpanId: spanId }]);
  });

  it.each<[string, Record<string, string>]>([
    ['nothing is set', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    ['they are disabled', { OTEL_SDK_DISABLED: 'true' }],
    ['another exporter than OTLP is none', { OTEL_TRACES_EXPORTER: 'none' }],
    ['no call is to be sampled', { OTEL_TRACES_SAMPLER_ARG: '0' }],
  ])('are not sent where %s', async (_why, env) => {
    const { product, collector } = await start(url => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env }));
    expect((await product.call('version')).status).toBe('success');
    await product.product.close();
    expect(collector.requests).toEqual([]);
  });

  it('fail no call when the collector refuses or is not there; the operator is told once', async () => {
    const { product, collector } = await start(url => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url }));
    collector.answer(400);
    for (let call = 0; call < 3; call++) expect((await product.call('version')).isError).toBe(false);
    await product.restart();
    await collector.close();
    expect((await product.call('version')).isError).toBe(false);
    const began = performance.now();
    await product.product.close();
    expect(performance.now() - began).toBeLessThan(30_000);
    const told = product.log.filter(line => line.includes('sink traces failed'));
    expect(told.length).toBeGreaterThanOrEqual(1);
    expect(told.length).toBeLessThanOrEqual(2);
  });
});
