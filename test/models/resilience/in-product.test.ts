import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../../support/vendors/start-openrouter.ts';

let openai: FakeVendor;
let openrouter: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

async function start(env: Record<string, string> = {}): Promise<void> {
  const urls = vendorEnv({ openai: openai.url, openrouter: openrouter.url });
  polylogue = await testProduct({ root: project.root, env: { ...urls, ...env } });
}

beforeEach(async () => {
  [openai, openrouter, project] = await Promise.all([
    startOpenAi({ keys: ['test-key', 'new-key'] }),
    startOpenRouter(),
    tempProject(),
  ]);
});
afterEach(async () => {
  await polylogue.close();
  await Promise.all([openai.close(), openrouter.close(), project.dispose()]);
});

const asked = (vendor: FakeVendor) => vendor.requests.filter(({ dialect }) => dialect !== 'models').length;
const chat = (args: Record<string, unknown> = {}) => polylogue.call('chat', { prompt: 'Hi', model: 'gpt-5', ...args });

/** A call's page of the dashboard, once it tells of its end. */
async function timelineOf(reqId: string) {
  const daemon = await polylogue.product.openDaemon({ port: 0 });
  const page = async () => (await fetch(`${daemon.url}/calls/${reqId}`)).text();
  await expect.poll(page, { timeout: 15_000 }).toContain('API_ERROR');
  return { daemon, timeline: await page() };
}

describe('the product', () => {
  it('answers with the same model elsewhere, and tells of both attempts', async () => {
    await start();
    openai.byDefault({ fault: 'status', status: 401 });
    openrouter.byDefault({ answer: 'From elsewhere.' });
    const reply = await chat();
    expect(reply).toMatchObject({
      content: 'From elsewhere.',
      metadata: { provider_used: 'openrouter', model_requested: 'gpt-5', attempts: 2 },
    });
    expect(reply.metadata.attempt_log).toEqual([
      { model: 'openai:gpt-5', outcome: 'failed', class: 'auth', elapsed_ms: expect.any(Number) },
      { model: 'openrouter:openai/gpt-5', outcome: 'ok', elapsed_ms: expect.any(Number) },
    ]);
    expect(reply.metadata.warnings.join()).toContain('openai:gpt-5 gave no answer (auth)');
    const again = await chat();
    expect(again.metadata).toMatchObject({ attempts: 1, attempt_log: [{ outcome: 'skipped' }, { outcome: 'ok' }] });
    expect(asked(openai)).toBe(1);
  });

  it('tells of a breaker in the timeline of the call that tripped it, and in the logs under its id', async () => {
    await start({ OPENROUTER_API_KEY: '' });
    openai.script({ fault: 'status', status: 401 });
    const failed = await chat();
    const reqId = failed.metadata?.req_id ?? failed.error.req_id;
    const { daemon, timeline } = await timelineOf(reqId);
    expect(timeline).toMatch(/key rejected/);
    await daemon.close();
    await polylogue.product.close();
    const lines = (await readFile(join(polylogue.home, 'logs/breadcrumbs.jsonl'), 'utf8')).trimEnd().split('\n');
    const changes = lines.map(line => JSON.parse(line)).filter(({ type }) => type === 'breaker.change');
    expect(changes).toMatchObject([{ req_id: reqId, scope: 'key', from: 'closed', to: 'quarantined' }]);
  });

  it('remembers a refused key over a restart, until another is set or a listing succeeds', async () => {
    await start({ OPENROUTER_API_KEY: '' });
    openai.byDefault({ fault: 'status', status: 401 });
    expect((await chat()).error.class).toBe('auth');
    await expect
      .poll(async () => (await polylogue.product.models.health()).map(({ state }) => state))
      .toContain('quarantined');
    await polylogue.restart();
    expect((await chat()).error).toMatchObject({
      class: 'auth',
      next: expect.stringContaining('OPENAI_API_KEY'),
      data: { breaker: 'quarantined' },
    });
    expect(await polylogue.product.models.health()).toEqual([
      expect.objectContaining({ provider: 'openai', scope: 'key', state: 'quarantined', class: 'auth' }),
    ]);
    expect(asked(openai)).toBe(1);
    openai.byDefault({ answer: 'Again.' });
    await polylogue.product.models.ping('openai', new AbortController().signal);
    expect((await chat()).content).toBe('Again.');
    expect(JSON.stringify(await readFile(join(polylogue.home, 'threads.sqlite')))).not.toContain('test-key');
  });

  it('explains once that a provider is not asked, whose models are all candidates', async () => {
    await start({ OPENROUTER_API_KEY: '' });
    openai.byDefault({ fault: 'status', status: 401 });
    await chat();
    const { candidates, warnings } = await polylogue.product.models.explain({ category: 'balanced', needs: {} });
    expect(candidates.length).toBeGreaterThan(1);
    expect(warnings.filter(warning => warning.includes('openai is not asked'))).toHaveLength(1);
  });

  it('takes another model only when the caller allows it', async () => {
    await start({ OPENROUTER_API_KEY: '' });
    openai.byDefault({ answer: 'From another one.' });
    const missing = { fault: 'status', status: 404 } as const;
    openai.script(missing);
    expect((await chat()).error).toMatchObject({ class: 'bad_request', status: 404 });
    openai.script(missing);
    const reply = await chat({ allow_fallback: true });
    expect(reply).toMatchObject({ content: 'From another one.', metadata: { model_requested: 'gpt-5', attempts: 2 } });
    expect(reply.metadata).toMatchObject({ routing_reason: 'if gpt-5 fails', fallbacks: expect.any(Array) });
    openai.script(missing);
    expect((await chat({ model: 'auto', allow_fallback: false })).error).toMatchObject({ status: 404 });
  });

  it('answers a chat itself when it is told to and no model does', async () => {
    await start({ LOCAL_LAST_ANSWER: 'true', OPENROUTER_API_KEY: '' });
    openai.byDefault({ fault: 'status', status: 402 });
    const reply = await chat();
    expect(reply).toMatchObject({ isError: false, status: 'partial', metadata: { provider_used: 'nobody' } });
    expect(reply.content).toMatch(/no answer of a model/);
    openai.byDefault({ answer: 'Now.' });
    const next = await polylogue.call('chat', {
      prompt: 'And now?',
      continuation_id: reply.continuation_offer.continuation_id,
    });
    expect(next).toMatchObject({ content: 'Now.', metadata: { provider_used: 'openai' } });
    expect(JSON.stringify(next.metadata.warnings ?? [])).not.toContain('nobody');
  });

  it('says which of its limits make no sense', async () => {
    await start({
      MAX_CONCURRENT_PER_PROVIDER: 'openai=3,all of them,ollama=0,opnai=2',
      DENIED_MODELS: 'o3,gpt-4.1-miny',
    });
    const told = (name: string) => polylogue.log.filter(line => line.includes(name));
    await expect.poll(() => told('MAX_CONCURRENT_PER_PROVIDER')).toHaveLength(3);
    expect(told('MAX_CONCURRENT_PER_PROVIDER').at(-1)).toContain('Did you mean "openai"?');
    await expect
      .poll(() => told('DENIED_MODELS'))
      .toEqual([expect.stringMatching(/gpt-4\.1-miny.*nearest that is known is gpt-4\.1-mini\./)]);
  });

  it('takes no more at once than it may', async () => {
    await start({ MAX_CONCURRENT_PER_PROVIDER: 'openai=2' });
    let most = 0;
    openai.byDefault({ answer: () => 'Yes.', delayMs: 60 });
    const watching = setInterval(() => {
      most = Math.max(most, openai.openSockets());
    }, 5);
    await Promise.all(Array.from({ length: 6 }, () => chat()));
    clearInterval(watching);
    expect(asked(openai)).toBe(6);
    expect(most).toBe(2);
  });
});
