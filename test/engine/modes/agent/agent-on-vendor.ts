import type { AppEvent } from '../../../../src/core/events.ts';
import type { Candidate } from '../../../../src/core/model.ts';
import type { AgentInput, AgentParts, AgentResult } from '../../../../src/engine/modes/agent/agent.ts';
import type { AgentTool } from '../../../../src/engine/modes/agent/local-tools/agent-tool.ts';
import { runAgent } from '../../../../src/engine/modes/agent/run-agent.ts';
import { createModelService, type ModelService } from '../../../../src/models/call/models.ts';
import { providers } from '../../../../src/providers/index.gen.ts';
import { asMessage } from '../../../../src/threads/transcript.ts';
import { realClock } from '../../../support/clock.ts';
import { seededRandom } from '../../../support/random.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../../support/vendors/start-anthropic.ts';
import { startDeepSeek } from '../../../support/vendors/start-deepseek.ts';
import { startGoogle } from '../../../support/vendors/start-google.ts';
import { startOpenAi } from '../../../support/vendors/start-open-ai.ts';

/** A vendor that the loop is tried on; the models think, so that thoughts and signatures have to go back. */
export interface LoopVendor {
  id: string;
  model: string;
  start(): Promise<FakeVendor>;
  settings?: Record<string, string>;
}

export const loopVendors: readonly LoopVendor[] = [
  { id: 'openai', model: 'openai:gpt-5', start: startOpenAi },
  { id: 'anthropic', model: 'anthropic:claude-sonnet-4-5', start: startAnthropic },
  { id: 'google', model: 'google:gemini-3.1-pro-preview', start: startGoogle },
  { id: 'deepseek', model: 'deepseek:deepseek-flash', start: startDeepSeek },
];

export interface VendorRun {
  fake: FakeVendor;
  team: ModelService;
  candidates: readonly Candidate[];
  events: AppEvent[];
  run(input: Partial<AgentInput>, parts?: Partial<AgentParts>): Promise<AgentResult>;
  close(): Promise<void>;
}

/** One fake vendor with a team of its models in front of it. */
export async function agentOn({ id, model, start, settings }: LoopVendor): Promise<VendorRun> {
  const fake = await start();
  const events: AppEvent[] = [];
  const emit = (event: AppEvent) => void events.push(event);
  const clock = realClock();
  const team = createModelService({
    definitions: providers,
    settings: { [id]: { apiKey: 'test-key', baseUrl: fake.url, ...settings } },
    policy: { allowed: {}, denied: [], localOnly: false, prefer: 'quality', allowUnknown: false, offline: false },
    maxThinkingTokens: 32_000,
    clock,
    random: seededRandom(1),
    emit,
  });
  const { candidates } = await team.route({ name: model, category: 'balanced', needs: {}, effort: 'high' });
  return {
    fake,
    team,
    candidates,
    events,
    run: (input, parts) =>
      runAgent(
        { ask: team.ask, clock, emit, mask: async text => ({ text, found: {} }), ...parts },
        {
          reqId: 'run-1',
          tool: 'agent',
          mark: '0123456789ab',
          candidates,
          preamble: [{ ...asMessage('system', 'preamble', 'You work with tools.'), cacheMark: true }],
          message: 'Look at the gate.',
          tools: [look()],
          signal: new AbortController().signal,
          ...input,
        },
      ),
    async close() {
      await team.close();
      await fake.close();
    },
  };
}

/** A tool that only looks. */
export function look(change: Partial<AgentTool> = {}): AgentTool {
  return {
    name: 'look',
    description: 'Looks at a thing.',
    inputSchema: {
      type: 'object',
      properties: { at: { type: 'string' } },
      required: ['at'],
      additionalProperties: false,
    },
    effect: 'read',
    check: args => (typeof args.at === 'string' ? { args } : { problem: '"at" must be a text.' }),
    run: async ({ at }) => `seen ${String(at)}`,
    ...change,
  };
}

export const callLook = (at: string) => ({ name: 'look', args: { at } });
