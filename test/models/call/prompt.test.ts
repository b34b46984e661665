import { describe, expect, it } from 'vitest';
import { type Message, tailHeading } from '../../../src/core/message.ts';
import { createReplyAccumulator, toPrompt } from '../../../src/models/call/messages.ts';
import type { Connection } from '../../../src/models/provider.ts';
import { ownTime } from '../../support/own-time.ts';
import { modelInfo, say, scriptedConnection } from '../scripted-model.ts';

const mark = { vendor: { mark: true } };
const connect = (extra: Partial<Connection> = {}) => scriptedConnection([[]], extra).connection;
const withTail = (role: 'system' | 'user') => connect({ tailRole: () => role });
const tail = say('user', `${tailHeading}\nDo it.`, { section: 'tail' });
const build = (messages: Message[], connection = connect(), model = modelInfo()) =>
  toPrompt(messages, connection, model);
const roles = (messages: Message[], connection?: Connection) =>
  build(messages, connection).prompt.map(({ role }) => role);

describe('toPrompt', () => {
  it('keeps roles and order, and puts the tail last wherever it stood', () => {
    const { prompt } = build(
      [say('system', 'S'), tail, say('user', 'U'), say('assistant', 'A'), say('user', 'V')],
      withTail('system'),
    );
    expect(prompt.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'system']);
    expect(prompt.at(-1)).toMatchObject({ role: 'system', content: `${tailHeading}\nDo it.` });
  });

  it('sends the tail as a part of its own in the last user message where instructions may not come late', () => {
    const { prompt } = build([say('user', 'U'), tail], withTail('user'));
    expect(prompt).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'U' },
          { type: 'text', text: `${tailHeading}\nDo it.` },
        ],
      },
    ]);
  });

  it('turns a system message after the conversation began into what the model takes', () => {
    const messages = [say('system', 'S'), say('user', 'U'), say('system', 'Late'), say('assistant', 'A')];
    expect(roles(messages, withTail('system'))).toEqual(['system', 'user', 'system', 'assistant']);
    expect(roles(messages, withTail('user'))).toEqual(['system', 'user', 'assistant']);
  });

  it('joins messages of one role that follow each other, in separate parts', () => {
    const { prompt } = build([say('user', 'a'), say('user', 'b'), say('assistant', 'c'), say('assistant', 'd')]);
    expect(prompt.map(({ content }) => content.length)).toEqual([2, 2]);
  });

  it('leaves out blank parts and messages without any', () => {
    expect(build([say('user', ' \n'), say('user', 'x'), say('assistant', '')]).prompt).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'x' }] },
    ]);
  });

  it('sends images as file parts, and says so when the model sees none', () => {
    const image = { type: 'image', mediaType: 'image/png', data: new Uint8Array([1, 2]) } as const;
    const messages = [say('user', 'x', { parts: [{ type: 'text', text: 'x' }, image, image] })];
    expect(build(messages).prompt[0]!.content[1]).toEqual({
      type: 'file',
      mediaType: 'image/png',
      data: { type: 'data', data: image.data },
    });
    const blind = build(messages, connect(), modelInfo({ input: ['text'] }));
    expect(blind.prompt[0]!.content).toHaveLength(1);
    expect(blind.warnings).toEqual(['Images were left out: alpha:alpha-1 takes none.']);
  });

  it('marks the last part of marked messages: the first and the three newest, never the tail', () => {
    const turns = [1, 2, 3, 4, 5].flatMap(n => [say('user', `q${n}`, { cacheMark: true }), say('assistant', `a${n}`)]);
    const { prompt } = build(
      [say('system', 'S', { cacheMark: true }), ...turns, { ...tail, cacheMark: true }],
      connect({ cacheMark: mark }),
    );
    const marked = prompt.filter(
      message =>
        message.providerOptions ||
        (Array.isArray(message.content) && message.content.some(part => part.providerOptions)),
    );
    expect(
      marked.map(({ content }) =>
        typeof content === 'string' ? content : content.map(part => (part.type === 'text' ? part.text : '')).join(),
      ),
    ).toEqual(['S', 'q3', 'q4', 'q5']);
  });

  it('marks nothing where the vendor wants no marks', () => {
    expect(
      JSON.stringify(build([say('system', 'S', { cacheMark: true }), say('user', 'U', { cacheMark: true })]).prompt),
    ).not.toContain('providerOptions');
  });

  it('cuts long system text into blocks for vendors with marks, never inside of a character, the mark on the last', () => {
    const long = '🎉'.repeat(100_000);
    const { prompt } = build([say('system', `x${long}`, { cacheMark: true })], connect({ cacheMark: mark }));
    expect(prompt.length).toBe(2);
    expect(prompt.map(({ content }) => content).join('')).toBe(`x${long}`);
    for (const { content } of prompt) expect(String(content).isWellFormed()).toBe(true);
    expect(prompt.map(({ providerOptions }) => providerOptions)).toEqual([undefined, mark]);
  });
});

describe('the calls of one answer', () => {
  const idsOf = (ids: readonly string[]) => {
    const reply = createReplyAccumulator('openai', 'openai', false);
    for (const toolCallId of ids) reply.take({ type: 'tool-call', toolCallId, toolName: 'look', input: '{}' });
    const calls = reply.parts().flatMap(part => (part.type === 'call' ? part.id : []));
    expect(reply.calls()).toBe(calls.length);
    return calls;
  };

  it('have each an id of its own, whatever the server gives', () => {
    expect(idsOf(['a.b:c', '', 'call', '', 'call_4', 'a.b:c'])).toEqual([
      ...['a.b:c', 'call', 'call_3', 'call_4', 'call_4_5', 'a.b:c_6'],
    ]);
  });

  it.each([
    ['without ids', ''],
    ['with one id', 'same'],
    ['with ids', undefined],
  ])('are taken in linear time: %s', (_what, id) => {
    const began = ownTime();
    expect(new Set(idsOf(Array.from({ length: 8_000 }, (_each, at) => id ?? `u${at}`))).size).toBe(8_000);
    expect(ownTime() - began).toBeLessThan(500);
  });
});
