import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

/** The machine may be busy. */
const patience = { timeout: 30_000 };

const tokens = { operator: 'operators-token-4Xy9Zq', scraper: 'scrapers-token-8Kd3Wn5Q', ann: 'tokenofann-7Hs2Lm4Pv6' };

let vendor: FakeVendor;
let project: TempProject;
let daemon: TestDaemon;

beforeAll(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  daemon = await testDaemon({
    root: project.root,
    env: { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'openai:gpt-5.2', POLYLOGUE_TOKEN: tokens.operator },
    tokens: [
      { name: 'prometheus', token: tokens.scraper, owner: 'local', read_only: true, toolsets: [] },
      { name: 'ann', token: tokens.ann, owner: 'ann' },
    ],
  });
});
afterAll(async () => {
  await daemon.close();
  await Promise.all([vendor.close(), project.dispose()]);
});

async function metrics(): Promise<string[]> {
  return (await (await daemon.ask('/metrics', { token: tokens.scraper })).text()).split('\n');
}

/** Name and labels → value, after a check that each line is one of the text format. */
function samplesOf(lines: readonly string[]): Map<string, number> {
  const label = '[a-zA-Z_]\\w*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"';
  const sample = new RegExp(`^([a-zA-Z_:][\\w:]*(?:\\{${label}(?:,${label})*\\})?) (-?[\\d.]+(?:e[+-]?\\d+)?)$`);
  const samples = new Map<string, number>();
  for (const line of lines.filter(each => each !== '' && !/^# (HELP|TYPE) [a-z_]+ /.test(each))) {
    const [, name = line, value] = sample.exec(line) ?? [];
    expect(samples.has(name), `${name} twice`).toBe(false);
    samples.set(name, Number(value));
    expect(Number(value), line).not.toBeNaN();
  }
  return samples;
}

describe('/metrics of a daemon', () => {
  it('tells what runs now and what it came to: sessions, calls, the queue, tokens, costs, breakers', async () => {
    const session = await daemon.connect('legacy', { token: tokens.operator });
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ when: promise, usage: { input: 1_000, output: 100 } });
    const call = session.call('chat', { prompt: 'Hi' });
    await expect.poll(() => vendor.requests.length, patience).toBe(1);
    const during = samplesOf(await metrics());
    expect(Object.fromEntries(during)).toMatchObject({
      polylogue_sessions: 1,
      'polylogue_daemon_calls{state="running"}': 1,
      'polylogue_daemon_calls{state="waiting"}': 0,
      'polylogue_calls_running{tool="chat"}': 1,
      'polylogue_questions_running{provider="openai"}': 1,
      polylogue_questions_waiting: 0,
    });
    resolve();
    await call;
    vendor.script({ fault: 'status', status: 401 });
    await session.call('chat', { prompt: 'Hi' });
    const after = samplesOf(await metrics());
    const who = 'provider="openai",model="gpt-5.2"';
    expect(Object.fromEntries(after)).toMatchObject({
      'polylogue_daemon_calls{state="running"}': 0,
      'polylogue_calls_total{tool="chat",status="continuation_available",code=""}': 1,
      'polylogue_calls_total{tool="chat",status="error",code="API_ERROR"}': 1,
      [`polylogue_tokens_total{${who},kind="input"}`]: 1_000,
      [`polylogue_tokens_total{${who},kind="output"}`]: 100,
      [`polylogue_model_attempts_total{${who},outcome="ok",class=""}`]: 1,
      'polylogue_breaker_state{provider="openai",model="",scope="key",state="quarantined"}': 1,
      'polylogue_call_duration_seconds_count{tool="chat"}': 2,
    });
    expect(after.get(`polylogue_cost_usd_total{${who}}`)).toBeGreaterThan(0);
    expect(after.has('polylogue_calls_running{tool="chat"}')).toBe(false);
    await session.close();
  });

  it('is there for the operator’s tokens alone, as text that nobody keeps', async () => {
    const own = await daemon.ask('/metrics', { token: tokens.operator });
    expect([own.status, own.headers.get('content-type'), own.headers.get('cache-control')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
      'no-store',
    ]);
    const head = await daemon.ask('/metrics', { token: tokens.operator, method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const statusOf = async (init: Parameters<TestDaemon['ask']>[1]) => (await daemon.ask('/metrics', init)).status;
    expect(await statusOf({})).toBe(401);
    expect(await statusOf({ token: 'not-a-token-of-anybody' })).toBe(401);
    expect(await statusOf({ token: tokens.ann })).toBe(403);
    expect(await statusOf({ token: tokens.operator, method: 'POST' })).toBe(405);
    expect(await statusOf({ token: tokens.operator, headers: { Origin: 'https://evil.example' } })).toBe(403);
  });
});
