import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { expect, it } from 'vitest';
import type { Polylogue, SendEvent } from '../../../src/index.ts';
import { libraryRig } from './library-rig.ts';

const rig = libraryRig();
const write = { calls: [{ name: 'write_file', args: { path: 'b.txt', content: 'new' } }] };

async function all(events: AsyncIterable<SendEvent>): Promise<SendEvent[]> {
  const seen: SendEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

it('leaves decisions and chunks to the hooks of the request, of the conversation and of the defaults', async () => {
  const polylogue = await rig.open();
  const chunks: string[] = [];
  const hooks = { onToolCall: () => ({ action: 'allow' }) as const, onChunk: (text: string) => void chunks.push(text) };
  polylogue.setDefaults(hooks);
  const byDefaults = () => polylogue.stream({ message: 'go', tools: ['all'] });
  const byConversation = () => polylogue.createConversation({ ...hooks, tools: ['all'] }).stream('go');
  for (const stream of [byDefaults, byConversation]) {
    await rig.project().write('b.txt', 'old');
    chunks.length = 0;
    rig.vendor().script(write, { answer: 'Done.' });
    const events = await all(stream());
    expect(events.map(({ type }) => type)).not.toContain('approval');
    expect(await readFile(rig.project().path('b.txt'), 'utf8')).toBe('new');
    expect(chunks.join('')).toContain('Done.');
    expect(events.flatMap(event => (event.type === 'text' ? [event.text] : [])).join('')).toContain('Done.');
    polylogue.setDefaults({});
  }
});

it('goes on when onChunk fails, in whatever way', async () => {
  const polylogue = await rig.open();
  const failing = [async () => Promise.reject(new Error('late')), () => JSON.parse('no JSON')];
  for (const onChunk of failing) {
    const events = await all(polylogue.stream({ message: 'Hi.', onChunk }));
    expect(events.at(-1)?.type).toBe('done');
  }
});

it.each([
  ['a text instead of a request', 'Hi.', /send got invalid arguments: options: /],
  ['a hook that is none', { message: 'Hi.', onChunk: 'x' }, /onChunk: expected a function/],
  ['a signal that is none', { message: 'Hi.', signal: 5 }, /signal: expected an AbortSignal/],
  [
    'an answer without its parts',
    { message: 'Hi.', history: [{ role: 'assistant', section: 'turn', parts: [], said: 'x' }] },
    /history\.0\.said/,
  ],
  [
    'a result of nothing',
    { message: 'Hi.', history: [{ role: 'user', section: 'turn', parts: [], results: [{}] }] },
    /history\.0\.results\.0\.id/,
  ],
])('refuses %s as send does', async (_what, request, told) => {
  const { stream, send } = await rig.open();
  await expect(all(stream(request as never))).rejects.toThrow(told);
  await expect(send(request as never)).rejects.toThrow(told);
  await expect(send(request as never)).rejects.not.toThrow(/"0"/);
});

it.each(['retrieve', 'a tool that judges'])('ends with its signal while %s never answers', async kind => {
  const polylogue = await rig.open();
  const never = () => new Promise<never>(() => {});
  const tool = { name: 'slow', description: 'x', inputSchema: { type: 'object' }, effect: 'read', run: async () => '' };
  const request =
    kind === 'retrieve'
      ? { message: 'x', rag: { retrieve: never } }
      : { message: 'x', tools: [{ ...tool, approval: never } as never] };
  const calls = { calls: [{ name: 'slow', args: {} }] };
  rig.vendor().byDefault(kind === 'retrieve' ? {} : calls);
  await expect(polylogue.send({ ...request, signal: AbortSignal.timeout(200) })).rejects.toMatchObject({
    name: /Timeout|AppError/,
  });
  const events = polylogue.stream(request);
  const first = events.next().catch(() => undefined);
  const left = events.return();
  await polylogue.cleanup();
  await Promise.all([first, left]);
});

it('has one tool of a name: that of onQuestion is taken', async () => {
  const { send } = await rig.open();
  const run = async () => 'x';
  const tool = {
    name: 'ask_question',
    description: 'x',
    inputSchema: { type: 'object' },
    effect: 'read',
    run,
  } as const;
  const sent = send({ message: 'x', tools: [tool], onQuestion: () => 'yes' });
  await expect(sent).rejects.toMatchObject({ message: expect.stringContaining('"ask_question"'), kind: 'input' });
});

it('takes a root that is relative, and refuses one that is not there', async () => {
  const root = relative(process.cwd(), rig.project().path('src'));
  const { send } = await rig.open({ root });
  expect((await send({ message: 'x', files: ['a.ts'] })).skipped).toEqual([]);
  expect(rig.asked()).toContain('export const one');
  await expect(rig.open({ root: `${root}/nowhere` })).rejects.toThrow(/"root" is no directory/);
});

it('says of what is too long the numbers that were compared', async () => {
  const { send } = await rig.open();
  const sent = send({ message: 'word '.repeat(500_000), model: 'gpt-5-mini' });
  const { message } = await sent.then(
    () => ({ message: '' }),
    error => error,
  );
  const [, tokens = 0, takes = 0] = /about (\d+) tokens; gpt-5-mini takes (\d+)\./.exec(message) ?? [];
  expect(Number(tokens)).toBeGreaterThan(Number(takes));
  expect(Number(takes)).toBeGreaterThan(0);
});

it.each<[string, (polylogue: Polylogue) => () => Promise<unknown>]>([
  [
    'return()',
    polylogue => {
      const events = polylogue.stream({ message: 'Hi.' });
      const next = events.next();
      return async () => {
        await events.return();
        expect(await next).toEqual({ done: true, value: undefined });
      };
    },
  ],
  [
    'throw()',
    polylogue => {
      const events = polylogue.stream({ message: 'Hi.' });
      void events.next();
      return () => expect(events.throw(new Error('mine'))).rejects.toThrow('mine');
    },
  ],
  [
    'cancel() of a web stream',
    polylogue => {
      const reader = ReadableStream.from(polylogue.stream({ message: 'Hi.' })).getReader();
      void reader.read();
      return () => reader.cancel();
    },
  ],
])('is ended by %s while the model is silent', async (_what, begin) => {
  const polylogue = await rig.open();
  rig.vendor().script({ fault: 'hang_before_headers' });
  const end = begin(polylogue);
  await expect.poll(() => rig.vendor().requests.length).toBe(1);
  await end();
  await expect.poll(() => rig.vendor().openSockets()).toBe(0);
});
