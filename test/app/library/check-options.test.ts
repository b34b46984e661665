import { expect, it } from 'vitest';
import { z } from 'zod';
import { createReader } from '../../../scripts/generate/library-declarations.ts';
import { checkAnswer, checkOptions, checkSettings } from '../../../src/app/library/check-options.ts';
import { isAppError } from '../../../src/core/errors.ts';

const reader = createReader('.');

/** The members of an exported type, and of those that it extends. */
async function membersOf(file: string, name: string): Promise<string[]> {
  const found = await reader.find(file, name);
  if (!found) throw new Error(`${file} has no ${name}`);
  const inherited = await Promise.all(
    found.bases.map(async base => {
      const names = await membersOf(found.file, base.name);
      return base.change(names.map(each => ({ name: each, type: '', doc: '' }))).map(each => each.name);
    }),
  );
  return [...inherited.flat(), ...found.members.map(member => member.name)].map(each => each.replace(/\?$/, ''));
}

const options = 'src/app/library/options.ts';
const run = () => undefined;
const tool = { name: 'a', description: 'd', inputSchema: { type: 'object' }, effect: 'read', run };

/** What a function takes, by the type that says it; `at`: where in its options it stands. */
const taken = [
  { call: 'createPolylogue', file: options, type: 'PolylogueOptions' },
  { call: 'send', file: options, type: 'SendRequest', base: { message: 'x' } },
  { call: 'send', file: options, type: 'SendParams', base: { message: 'x' }, at: 'params' },
  { call: 'send', file: options, type: 'SystemLayers', base: { message: 'x' }, at: 'system' },
  { call: 'createConversation', file: 'src/app/library/conversation.ts', type: 'ConversationOptions' },
  { call: 'setDefaults', file: options, type: 'SendDefaults' },
  { call: 'languageModel', file: 'src/app/library/polylogue.ts', type: 'LanguageModelOptions' },
  { call: 'callTool', file: 'src/app/library/polylogue.ts', type: 'CallToolOptions', base: { name: 'x', args: {} } },
  { call: 'commsLog.append', file: 'src/app/library/polylogue.ts', type: 'CommsEntry', base: { payload: {} } },
  { call: 'commsLog.read', file: 'src/core/ports.ts', type: 'ExchangeFilter' },
  { call: 'summarizeFile', file: 'src/app/library/shorten.ts', type: 'ShortenOptions', base: { path: 'x' } },
  { call: 'compressDiscussion', file: 'src/app/library/shorten.ts', type: 'ShortenOptions', base: { discussion: 'x' } },
  { call: 'analyzeError', file: 'src/app/library/diagnose.ts', type: 'ErrorRequest', base: { stderr: 'x' } },
] as const;

const refusal = (check: () => void): string => {
  try {
    check();
  } catch (error) {
    if (isAppError(error) && error.kind === 'input') return error.message;
    throw error;
  }
  return 'accepted';
};

it.each(taken)('$call knows every member of $type, and refuses each with a slip in it', async each => {
  const { call, file, type } = each;
  const [base, at] = ['base' in each ? each.base : {}, 'at' in each ? each.at : undefined];
  const given = (inner: object) => (at === undefined ? { ...base, ...inner } : { ...base, [at]: inner });
  const members = await membersOf(file, type);
  expect(members.length).toBeGreaterThan(0);
  for (const member of members) {
    expect(
      refusal(() => checkOptions(call, given({ [member]: Symbol('of no use') }))),
      member,
    ).not.toMatch(/unknown option|^accepted$/);
    const slip = `${member}${member.at(-1)}`;
    const told = refusal(() => checkOptions(call, given({ [slip]: undefined })));
    expect(told, slip).toContain(`${slip}: unknown option (did you mean "${member}"`);
  }
});

it.each([
  ['tools.0', 'send', { message: 'x', tools: [{ ...tool, inputShema: {} }] }],
  [
    'tools.0.inputSchema: expected JSON Schema, as z.toJSONSchema(schema) makes it',
    'send',
    { message: 'x', tools: [{ ...tool, inputSchema: z.object({ city: z.string() }) }] },
  ],
  ['the same name', 'send', { message: 'x', tools: [tool, tool] }],
  ['the same name', 'send', { message: 'x', tools: [{ ...tool, name: 'read_file' }, 'read_file'] }],
  [
    'tools.0.aproval: unknown option (did you mean "approval"',
    'send',
    { message: 'x', tools: [{ ...tool, aproval: run }] },
  ],
  [
    'history.0.parts.0.text',
    'send',
    { message: 'x', history: [{ role: 'user', section: 'turn', parts: [{ type: 'text' }] }] },
  ],
  [
    "history.0.parts.0.type: Invalid discriminator value. Expected 'text' | 'image'",
    'send',
    { message: 'x', history: [{ role: 'user', section: 'turn', parts: [{ type: 'txt' }] }] },
  ],
  [
    'message: inherited from a class; expected a plain object',
    'send',
    new (class {
      get message() {
        return 'x';
      }
    })(),
  ],
  ['onText: inherited from a class', 'callTool', Object.create({ onText: run }), { name: 'version', args: {} }],
  ['name: given twice', 'callTool', { name: 'chat' }, { name: 'version', args: {} }],
  ['name: given twice', 'languageModel', { name: 'x' }, { name: undefined }],
  ['expected object', 'send', 'hello'],
  ['expected object', 'summarizeFile', null, { path: 'x' }],
  ['expected object', 'languageModel', null, {}],
  ['history', 'conversation.send', { message: 'x', history: [] }],
  ['text: ', 'estimateTokens', { text: 5 }],
  ['tools.0: expected what defineTool returns', 'createPolylogue', { tools: [{ name: 'x', titel: 'X', mode: {} }] }],
  ['providers.0: expected what defineProvider returns', 'createPolylogue', { providers: [{ id: 'x' }] }],
  ['stores.0: expected what defineStore returns', 'createPolylogue', { stores: [{ name: 'x', opn: run }] }],
] as const)('refuses %s', (told, call, given, named?: object) => {
  expect(refusal(() => checkOptions(call, given, named && { ...named }))).toContain(told);
});

it.each<[what: string, given: object]>([
  [
    'records as zod makes them',
    { tools: [{ ...tool, inputSchema: z.toJSONSchema(z.record(z.string(), z.string())) }] },
  ],
  ['schemas as zod makes them', { tools: [{ ...tool, inputSchema: z.toJSONSchema(z.object({})) }] }],
  ['tools with members of their own', { tools: [{ ...tool, db: {}, pool: {} }] }],
  ['tools of Polylogue by two of their names', { tools: ['reads', 'read_file', 'read_file'] }],
])('takes %s', (_what, given) => {
  expect(refusal(() => checkOptions('send', { message: 'x', ...given }))).toBe('accepted');
});

it('takes settings by their names, and those of programs, but no misspelled ones', () => {
  const check = (settings: Record<string, string>, more: string[] = []) =>
    refusal(() => checkSettings(settings, ['OPENAI_API_KEY', 'GLM_API_KEY', 'LOG_LEVEL', 'DEFAULT_MODEL', ...more]));
  expect(check({ OPENAI_API_KEY: 'x', LOG_LEVEL: 'debug', MY_TOKEN: 'x', VLLM_API_KEY: 'x' })).toBe('accepted');
  expect(check({ LLM_API_KEY: 'x' })).toContain('did you mean "GLM_API_KEY"');
  expect(check({ LLM_API_KEY: 'x' }, ['LLM_API_KEY'])).toBe('accepted');
  expect(check({ OPENAI_API_KEYY: 'x' })).toContain('did you mean "OPENAI_API_KEY"');
  expect(check({ default_model: 'x' })).toContain('did you mean "DEFAULT_MODEL"');
});

it('takes hits of a search with members of their own', () => {
  const hit = { source: 'a.md', text: 'A', score: 0.9 };
  expect(checkAnswer.retrieve([hit, 'B'])).toEqual([{ source: 'a.md', text: 'A' }, 'B']);
});

it.each([
  ['onToolCall', undefined],
  ['onToolCall', true],
  ['onToolCall', 'allow'],
  ['onToolCall', { action: 'alow' }],
  ['onToolCall', { action: 'allow', arg: {} }],
  ['onToolCall', { action: 'deny' }],
  ['check', undefined],
  ['check', true],
  ['check', { args: null }],
  ['check', { args: {}, problem: 'x' }],
  ['onQuestion', undefined],
  ['onQuestion', ['Bern']],
  ['retrieve', 'one text'],
  ['retrieve', [5]],
  ['retrieve', undefined],
] as const)('an answer of %s that is none allows nothing: %j', (name, given) => {
  expect(refusal(() => checkAnswer[name](given))).toContain(`${name} returned something else than it may`);
});

const circle: Record<string, unknown> = {};
circle.me = circle;

it.each([
  ['a bigint', 1n],
  ['a circle', circle],
])('refuses what JSON cannot hold by the name of its place: %s', (_what, x) => {
  const args = { x };
  expect(refusal(() => checkAnswer.onToolCall({ action: 'allow', args }))).toContain(
    'args: expected what JSON can hold',
  );
  expect(refusal(() => checkAnswer.check({ args }))).toContain('args: expected what JSON can hold');
  const inputSchema = { type: 'object', properties: { x: { const: x } } };
  const told = refusal(() => checkOptions('send', { message: 'x', tools: [{ ...tool, inputSchema }] }));
  expect(told).toContain('tools.0.inputSchema: expected what JSON can hold');
  const called = refusal(() => checkOptions('callTool', {}, { name: 'chat', args }));
  expect(called).toContain('args: expected what JSON can hold');
  const said = [{ type: 'call', id: '1', name: 'read_file', args }];
  const history = [{ role: 'assistant', section: 'turn', parts: [], said }];
  expect(refusal(() => checkOptions('send', { message: 'x', history }))).toContain(
    'history.0.said: expected what JSON can hold',
  );
});

it('names what an answer may be', () => {
  expect(refusal(() => checkAnswer.onToolCall({ action: 'alow' }))).toContain(
    "action: Invalid discriminator value. Expected 'allow' | 'deny'",
  );
});
