import { spawn } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const script = new URL('../../scripts/live/live.ts', import.meta.url).pathname;

let openai: FakeVendor;
let anthropic: FakeVendor;

beforeEach(async () => {
  openai = await startOpenAi();
  anthropic = await startAnthropic();
});

afterEach(async () => {
  await openai.close();
  await anthropic.close();
});

function live(env: Record<string, string>): Promise<{ code: number | null; out: string }> {
  return new Promise(resolve => {
    const child = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', chunk => {
        out += chunk;
      });
    }
    child.on('close', code => resolve({ code, out }));
  });
}

const keys = () => ({
  RUN_REAL_AI_TESTS: '1',
  OPENAI_API_KEY: 'test-key',
  OPENAI_BASE_URL: openai.url,
  ANTHROPIC_API_KEY: 'test-key',
  ANTHROPIC_BASE_URL: anthropic.url,
});

describe('npm run test:live', () => {
  it('wants to be told that it may spend money', async () => {
    const { code, out } = await live({});
    expect(code).toBe(2);
    expect(out).toContain('RUN_REAL_AI_TESTS=1');
  });

  it('asks one model of each provider with a key, and names those without', async () => {
    openai.byDefault({ answer: 'Paris.' });
    anthropic.byDefault({ answer: 'Paris' });
    const { code, out } = await live(keys());
    expect(out).toMatch(/ok {2}openai:\S+ \(plain\)/);
    expect(out).toMatch(/ok {2}openai:\S+ \(corrected\)/);
    expect(out).toMatch(/ok {2}anthropic:\S+ \(plain\)/);
    expect(out).toMatch(/\(effort\)|\(budget\)/);
    expect(out).toContain('not configured (CUSTOM_API_URL');
    expect(out).toMatch(/\d+ passed, 0 failed/);
    expect(code).toBe(0);
    expect([...openai.violations, ...anthropic.violations]).toEqual([]);
  });

  it('fails when a model does not know', async () => {
    openai.byDefault({ answer: 'Lyon' });
    anthropic.byDefault({ answer: 'Paris' });
    const { code, out } = await live(keys());
    expect(out).toContain('it said: Lyon');
    expect(code).toBe(1);
  });
});
