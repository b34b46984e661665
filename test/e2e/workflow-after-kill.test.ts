import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lastOf, stateRuns, told } from '../engine/modes/workflow/workflow-state-runs.ts';
import { clockAhead, type McpSession, startSession } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { step } from '../tools/workflow-rig.ts';

type Runs = Record<'one' | 'other', Document[]>;
const names = ['one', 'other'] as const;

let vendor: FakeVendor;
let project: TempProject;
let home: TempProject;
let sessions: McpSession[];
/** The replies of each tool's runs that nobody disturbs, and of those whose process is killed after each step. */
let calm: Map<string, Runs>;
let killed: Map<string, Runs>;

async function start(nodeArgs: string[] = []): Promise<McpSession> {
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  const session = await startSession({ root: project.root, home: home.root, env, nodeArgs });
  sessions.push(session);
  return session;
}

/** The next step of a run, whose replies so far these are, but for what is another at every call. */
async function next(session: McpSession, tool: string, run: readonly object[], replies: Document[]): Promise<void> {
  const { continuation_id } = replies[0] ?? {};
  const more = { ...run[replies.length], ...(continuation_id && { continuation_id }) };
  replies.push(told(await session.call(tool, step(replies.length + 1, run.length, more))));
}

const empty = () => new Map(stateRuns.map(({ tool }): [string, Runs] => [tool, { one: [], other: [] }]));

// A process is there for the next steps of all tools: starting one takes longer than the calls.
beforeAll(async () => {
  sessions = [];
  [vendor, home] = await Promise.all([startOpenAi(), tempProject()]);
  project = await tempProject({ 'a.ts': 'export const alpha = 1;\n', 'b.ts': 'export const beta = 2;\n' });
  vendor.byDefault({ answer: 'The answer.' });
  [calm, killed] = [empty(), empty()];
  const alone = await start();
  for (const { tool, ...runs } of stateRuns)
    for (const name of names) for (const _ of runs[name]) await next(alone, tool, runs[name], calm.get(tool)![name]);
  await alone.close();

  for (let index = 0; index < 3; index++) {
    const session = await start(clockAhead(index * 15_000));
    for (const { tool, ...runs } of stateRuns)
      for (const name of names) await next(session, tool, runs[name], killed.get(tool)![name]);
    await session.kill();
  }
});

afterAll(async () => {
  for (const session of sessions) await session.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

describe.each(stateRuns)('two runs of $tool on two threads', ({ tool, ...runs }) => {
  it('go on in another process each time theirs was killed, as if each were alone and nothing had happened', () => {
    const [expected, found] = [calm.get(tool)!, killed.get(tool)!];
    for (const name of names) {
      expect(runs[name], name).toHaveLength(3);
      expect(found[name].map(lastOf), name).toEqual(expected[name].map(lastOf));
      expect(new Set(found[name].map(({ continuation_id }) => continuation_id)).size).toBe(1);
    }
    expect(found.one[0]?.continuation_id).not.toBe(found.other[0]?.continuation_id);
  });
});
