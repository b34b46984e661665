import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lastOf, stateRuns, told } from '../engine/modes/workflow/workflow-state-runs.ts';
import { clockAhead, type McpSession, startSession } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { step } from '../tools/workflow-rig.ts';

let vendor: FakeVendor;
let project: TempProject;
let home: TempProject;
let sessions: McpSession[];

async function start(nodeArgs: string[] = []): Promise<McpSession> {
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  const session = await startSession({ root: project.root, home: home.root, env, nodeArgs });
  sessions.push(session);
  return session;
}

beforeEach(async () => {
  sessions = [];
  [vendor, home] = await Promise.all([startOpenAi(), tempProject()]);
  project = await tempProject({ 'a.ts': 'export const alpha = 1;\n', 'b.ts': 'export const beta = 2;\n' });
  vendor.byDefault({ answer: 'The answer.' });
});

afterEach(async () => {
  for (const session of sessions) await session.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

/** The replies of a run that nobody disturbs, but for what is another at every call. */
async function alone(session: McpSession, tool: string, run: readonly object[]): Promise<Document[]> {
  const replies: Document[] = [];
  for (const [index, more] of run.entries()) {
    const { continuation_id } = replies[0] ?? {};
    const args = step(index + 1, run.length, { ...more, ...(continuation_id && { continuation_id }) });
    replies.push(told(await session.call(tool, args)));
  }
  return replies;
}

describe.each(stateRuns)('two runs of $tool on two threads', ({ tool, one, other }) => {
  it('go on in another process each time theirs was killed, as if each were alone and nothing had happened', async () => {
    const calm = await start();
    const expected = { one: await alone(calm, tool, one), other: await alone(calm, tool, other) };
    await calm.close();

    const ids: { one?: string; other?: string } = {};
    for (const index of one.keys()) {
      const session = await start(clockAhead(index * 15_000));
      for (const [name, run] of [
        ['one', one],
        ['other', other],
      ] as const) {
        const args = { ...run[index], ...(ids[name] && { continuation_id: ids[name] }) };
        const reply = told(await session.call(tool, step(index + 1, run.length, args)));
        expect(lastOf(reply), `${name}, step ${index + 1}`).toEqual(lastOf(expected[name][index]));
        ids[name] ??= reply.continuation_id;
        expect(reply.continuation_id).toBe(ids[name]);
      }
      await session.kill();
    }
    expect(ids.one).not.toBe(ids.other);
  });
});
