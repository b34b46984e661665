import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from './run-program.ts';

let place: string;
let url: string;
let status = 200;
const server = createServer((_request, response) => {
  const models = {
    'gpt-9': {
      id: 'gpt-9',
      name: 'GPT-9',
      modalities: { input: ['text'], output: ['text'] },
      limit: { context: 70_000, output: 9_000 },
    },
  };
  response.writeHead(status).end(status === 200 ? JSON.stringify({ openai: { models } }) : 'not now');
});

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'polylogue-refresh-'));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/api.json`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(place, { recursive: true, force: true });
});

const run = (...args: string[]) =>
  runProgram(['models', ...args], { cwd: place, env: { POLYLOGUE_HOME: join(place, 'home'), MODELS_DEV_URL: url } });

describe('polylogue models refresh', () => {
  it('fetches the facts once, and `models` knows them from then on', async () => {
    const { code, out } = await run('refresh');
    expect({ code, out }).toEqual({ code: 0, out: 'Updated model data: 1 models, 1 providers.\n' });
    expect((await run('--provider', 'openai')).out).toMatch(/gpt-9 +70k/);
    expect(await readdir(join(place, 'home', 'cache'))).toEqual(['models-dev.json']);
  });

  it('says what failed, keeps what is there, and ends with 1', async () => {
    status = 503;
    const { code, err } = await run('refresh');
    expect(code).toBe(1);
    expect(err).toContain('503');
    expect(err).toContain('stays');
    expect((await run('--provider', 'openai')).out).toMatch(/gpt-9 +70k/);
  });

  it('writes nothing with --private, and knows no other word', async () => {
    const refused = await run('refresh', '--private');
    expect(refused.code).toBe(2);
    expect(refused.err).toContain('--private');
    const wrong = await run('reload');
    expect(wrong.code).toBe(2);
    expect(wrong.err).toContain('models refresh');
    const half = await run('refresh', '--provider', 'openai');
    expect(half.code).toBe(2);
    expect(half.err).toContain('Leave --provider out.');
  });
});
