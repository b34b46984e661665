import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type McpSession, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let server: RedisServer;
let vendor: FakeVendor;
let project: TempProject;
let homes: TempProject[];
let sessions: McpSession[];

beforeAll(async () => {
  server = await startRedis('--appendfsync', 'always');
});
afterAll(() => server.dispose());

beforeEach(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  [homes, sessions] = [[], []];
});

afterEach(async () => {
  for (const session of sessions) await session.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), ...homes.map(home => home.dispose())]);
});

/** The built program with a data folder of its own: as on another machine. */
async function start(prefix: string): Promise<McpSession> {
  const home = await tempProject();
  homes.push(home);
  const redis = { POLYLOGUE_STORE: 'redis', REDIS_URL: server.url, REDIS_PREFIX: prefix, REDIS_TIMEOUT_MS: '5000' };
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', AI_MANAGER: 'rules', ...redis };
  const session = await startSession({ root: project.root, home: home.root, env });
  sessions.push(session);
  return session;
}

it('another machine goes on at once with the thread of a server that was killed', async () => {
  const prefix = `${randomUUID()}:`;
  const [one, other] = [await start(prefix), await start(prefix)];
  vendor.script({ answer: 'One.' }, { fault: 'hang_before_headers' });
  const { continuation_offer } = await one.call('chat', { prompt: 'First?' });
  const { continuation_id } = continuation_offer;
  const lost = one.call('chat', { prompt: 'Second?', continuation_id }).catch(error => error);
  await expect.poll(() => vendor.requests.length).toBe(2);
  await one.kill();
  expect(await lost).toBeInstanceOf(Error);
  vendor.script({ answer: 'Three.' });
  expect(await other.call('chat', { prompt: 'Third?', continuation_id })).toMatchObject({ content: 'Three.' });
  const { transcript } = await other.call('threads', { action: 'read', continuation_id });
  const said = transcript.map(({ content, status }: { content: string; status: string }) => `${content} ${status}`);
  expect(said).toEqual(['First? done', 'One. done', 'Second? interrupted', 'Third? done', 'Three. done']);
});
