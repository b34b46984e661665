import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clockOff, type McpSession, serverCommand, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { tempProject } from '../support/temp-project.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const dayMs = 86_400_000;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.dispose());

const run = promisify(execFile);

it.each([
  ['sqlite', 40],
  ['sqlite', -40],
  ['redis', 40],
  ['redis', -40],
] as const)(
  '%s: no thread is hidden or ends early by a clock that is off by %i days, and doctor tells',
  async (store, off) => {
    const [vendor, project, home] = await Promise.all([startOpenAi(), tempProject(), tempProject()]);
    const storeEnv: Record<string, string> =
      store === 'redis' ? { POLYLOGUE_STORE: 'redis', REDIS_URL: redis.url, REDIS_PREFIX: `${off}:` } : {};
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', ...storeEnv };
    const place = { root: project.root, home: home.root, env };
    const wrong = clockOff(off * dayMs);
    async function inSession<Result>(
      nodeArgs: string[],
      work: (session: McpSession) => Promise<Result>,
    ): Promise<Result> {
      const session = await startSession({ ...place, nodeArgs });
      try {
        return await work(session);
      } finally {
        await session.close();
      }
    }
    async function ask(session: McpSession, more: object = {}): Promise<string> {
      vendor.script({ answer: 'Yes.' });
      const { isError, continuation_offer } = await session.call('chat', { prompt: 'Is it?', ...more });
      expect(isError).toBe(false);
      return continuation_offer.continuation_id;
    }

    const before = await inSession([], ask);
    const during = await inSession(wrong, async session => {
      await ask(session, { continuation_id: before });
      return ask(session);
    });
    // The first process that finds the clock moved tells it; doctor tells it as long as it is off.
    const {
      command,
      args,
      cwd,
      env: childEnv,
    } = serverCommand({ ...place, env: storeEnv, args: ['doctor', '--offline'], nodeArgs: wrong });
    const { stdout } = await run(command, args, { cwd, env: childEnv }).catch(error => error);
    expect(stdout).toMatch(new RegExp(`clock of this machine is 960.00 h ${off > 0 ? 'ahead of' : 'behind'}`));
    await inSession([], async session => {
      await ask(session, { continuation_id: before });
      await ask(session, { continuation_id: during });
      const { threads } = await session.call('threads', { action: 'list' });
      const ends = threads.map((thread: { expires_at: string }) =>
        Math.round((Date.parse(thread.expires_at) - Date.now()) / dayMs),
      );
      expect(ends).toEqual([30, 30]);
    });
    expect(vendor.violations).toEqual([]);
    await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
  },
);
