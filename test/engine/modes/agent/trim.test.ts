import { describe, expect, it } from 'vitest';
import type { Message } from '../../../../src/core/message.ts';
import { textOf } from '../../../../src/core/message.ts';
import {
  type Conversation,
  type Exchange,
  messagesOf,
  trimConversation,
  trimRule,
} from '../../../../src/engine/modes/agent/conversation-window.ts';
import { asMessage } from '../../../../src/threads/transcript.ts';
import { modelInfo } from '../../../models/scripted-model.ts';

const words = (tokens: number) => 'ago '.repeat(tokens);
const round = (id: string, tokens: number): Exchange => ({
  said: [{ type: 'call', id, name: 'look', args: {} }],
  results: [{ id, name: 'look', text: `${id} ${words(tokens)}` }],
});
const conversation = (exchanges: Exchange[], history: Message[] = []): Conversation => ({
  mark: '0',
  preamble: [asMessage('system', 'preamble', 'You work.')],
  history,
  task: asMessage('user', 'turn', 'The task.'),
  exchanges,
});
const room = { answer: 8_000, truncLimit: 1_000_000 };
const model = (provider: string, window = 1_000_000) => modelInfo({ provider, id: 'm', window, maxOutput: 8_000 });

/** Every call stands right before its result, and no result alone. */
function isPaired(messages: readonly Message[]): boolean {
  return messages.every((message, index) => {
    const calls = message.said?.flatMap(part => (part.type === 'call' ? [part.id] : [])) ?? [];
    const results = messages[index + 1]?.results?.map(({ id }) => id) ?? [];
    const before = messages[index - 1]?.said !== undefined;
    return calls.every(id => results.includes(id)) && (message.results === undefined || before);
  });
}

describe('a conversation that has grown', () => {
  it('loses its oldest rounds above 180,000 tokens at Anthropic and MiniMax, never the task or the newest', () => {
    const rounds = Array.from({ length: 8 }, (_, index) => round(`r${index}`, 30_000));
    for (const provider of ['anthropic', 'minimax']) {
      const { conversation: left, entries } = trimConversation(conversation(rounds), model(provider), room);
      expect(entries).toBeGreaterThan(1);
      expect(left.exchanges.at(-1)).toBe(rounds.at(-1));
      expect(left.exchanges).toEqual(rounds.slice(entries));
      expect(isPaired(messagesOf(left, room.truncLimit))).toBe(true);
      expect(left.task).toEqual(conversation([]).task);
    }
    expect(trimConversation(conversation(rounds.slice(0, 3)), model('anthropic'), room).entries).toBe(0);
  });

  it('goes from 40 % of 900,000 down to 30 % at Google, and keeps four entries', () => {
    const rounds = Array.from({ length: 12 }, (_, index) => round(`r${index}`, 30_000));
    const { conversation: left, entries } = trimConversation(conversation(rounds), model('google'), room);
    expect(entries).toBeGreaterThan(2);
    expect(left.exchanges.length).toBeGreaterThanOrEqual(4);
    const few = Array.from({ length: 4 }, (_, index) => round(`r${index}`, 120_000));
    expect(trimConversation(conversation(few), model('google'), room).conversation.exchanges).toHaveLength(4);
    expect(trimRule(model('google'), 8_000)).toEqual({ above: 360_000, downTo: 270_000, least: 4 });
  });

  it('is kept within the window elsewhere, and earlier turns go first', () => {
    const earlier: Message[] = [
      asMessage('user', 'turn', `Before. ${words(20_000)}`),
      { role: 'assistant', section: 'turn', parts: [], said: round('h', 1).said },
      { role: 'user', section: 'turn', parts: [], results: round('h', 20_000).results },
      asMessage('assistant', 'turn', 'So it was.'),
    ];
    const rounds = [round('r0', 10_000), round('r1', 10_000)];
    const { conversation: left } = trimConversation(conversation(rounds, earlier), model('openai', 64_000), room);
    expect(left.exchanges).toEqual(rounds);
    expect(left.history.length).toBeLessThan(4);
    const messages = messagesOf(left, room.truncLimit);
    expect(isPaired(messages)).toBe(true);
    expect(messages.map(textOf).join('')).toContain('The task.');
  });

  it('loses a stale block of changed files before anything else', () => {
    const rounds = Array.from({ length: 6 }, (_, index) => round(`r${index}`, 20_000));
    const stale = { ...conversation(rounds), refresh: { after: rounds[2]!, text: words(80_000) } };
    const { conversation: left, entries } = trimConversation(stale, model('anthropic'), room);
    expect(left.refresh).toBeUndefined();
    expect(entries).toBeLessThan(3);
  });
});
