import { describe, expect, it } from 'vitest';
import { createCallKind } from '../../../src/calls/ask/explain-call.ts';
import type { ToolRequest } from '../../../src/core/tool-host.ts';
import type { ModelRequest } from '../../../src/models/routing/roster.ts';
import { tools } from '../../../src/tools/index.gen.ts';
import { modelInfo } from '../../models/scripted-model.ts';

const thinker = modelInfo({ id: 'thinker', reasoning: true, efforts: ['none', 'high'] });
const plain = modelInfo({ id: 'plain', reasoning: false });

/** `plain` by name, and `thinker` otherwise; nobody else is known. */
async function candidates({ name, toolEffort, effort = toolEffort }: ModelRequest) {
  if (name === 'nobody') throw new Error('unknown');
  return [{ model: name === 'plain' ? plain : thinker, effort, reason: '' }];
}

const kindOf = createCallKind({ efforts: { thinkdeep: 'none' } }, { tools, candidates });
const request = (name: string, args: Record<string, unknown>): ToolRequest => ({
  name,
  arguments: args,
  principal: { owner: 'local', root: '/tmp' },
});

describe('the kind of a call', () => {
  it.each([
    ['chat', { prompt: 'Hi', model: 'plain', working_directory_absolute_path: '/tmp' }, 'quick'],
    ['chat', { prompt: 'Hi', model: 'plain', absolute_file_paths: ['a.ts'] }, 'files'],
    ['chat', { prompt: 'Hi', model: 'plain', absolute_file_paths: [] }, 'quick'],
    ['chat', { prompt: 'Hi', model: 'plain', images: ['a.png'] }, 'files'],
    ['chat', { prompt: 'Hi', model: 'plain', use_websearch: true }, 'files'],
    ['chat', { prompt: 'Hi', model: 'plain', use_search: 'true' }, 'files'],
    ['chat', { prompt: 'Hi', model: 'thinker' }, 'reasoning'],
    ['chat', { prompt: 'Hi', model: 'thinker', thinking_mode: 'none' }, 'quick'],
    ['chat', { prompt: 'Hi', model: 'auto' }, 'reasoning'],
    ['chat', { prompt: 'Hi', model: 'nobody' }, 'quick'],
    ['thinkdeep', { step: 'Think', model: 'thinker' }, 'quick'],
    ['consensus', { prompt: 'Good?', models: ['plain', { model: 'thinker' }] }, 'reasoning'],
    ['consensus', { prompt: 'Good?', models: ['plain', { model: 'plain' }] }, 'quick'],
    ['prompt', { text: 'Hi', models: ['plain'] }, 'quick'],
    ['prompt', { text: 'Hi' }, 'reasoning'],
    ['prompt_from_file', { file_path: '/tmp/a.md', models: ['plain'] }, 'files'],
    ['kimi_upload_and_extract', {}, 'files'],
    ['version', {}, 'quick'],
    ['threads', { action: 'list' }, 'quick'],
    ['no-such-tool', { model: 'thinker' }, 'quick'],
  ])('%s with %j is %s', async (name, args, kind) => {
    expect(await kindOf(request(name, args))).toBe(kind);
  });
});
