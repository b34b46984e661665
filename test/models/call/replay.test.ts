import { afterEach, describe, expect, it } from 'vitest';
import type { Message } from '../../../src/core/message.ts';
import type { ExchangeNote, ExchangeRecord } from '../../../src/core/ports.ts';
import type { ModelQuestion } from '../../../src/models/ask-model.ts';
import { createModelService } from '../../../src/models/call/models.ts';
import { createReplay } from '../../../src/models/call/replay.ts';
import { providers } from '../../../src/providers/index.gen.ts';
import { type LoopVendor, loopVendors } from '../../engine/modes/agent/agent-on-vendor.ts';
import { realClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';

let fake: FakeVendor | undefined;
afterEach(() => fake?.close());

async function teamOn({ id, model, start, settings }: LoopVendor) {
  const vendor = await start();
  fake = vendor;
  const notes: ExchangeNote[] = [];
  const random = seededRandom(1);
  const team = createModelService({
    definitions: providers,
    settings: { [id]: { apiKey: 'test-key', baseUrl: vendor.url, ...settings } },
    policy: { allowed: {}, denied: [], localOnly: false, prefer: 'quality', allowUnknown: false, offline: false },
    maxThinkingTokens: 32_000,
    clock: realClock(),
    random,
    emit: () => undefined,
    logExchange: note => void notes.push(note),
  });
  const { candidates } = await team.route({ name: model, category: 'balanced', needs: {}, effort: 'high' });
  const repeat = createReplay({ route: team.route, ask: team.ask, random });
  return { vendor, team, notes, candidates, repeat };
}

/** What the log would give back of the newest exchange. */
function exchangeOf(notes: readonly ExchangeNote[]): ExchangeRecord {
  const lines = notes.slice(-2).map(note => ({ ...note, at: 0, payload: { ...note.payload } }));
  const [{ reqId, exchange, tool, provider, model }] = notes.slice(-2) as [ExchangeNote];
  return { reqId, exchange, tool, provider, model, at: 0, outcome: 'ok', lines };
}

const text = (role: Message['role'], section: Message['section'], words: string): Message => ({
  role,
  section,
  parts: [{ type: 'text', text: words }],
});
const signal = new AbortController().signal;
const look: NonNullable<ModelQuestion['tools']>[number] = {
  name: 'look',
  description: 'Looks.',
  inputSchema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
};

describe.each(loopVendors)('what $id was asked', loopVendor => {
  it('is asked again as it was, with calls of tools, their results and signed thoughts', async () => {
    const { vendor, team, notes, candidates, repeat } = await teamOn(loopVendor);
    vendor.script(
      { calls: [{ name: 'look', args: { missing: 'gate' } }], reasoning: 'I should look.' },
      { answer: 'Open.' },
    );
    const begin = [text('system', 'preamble', 'You look.'), text('user', 'turn', 'Is the gate open?')];
    const question = { reqId: 'r', tool: 'agent', candidates, tools: [look], maxOutputTokens: 4_000, signal };
    const { said = [] } = await team.ask({ ...question, messages: begin });
    const results = said.flatMap(part =>
      part.type === 'call' ? [{ id: part.id, name: part.name, text: 'open' }] : [],
    );
    const messages: Message[] = [
      ...begin,
      { role: 'assistant', section: 'turn', parts: [], said },
      { role: 'user', section: 'turn', parts: [], results },
    ];
    await team.ask({ ...question, messages });
    expect(notes.map(({ kind }) => kind)).toEqual(['request', 'response', 'request', 'response']);
    expect(notes[1]?.payload).toMatchObject({
      said: expect.arrayContaining([expect.objectContaining({ type: 'call' })]),
    });

    vendor.script({ answer: 'Still open.' });
    const answer = await repeat(exchangeOf(notes), { signal });
    expect(answer.text).toBe('Still open.');
    expect(vendor.violations).toEqual([]);
    const [, second, third] = vendor.requests;
    expect(third?.body).toEqual(second?.body);
  });
});

describe('what can’t be asked again', () => {
  it('is refused, and no vendor is asked', async () => {
    const [openai] = loopVendors;
    const { vendor, team, notes, candidates, repeat } = await teamOn(openai!);
    const messages = [text('user', 'turn', 'Hi')];
    await team.ask({ reqId: 'r', tool: 'chat', candidates, messages, maxOutputTokens: 100, signal });
    const whole = exchangeOf(notes);
    const withPayload = (change: object): ExchangeRecord => ({
      ...whole,
      lines: whole.lines.map(line => ({ ...line, payload: { ...line.payload, ...change } })),
    });
    const lost = { ...messages[0], parts: [{ type: 'text', text: { missing: '7 bytes' } }] };
    for (const exchange of [
      { ...whole, lines: [] },
      withPayload({ messages: [lost] }),
      withPayload({ messages: [{ ...messages[0], parts: [{ type: 'audio', text: 'Hi' }] }] }),
      withPayload({ messages: [{ ...messages[0], role: 'tool' }] }),
      withPayload({ messages: [{ ...messages[0], parts: [], said: [{ type: 'picture', text: 'Hi' }] }] }),
      withPayload({ messages: 'none' }),
      withPayload({ messages: [] }),
      withPayload({ maxOutputTokens: '1' }),
    ]) {
      await expect(repeat(exchange, { signal })).rejects.toMatchObject({ details: { class: 'replay' } });
    }
    await expect(repeat({ ...whole, model: 'no-such-model' }, { signal })).rejects.toThrow();
    // The vendor may be asked for its list, where nobody here knows the name.
    expect(vendor.requests.filter(({ dialect }) => dialect !== 'models')).toHaveLength(1);
  });
});
