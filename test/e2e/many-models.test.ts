import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Era, type McpSession, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const models = ['openai:gpt-4.1', 'anthropic:claude-sonnet-4-5'];

let openAi: FakeVendor;
let anthropic: FakeVendor;
let project: TempProject;

beforeAll(async () => {
  [openAi, anthropic, project] = await Promise.all([startOpenAi(), startAnthropic(), tempProject({ 'q.txt': 'Why?' })]);
  openAi.byDefault({ answer: 'Because, says OpenAI.' });
  anthropic.byDefault({ answer: 'Because, says Anthropic.', delayMs: 100 });
});

afterAll(async () => {
  expect([...openAi.violations, ...anthropic.violations]).toEqual([]);
  await Promise.all([openAi.close(), anthropic.close(), project.dispose()]);
});

describe.each<Era>(['legacy', 'modern'])('one text to many models, for a client of the %s era', era => {
  let home: TempProject;
  let session: McpSession;

  beforeAll(async () => {
    home = await tempProject();
    const env = vendorEnv({ openai: openAi.url, anthropic: anthropic.url });
    const args = ['--toolsets', 'wrapper'];
    session = await startSession({ root: project.root, home: home.root, env, args }, era);
  });

  afterAll(async () => {
    await session.close();
    await home.dispose();
  });

  it('comes back in slots, with progress for each, from the program as it is installed', async () => {
    const messages: (string | undefined)[] = [];
    const onprogress = ({ message }: { message?: string }) => void messages.push(message);
    const reply = await session.call('prompt', { text: 'Why?', models }, { onprogress });
    expect(reply).toMatchObject({
      isError: false,
      tool_name: 'prompt',
      status: 'success',
      result: {
        responses: [
          { model: models[0], requested: models[0], response: 'Because, says OpenAI.' },
          { model: models[1], requested: models[1], response: 'Because, says Anthropic.' },
        ],
      },
    });
    expect(messages).toContainEqual(expect.stringMatching(/^openai:gpt-4\.1 answered in .*\(1 of 2\)/));
  });

  it('comes back in files, by tools whose annotations say that they write', async () => {
    const { tools } = await session.client.listTools();
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
    expect(hints.prompt).toMatchObject({ readOnlyHint: true, openWorldHint: true });
    expect(hints.prompt_from_file_to_file).toMatchObject({ readOnlyHint: false, destructiveHint: true });
    expect(hints.list_models).toMatchObject({ readOnlyHint: true, openWorldHint: false });
    const args = { file: 'q.txt', models, output_dir: `answers-${era}` };
    const { result } = await session.call('prompt_from_file_to_file', args);
    const texts = await Promise.all(result.files.map((path: string) => readFile(path, 'utf8')));
    expect(texts).toEqual(['Because, says OpenAI.', 'Because, says Anthropic.']);
  });
});
