import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRunning, type McpSession, startSession } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let openAi: FakeVendor;
let anthropic: FakeVendor;
let project: TempProject;
let home: TempProject;
let session: McpSession;

const source = (name: string) =>
  Array.from({ length: 60 }, (_, line) => `export const ${name}${line} = 'line ${line} of ${name}';`).join('\n');
const once = { 'src/gate.ts': 'line 59 of gate', 'src/key.ts': 'line 59 of key' };

const gpt = 'gpt-5';
const claude = 'claude-sonnet-4-5';
const finding = 'FINDING ONE: the gate compares keys by reference.';
const second = 'FINDING TWO: keys are made anew on every read.';
const expertAnswer = `# Überblick\n\nThe gate never opens: ${'each key is a new object, '.repeat(40)}so compare by id.\n\n## Ende ✓`;
const chatAnswer = 'Start with gate3: it is the only caller that caches its key.';
const debugAnswer = '{"status": "analysis_complete", "summary": "Reference equality.", "hypotheses": []}';

const textOf = ({ messages }: RecordedRequest) => messages.map(({ text }) => text).join('\n');
const count = (text: string, part: string) => text.split(part).length - 1;

/** Bytes that two forms have in common at their beginning, as a share of the first. */
function sharedShare(before: string, now: string): number {
  const [a, b] = [Buffer.from(before), Buffer.from(now)];
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at / a.length;
}

const replies: Record<string, Document> = {};
/** In the order in which the models were asked. */
let asked: RecordedRequest[];

beforeAll(async () => {
  [openAi, anthropic, home] = await Promise.all([startOpenAi(), startAnthropic(), tempProject()]);
  project = await tempProject({ 'src/gate.ts': source('gate'), 'src/key.ts': source('key') });
  const env = vendorEnv({ openai: openAi.url, anthropic: anthropic.url });
  const start = () => startSession({ root: project.root, home: home.root, env });
  const call = async (label: string, tool: string, args: Record<string, unknown>) => {
    replies[label] = await session.call(tool, args);
    expect(replies[label].isError, JSON.stringify(replies[label].error)).toBe(false);
  };
  openAi.script({ answer: expertAnswer }, { answer: chatAnswer });
  anthropic.script({ answer: debugAnswer }, { answer: 'Close the case.' });

  session = await start();
  const task = { step: 'Why does the gate stay shut?', total_steps: 2, relevant_files: ['src/gate.ts'] };
  await call('step 1', 'analyze', { ...task, step_number: 1, next_step_required: true, findings: finding });
  replies.quiet = { requests: openAi.requests.length + anthropic.requests.length };
  const continuation_id = replies['step 1'].continuation_id;
  const last = { ...task, step: 'Conclusion.', step_number: 2, next_step_required: false, findings: second };
  await call('step 2', 'analyze', { ...last, relevant_files: ['src/key.ts'], continuation_id, model: gpt });
  const question = { prompt: 'Which caller first?', absolute_file_paths: ['src/gate.ts'], continuation_id };
  await call('chat', 'chat', { ...question, model: gpt });

  const { pid } = session;
  await session.kill();
  expect(isRunning(pid)).toBe(false);
  session = await start();

  const symptom = { step: 'It stays shut for gate3 too.', step_number: 1, total_steps: 1, next_step_required: false };
  const evidence = { findings: 'FINDING THREE: the cache is keyed by reference.', relevant_files: ['src'] };
  await call('debug', 'debug', { ...symptom, ...evidence, confidence: 'high', continuation_id, model: claude });
  await call('last chat', 'chat', { prompt: 'Are we done?', continuation_id, model: claude });
  asked = [...openAi.requests, ...anthropic.requests].toSorted((a, b) => a.at - b.at);
});

afterAll(async () => {
  await session.close();
  expect([...openAi.violations, ...anthropic.violations]).toEqual([]);
  await Promise.all([openAi.close(), anthropic.close(), project.dispose(), home.dispose()]);
});

describe('a thread that goes from analyze to chat, through a crash, to debug and chat of another vendor', () => {
  it('asks a model only where a model is due', () => {
    expect(replies.quiet!.requests).toBe(0);
    expect(asked.map(({ dialect }) => dialect)).toEqual(['responses', 'responses', 'messages', 'messages']);
    const used = ['step 2', 'chat', 'debug', 'last chat'].map(label => replies[label]!.metadata.model_used);
    expect(used).toEqual([gpt, gpt, claude, claude]);
  });

  it('keeps one continuation_id', () => {
    const id = replies['step 1']!.continuation_id;
    for (const label of ['step 2', 'chat', 'debug', 'last chat'])
      expect(replies[label]!.continuation_offer.continuation_id).toBe(id);
  });

  it('hands every next model the findings of the caller and the whole answers of the others', () => {
    const [analysis, chat, debug, last] = asked.map(textOf);
    for (const text of [analysis!, chat!, debug!, last!]) {
      expect(text).toContain(finding);
      expect(text).toContain(second);
    }
    for (const text of [chat!, debug!, last!]) expect(text).toContain(expertAnswer);
    for (const text of [debug!, last!]) expect(text).toContain(chatAnswer);
    expect(last).toContain('FINDING THREE');
    expect(last).toContain(debugAnswer);
    expect(replies['step 2']!.expert_analysis.raw_analysis).toBe(expertAnswer);
    expect(replies.debug!.expert_analysis).toMatchObject({ summary: 'Reference equality.' });
  });

  it('says at the top of the next question whose answer stands above it', () => {
    const [, chat, debug, last] = asked.map(({ canonical }) => canonical);
    expect(chat).toContain(`[turn 4 · chat] [the answer above: analyze by openai:${gpt}]`);
    expect(debug).toContain(`[turn 6 · debug] [the answer above: chat by openai:${gpt}]`);
    expect(last).toContain(`[turn 8 · chat] [the answer above: debug by anthropic:${claude}]`);
    expect(count(last!, '[the answer above: ')).toBe(3);
  });

  it('sends the text of each file exactly once in every request, however often it is named', () => {
    for (const request of asked)
      for (const marker of Object.values(once)) expect(count(textOf(request), marker)).toBe(1);
    expect(replies['step 2']!.metadata.files.embedded.toSorted()).toEqual(Object.keys(once).map(project.path));
    expect(replies.chat!.metadata.files).toEqual({ unchanged: [project.path('src/gate.ts')] });
    expect(replies.debug!.metadata.files.unchanged.toSorted()).toEqual(Object.keys(once).map(project.path));
  });

  it('begins every prompt with the one before, byte for byte, across the restart and across the vendors', () => {
    for (const [at, request] of asked.slice(1).entries()) {
      const before = asked[at]!.canonical;
      expect(before.length).toBeGreaterThan(1_000);
      expect(sharedShare(before, request.canonical)).toBeGreaterThanOrEqual(0.9);
      expect(request.canonical.length).toBeGreaterThan(before.length);
    }
    expect(asked[1]!.canonical.startsWith(asked[0]!.canonical)).toBe(true);
    expect(asked[3]!.canonical.startsWith(asked[2]!.canonical)).toBe(true);
  });

  it('asks one model with the same cache-relevant parameters, whatever the tool', () => {
    expect(asked[1]!.parameters).toBe(asked[0]!.parameters);
    expect(asked[3]!.parameters).toBe(asked[2]!.parameters);
    expect(asked[0]!.parameters).toContain('"effort":"high"');
    expect(asked[2]!.parameters).toContain('"budget_tokens"');
    const cacheKey = (request: RecordedRequest) => Object(request.body).prompt_cache_key;
    expect(cacheKey(asked[0]!)).toBe(replies['step 1']!.continuation_id);
    expect(cacheKey(asked[1]!)).toBe(cacheKey(asked[0]!));
  });

  it('lets the vendors’ caches take the repeated part', () => {
    const cached = (label: string) => {
      const { input, cache_read } = replies[label]!.metadata.usage;
      return cache_read / input;
    };
    expect(cached('chat')).toBeGreaterThan(0.5);
    expect(cached('last chat')).toBeGreaterThan(0.5);
  });

  it('thinks as hard as the caller says, and goes on like that', async () => {
    const { continuation_id } = replies['step 1']!;
    const ask = (more: Record<string, unknown>) =>
      session.call('chat', { prompt: 'Sure?', continuation_id, model: gpt, ...more });
    await ask({ thinking_mode: 'low' });
    await ask({});
    await ask({ model: `${gpt}:medium` });
    const efforts = openAi.requests.slice(2).map(({ parameters }) => /"effort":"(\w+)"/.exec(parameters)?.[1]);
    expect(efforts).toEqual(['low', 'low', 'medium']);
  });
});
