import { afterAll, expect, it } from 'vitest';
import { maskAnswer, secretsOfThread, unmaskPrompt, withoutSecrets } from '../../../src/calls/ask/redaction.ts';
import type { CallServices } from '../../../src/calls/ask/services.ts';
import type { PreparedCall } from '../../../src/calls/call-record.ts';
import { configError } from '../../../src/core/errors.ts';
import { textOf } from '../../../src/core/message.ts';
import type { Mask } from '../../../src/core/ports.ts';
import { estimateTokens, tokenFactor } from '../../../src/core/tokens.ts';
import type { ModelAnswer } from '../../../src/models/ask-model.ts';
import { createMask } from '../../../src/observability/secret-masking.ts';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import { createSandbox } from '../../../src/workspace/sandbox.ts';
import { tempProject } from '../../support/temp-project.ts';

const token = (digit: number) => `ghp_${'Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx'}${digit}`;
const mask = createMask({ secret: 'pepper', keys: [] });
const masked = (text: string) => mask.maskSync(text, 'thread').text;
const project = await tempProject({
  'old.txt': token(1),
  'new.txt': token(2),
  'unshown.txt': token(3),
  ...Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${at}.txt`, 'nothing'])),
});
afterAll(project.dispose);
const { signal } = new AbortController();
const fileOf = (name: string, how: object = { base: 'b' }) => ({ path: project.path(name), ...how });

let read: string[] = [];
const services = {
  store: createMemoryStore(),
  sandbox: createSandbox({ roots: [project.root], allowSecrets: false }),
  mask: Object.assign(
    ((text, ...more) => {
      read.push(text);
      return mask.mask(text, ...more);
    }) satisfies Mask,
    { remember: mask.mask.remember },
  ),
  maxFileBytes: 1_000,
  runsHere: (provider: string) => provider === 'here',
} as unknown as CallServices;

function threadOf(...files: object[]) {
  return { id: 'thread', owner: 'local', turns: [{ files: files.slice(0, 1) }, { files: files.slice(1) }] } as never;
}

const secretsOf = (files: object[], wanted: string[], now: object[] = []) =>
  secretsOfThread(
    services,
    { thread: threadOf(...files), turn: { files: now } as never, signal },
    new Set(wanted.map(masked)),
  );

it('looks for what placeholders stand for in the files that were shown, the newest first', async () => {
  const all = [fileOf('old.txt', { shown: 's' }), fileOf('new.txt'), fileOf('unshown.txt', {})];
  const found = await secretsOf(all, [token(1), token(2), token(3)]);
  expect([...found.values()].toSorted()).toEqual([token(1), token(2)]);
  read = [];
  expect((await secretsOf(all, [])).size).toBe(0);
  expect(read).toEqual([]);
  const others = Array.from({ length: 199 }, (_, at) => fileOf(`${at}.txt`));
  expect((await secretsOf([fileOf('old.txt'), ...others], [token(1)])).size).toBe(1);
  expect((await secretsOf([fileOf('old.txt'), ...others], [token(1)], [fileOf('199.txt')])).size).toBe(0);
});

const candidates = (...providers: string[]) => providers.map(provider => ({ model: { provider, id: 'm', window: 0 } }));
const messages = ['Look at', masked(token(1))].map(text => ({
  role: 'user',
  parts: [{ type: 'text', text }, { type: 'image' }],
}));

function unmask(change: { candidates?: object[]; messages?: object[]; window?: number; budget?: object } = {}) {
  const { window = 1_000_000 } = change;
  const [first, ...others] = change.candidates ?? candidates('here');
  const gathered = {
    ...{ messages, thread: threadOf(fileOf('old.txt')), turn: { files: [] }, signal, ...change },
    candidates: [{ model: { ...(first as { model: object }).model, window } }, ...others],
    budget: { reserved: 0, historyUsed: 0, filesUsed: 0, answer: 0, ...change.budget },
  };
  return unmaskPrompt(services, gathered as unknown as PreparedCall);
}

it('shows secrets to models that all run here, and remembers them from then on', async () => {
  expect(await unmask({ candidates: candidates('here', 'away') })).toBeUndefined();
  expect(await unmask({ candidates: candidates('away') })).toBeUndefined();
  expect(await unmask({ messages: messages.slice(0, 1) })).toBeUndefined();
  expect(mask.maskSync(`x${[...token(1)].join(' ')}`, 'thread').text).toContain('W');
  const prompt = await unmask({ candidates: candidates('here', 'here') });
  expect(prompt?.messages.map(textOf)).toEqual(['Look at', token(1)]);
  expect(prompt?.messages[1]?.parts[1]).toEqual({ type: 'image' });
  expect(mask.maskSync([...token(1)].join(' '), 'thread').found).toEqual({ github_token: 1 });
});

it('shows them only where all of the prompt still fits', async () => {
  const more = (estimateTokens(token(1)) - estimateTokens(masked(token(1)))) * tokenFactor('glm');
  expect(more).toBeGreaterThan(0);
  const all = { reserved: 1_000, historyUsed: 200, filesUsed: 30, answer: 4 };
  const candidates = [{ model: { provider: 'here', id: 'glm' } }];
  for (const [name, tokens] of [...Object.entries(all), ['all', 0] as const]) {
    const budget = name === 'all' ? all : { [name]: tokens };
    const window = Object.values(budget).reduce((sum, each) => sum + each, more);
    expect(await unmask({ candidates, budget, window }), name).toBeDefined();
    expect(await unmask({ candidates, budget, window: window - 0.5 }), name).toBeUndefined();
  }
});

const answered = (answer: Partial<ModelAnswer>, shown: [string, string][] = []) =>
  maskAnswer(mask.mask, 'other', { citations: [], warnings: [], ...answer } as never, new Map(shown));

it('masks an answer with its citations and warnings, and of shown secrets the longest part first', async () => {
  const hidden = expect.stringMatching(/^\[masked:github_token:/);
  const cited = { title: token(4), url: 'https://host', snippet: token(4) };
  expect(
    await answered({ text: `${token(4)}\ud800`, citations: [cited as never], warnings: [token(4)] }),
  ).toMatchObject({
    text: expect.stringMatching(/^\[masked:github_token:\w+\]\ufffd$/),
    citations: [{ title: hidden, url: 'https://host', snippet: hidden }],
    warnings: [hidden],
  });
  const text = 'all: first-line-of-12\nshort, then first-line-of-12, twelve chars, short and inner';
  const shown: [string, string][] = [
    ['[inner]', 'inner'],
    ['[lines]', 'first-line-of-12\nshort'],
    ['[twelve]', 'twelve chars\nand inner'],
  ];
  expect((await answered({ text }, shown)).text).toBe('all: [lines], then [lines], [twelve], short and [inner]');
  expect((await answered({ text: 'an inner and inner' }, shown)).text).toBe('an [inner] and [inner]');
  const within: [string, string][] = [...shown, ['[outer]', 'around inner things']];
  expect((await answered({ text: 'all around inner things' }, within)).text).toBe('all [outer]');
});

it('masks the words of an error, and keeps the rest of it', async () => {
  const error = configError(`No ${token(5)}`, { next: `Ask for ${token(5)}`, class: 'c' });
  const clean = await withoutSecrets(mask.mask, 'thread', error);
  expect(clean).toMatchObject({
    ...{ kind: 'config', message: expect.stringMatching(/^No \[masked:github_token:\w+\]$/) },
    details: { class: 'c', next: expect.stringMatching(/^Ask for \[masked:github_token:\w+\]$/) },
  });
  expect((await withoutSecrets(mask.mask, 'thread', configError('No', { next: '' }))).details.next).toBeUndefined();
});
