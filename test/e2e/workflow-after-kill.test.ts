import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lastOf, stateRuns, told } from '../engine/workflow-state-runs.ts';
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

describe.each(stateRuns)('$tool', ({ tool, one }) => {
  it('goes on in another process after its own was killed, as if nothing had happened', async () => {
    const first = await start();
    const expected: Document[] = [];
    for (const [index, more] of one.entries()) {
      const { continuation_id } = expected[0] ?? {};
      const args = step(index + 1, one.length, { ...more, ...(continuation_id && { continuation_id }) });
      expected.push(told(await first.call(tool, args)));
    }

    const opening = told(await first.call(tool, step(1, one.length, one[0])));
    expect(lastOf(opening)).toEqual(lastOf(expected[0]));
    await first.kill();
    const { continuation_id } = opening;
    const second = await start(clockAhead(15_000));
    const middle = told(await second.call(tool, step(2, one.length, { ...one[1], continuation_id })));
    expect(lastOf(middle)).toEqual(lastOf(expected[1]));
    await second.kill();
    const third = await start(clockAhead(30_000));
    const last = told(await third.call(tool, step(3, one.length, { ...one[2], continuation_id })));
    expect(lastOf(last)).toEqual(lastOf(expected[2]));
    expect(last.continuation_id).toBe(continuation_id);
  });
});
