import { expect, it } from 'vitest';
import type { Effort } from '../../../src/core/model.ts';
import { anthropic } from '../../../src/providers/anthropic.ts';
import { deepseek } from '../../../src/providers/deepseek.ts';
import { moonshot } from '../../../src/providers/moonshot/moonshot.ts';
import { zhipu } from '../../../src/providers/zhipu/zhipu.ts';
import { askProvider } from '../../contracts/ask-provider.ts';
import { catalogueModel } from '../../models/catalogue-model.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startDeepSeek } from '../../support/vendors/start-deepseek.ts';
import { startMoonshot } from '../../support/vendors/start-moonshot.ts';
import { startZhipu } from '../../support/vendors/start-zhipu.ts';

const any = { type: 'required' } as const;
const one = { type: 'tool', toolName: 'look' } as const;
const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object', properties: {} } }];
const leftOut = [expect.stringContaining('forced tool choice was left out')];

const vendors = {
  anthropic: [anthropic, startAnthropic],
  deepseek: [deepseek, startDeepSeek],
  moonshot: [moonshot, startMoonshot],
  zhipu: [zhipu, startZhipu],
} as const;

it.each<[keyof typeof vendors, string, Effort | undefined, typeof any | typeof one, unknown]>([
  ['anthropic', 'claude-opus-4-8', 'none', any, { type: 'any' }],
  ['anthropic', 'claude-opus-4-8', undefined, any, { type: 'any' }],
  ['anthropic', 'claude-opus-4-8', 'high', any, undefined],
  ['anthropic', 'claude-opus-5-5', undefined, one, undefined],
  ['deepseek', 'deepseek-v4-pro', 'none', any, 'required'],
  ['deepseek', 'deepseek-v4-pro', 'high', any, undefined],
  ['deepseek', 'deepseek-v4-pro', undefined, one, undefined],
  ['deepseek', 'deepseek-chat', undefined, any, 'required'],
  ['moonshot', 'kimi-k2.6', 'none', any, 'required'],
  ['moonshot', 'kimi-k2.6', undefined, any, undefined],
  ['moonshot', 'kimi-k2.7-code', undefined, any, undefined],
  ['moonshot', 'kimi-k3', 'high', any, 'required'],
  ['moonshot', 'kimi-k3', 'high', one, undefined],
  ['zhipu', 'glm-5.2', 'none', any, 'auto'],
])('%s is told to call a tool only where it takes that: %s, effort %s, %j', async (name, id, effort, choice, sent) => {
  const [provider, start] = vendors[name];
  const vendor = await start();
  try {
    const settings = { apiKey: 'test-key', baseUrl: vendor.url };
    const question = { tools, program: { toolChoice: choice }, effort };
    const { warnings } = await askProvider(provider, settings, catalogueModel(name, id), question);
    expect(Object(vendor.requests.at(-1)?.body).tool_choice).toEqual(sent);
    expect(warnings).toEqual(sent === undefined || sent === 'auto' ? leftOut : []);
  } finally {
    await vendor.close();
  }
});
