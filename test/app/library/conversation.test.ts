import { describe, expect, it } from 'vitest';
import { libraryRig } from './library-rig.ts';

const rig = libraryRig();

describe('a conversation', () => {
  it('remembers what was said, until it is reset', async () => {
    const { createConversation } = await rig.open();
    const conversation = createConversation({ system: { custom: 'TALK' } });
    rig.vendor().script({ answer: 'Hello Ann.' }, { answer: 'Ann.' }, { answer: 'Who?' });
    await conversation.send('I am Ann.');
    await conversation.send({ message: 'Who am I?' });
    expect(rig.asked()).toMatch(/TALK[\s\S]*I am Ann\.[\s\S]*Hello Ann\.[\s\S]*Who am I\?/);
    expect(conversation.turns).toHaveLength(4);
    expect(conversation.usage.output).toBeGreaterThan(0);
    conversation.reset();
    expect(conversation.turns).toHaveLength(0);
    await conversation.send('And now?');
    expect(rig.asked()).not.toContain('Ann');
  });

  it('answers one request after the other, and a failed one leaves no trace', async () => {
    const { createConversation } = await rig.open();
    const conversation = createConversation();
    rig.vendor().script({ answer: 'First.', delayMs: 100 }, { fault: 'status', status: 400 }, { answer: 'Third.' });
    const all = ['one', 'two', 'three'].map(text => conversation.send(text));
    const [first, second, third] = await Promise.allSettled(all);
    expect([first!.status, second!.status, third!.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(rig.asked()).toMatch(/one[\s\S]*First\.[\s\S]*three/);
    expect(rig.asked()).not.toContain('two');
  });

  it('gives a request up that waits, and keeps the order of the others', async () => {
    const { createConversation, languageModel } = await rig.open();
    const conversation = createConversation();
    rig.vendor().script({ answer: 'First.', delayMs: 1_500 }, { answer: 'Third.' });
    const first = conversation.send('one');
    await expect.poll(() => rig.vendor().requests.length).toBe(1);
    const second = conversation.send({ message: 'two', signal: AbortSignal.timeout(50) });
    const third = conversation.send('three');
    await expect(second).rejects.toThrow();
    expect(rig.vendor().requests).toHaveLength(1);
    expect([(await first).text, (await third).text]).toEqual(['First.', 'Third.']);
    expect(rig.asked()).toMatch(/one[\s\S]*First\.[\s\S]*three/);
    rig.vendor().script({ answer: 'First.', delayMs: 1_500 });
    const model = languageModel('gpt-5-mini', { thread: true });
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'one' }] }];
    const asked = model.doGenerate({ prompt });
    await expect.poll(() => rig.vendor().requests.length).toBe(3);
    await expect(model.doGenerate({ prompt, abortSignal: AbortSignal.timeout(50) })).rejects.toThrow();
    expect(rig.vendor().requests).toHaveLength(3);
    await asked;
  });

  it('is changed by nothing that a program does to what it got', async () => {
    const { createConversation, tokenStats } = await rig.open();
    const conversation = createConversation();
    expect(() => Object.assign(createConversation().usage, { input: 999 })).not.toThrow();
    expect(createConversation().usage.input).toBe(0);
    rig.vendor().script({ answer: 'True.' }, { answer: 'Well.' });
    const { turns } = await conversation.send('one');
    Object.assign(turns[0]!, { parts: [{ type: 'text', text: 'FORGED' }] });
    Object.assign(conversation.turns[1]!, { parts: [], said: [{ type: 'text', text: 'FORGED' }] });
    const { input } = conversation.usage;
    conversation.usage.input = 0;
    Object.values(tokenStats().byModel)[0]!.usage.input = 0;
    expect([conversation.usage.input, tokenStats().usage.input]).toEqual([input, input]);
    await conversation.send('two');
    expect(rig.asked()).toMatch(/one[\s\S]*True\.[\s\S]*two/);
    expect(rig.asked()).not.toContain('FORGED');
  });

  it('is forgotten also by a request that was under way', async () => {
    const { createConversation } = await rig.open();
    const conversation = createConversation();
    rig.vendor().script({ answer: 'Late.', delayMs: 150 });
    const late = conversation.send('early');
    await expect.poll(() => rig.vendor().requests.length).toBe(1);
    conversation.reset();
    await late;
    expect(conversation.turns).toHaveLength(0);
  });
});

describe('100 conversations in one process', () => {
  const words = (text: string) => [...new Set([...text.matchAll(/word-\d+-/g)].map(([found]) => found))].join(' ');

  it('share nothing', async () => {
    const { createConversation } = await rig.open();
    rig.vendor().byDefault({ answer: ({ canonical }) => `I know ${words(canonical)}` });
    const conversations = Array.from({ length: 100 }, () => createConversation());
    const answers = await Promise.all(
      conversations.map(async (conversation, index) => {
        await conversation.send(`Remember word-${index}-`);
        return (await conversation.send('What do you know?')).text;
      }),
    );
    expect(answers).toEqual(conversations.map((_conversation, index) => `I know word-${index}-`));
    expect(new Set(conversations.map(({ id }) => id)).size).toBe(100);
    expect(conversations.map(({ turns }) => turns.length)).toEqual(conversations.map(() => 4));
  });

  it('do not wait for each other: all are at the vendor before one is answered', async () => {
    const { createConversation } = await rig.open();
    const stop = new AbortController();
    rig.vendor().byDefault({ delayMs: 60_000 });
    const conversations = Array.from({ length: 100 }, () => createConversation());
    const sent = conversations.map((conversation, index) =>
      conversation.send({ message: `number ${index}`, signal: stop.signal }).catch(() => 'stopped'),
    );
    await expect.poll(() => rig.vendor().requests.length).toBe(100);
    expect(rig.vendor().openSockets()).toBe(100);
    stop.abort();
    expect(await Promise.all(sent)).toEqual(sent.map(() => 'stopped'));
    // What was stopped left no trace, and the conversation goes on.
    rig.vendor().byDefault({ answer: 'Here.' });
    expect((await conversations[7]!.send('again')).text).toBe('Here.');
    expect(rig.asked()).not.toContain('number 7');
  });
});
