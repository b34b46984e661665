import { describe, expect, it } from 'vitest';
import { promptSizeLimit, routingPolicy, storePlace } from '../../src/config/derived-settings.ts';
import { loadConfig } from '../../src/config/load.ts';
import { options } from '../../src/config/options.ts';

function valuesOf(env: Record<string, string>, document = '{}') {
  const place = { homeDir: '/h', platform: 'linux', cwd: '/w' };
  const readFile = (path: string) => (path.endsWith('config.json') ? document : undefined);
  return loadConfig({ tables: { app: options }, env, argvFlags: {}, ...place, readFile }).values.app;
}

describe('the size of one text field', () => {
  it.each([
    [{}, 60_000],
    [{ MAX_MCP_OUTPUT_TOKENS: '50001' }, 120_000],
    [{ MAX_MCP_OUTPUT_TOKENS: '10000000' }, 960_000],
    [{ MAX_MCP_OUTPUT_TOKENS: '50000', MCP_PROMPT_SIZE_LIMIT: '70000' }, 70_000],
  ])('with %j is %i characters', (env, limit) => {
    expect(promptSizeLimit(valuesOf(env))).toBe(limit);
  });
});

describe('allow-lists', () => {
  it('are given by provider id, those that are set and not empty', () => {
    const values = valuesOf(
      { OPENAI_ALLOWED_MODELS: 'o3,mini', KIMI_ALLOWED_MODELS: 'k2' },
      '{"xaiAllowedModels": []}',
    );
    expect(routingPolicy(values).allowed).toEqual({ openai: ['o3', 'mini'], moonshot: ['k2'] });
  });
});

it('threads on a Redis need no data folder: nothing is kept where it can’t be used', () => {
  const redis = valuesOf({ POLYLOGUE_STORE: 'redis', REDIS_URL: 'redis://cache' });
  expect(storePlace(redis, '/proc/polylogue')).toMatchObject({ name: 'Redis at cache', isPrivate: true });
  expect(storePlace(redis, '/tmp')).toMatchObject({ name: 'Redis at cache', isPrivate: false });
});
