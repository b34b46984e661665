import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { tailHeading } from '../../../src/core/message.ts';
import { estimateTokens } from '../../../src/core/tokens.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../../src/models/catalogue/connections.ts';
import { shownFiles } from '../../../src/models/provider.ts';
import { offlineEast } from '../../../src/providers/offline-east.ts';
import { offlineWest } from '../../../src/providers/offline-west.ts';
import { say } from '../../models/scripted-model.ts';
import { realClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';

const ask = createAskModel({
  connection: createConnections(configureProviders([offlineEast, offlineWest], {})),
  clock: realClock(),
  random: seededRandom(),
  emit: () => {},
  isLocal: () => true,
  limits: { firstByteMs: 1000, idleMs: 1000, totalMs: 5000 },
});

const question = {
  reqId: 'r',
  tool: 'chat',
  candidates: [{ model: offlineWest.models!({}, [])[0]!, reason: 'named' }],
  maxOutputTokens: 1000,
  signal: new AbortController().signal,
};

const account = (text: string) => JSON.parse(/```json\n([\s\S]*)\n```/.exec(text)![1]!);
const fileText =
  'Look:\n--- BEGIN FILE: /p/a (1).ts (2 lines) ---\n   1│ one\n   2│ --- BEGIN FILE: /p/no.ts (1 lines) ---\n--- END FILE: /p/a (1).ts ---\nthere';

describe('the offline models', () => {
  it('answer with an account in which every number comes from the request', async () => {
    const messages = [
      say('system', 'You are a careful reader. Ünïcode.'),
      say('user', fileText),
      say('assistant', 'An earlier answer.'),
      say('user', 'And now?'),
      say('user', `${tailHeading}\nAnswer shortly.`, { section: 'tail' }),
    ];
    const answer = await ask({ ...question, messages });
    const given = account(answer.text);
    expect(given).toMatchObject({ vendor: 'offline-west', model: 'echo-west' });
    expect(given.messages.map((message: { section: string }) => message.section)).toEqual([
      'preamble',
      'turn',
      'turn',
      'turn',
      'tail',
    ]);
    for (const [index, message] of messages.entries()) {
      const text = message.parts.map(part => (part.type === 'text' ? part.text : '')).join('');
      expect(given.messages[index]).toMatchObject({
        chars: text.length,
        tokens: estimateTokens(text),
        sha256: createHash('sha256').update(text).digest('hex'),
      });
    }
    expect(given.messages[1].files).toEqual([{ path: '/p/a (1).ts', form: 'full', lines: 2 }]);
    expect(given.totals).toMatchObject({ messages: 5, files: 1, images: 0 });
    expect(answer.usage.input).toBe(given.totals.tokens);
    expect(answer.usage.output).toBe(estimateTokens(answer.text));
    expect(answer.costUsd).toBe(0);
  });

  it('answer alike to the same request and otherwise to another', async () => {
    const to = async (words: string) => (await ask({ ...question, messages: [say('user', words)] })).text;
    expect(await to('a')).toBe(await to('a'));
    expect(await to('a')).not.toBe(await to('b'));
  });

  it('stream in several chunks that give the whole text', async () => {
    const chunks: string[] = [];
    const answer = await ask({ ...question, messages: [say('user', fileText)], onText: delta => chunks.push(delta) });
    expect(chunks.length).toBeGreaterThan(1);
    expect(chunks.join('')).toBe(answer.text);
  });

  it('stop when the caller gives up', async () => {
    const caller = new AbortController();
    const asked = ask({
      ...question,
      messages: [say('user', 'x')],
      signal: caller.signal,
      onText: () => caller.abort(),
    });
    await expect(asked).rejects.toMatchObject({ kind: 'cancelled' });
  });

  it('refuse more than their window', async () => {
    const messages = [say('user', 'word and more '.repeat(100_000))];
    await expect(ask({ ...question, messages })).rejects.toMatchObject({
      details: { class: 'context_length', retryable: false },
    });
  });

  it('are chosen only by name and need no settings', () => {
    for (const provider of [offlineEast, offlineWest]) {
      expect(provider.onlyByName).toBe(true);
      expect(provider.configured({})).toBe(true);
      expect(provider.models!({}, [])[0]).toMatchObject({ provider: provider.id, window: 200_000 });
    }
  });
});

describe('shownFiles', () => {
  it('finds every form and counts the lines between the markers', () => {
    const text = [
      '--- BEGIN FILE: a.ts (lines 10-12 of 90) ---',
      '10',
      '11',
      '12',
      '--- END FILE: a.ts ---',
      '--- BEGIN DIFF: b.ts ---',
      '--- a/b.ts',
      '+++ b/b.ts',
      '--- FILE DELETED: in-the-diff.ts ---',
      '--- END DIFF: b.ts ---',
      '--- FILE DELETED: c.ts ---',
      '--- FILE UNCHANGED: d.ts ---',
      'text --- FILE DELETED: quoted.ts ---',
      '--- BEGIN FILE: empty.ts (0 lines) ---',
      '--- END FILE: empty.ts ---',
    ].join('\n');
    expect(shownFiles(text)).toEqual([
      { path: 'a.ts', form: 'range', lines: 3 },
      { path: 'b.ts', form: 'diff', lines: 3 },
      { path: 'c.ts', form: 'deleted', lines: 0 },
      { path: 'd.ts', form: 'unchanged', lines: 0 },
      { path: 'empty.ts', form: 'full', lines: 0 },
    ]);
  });
});
