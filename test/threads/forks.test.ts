import { describe, expect, it } from 'vitest';
import type { Compaction, Thread } from '../../src/core/thread.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { createThreads } from '../../src/threads/threads.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';

const place = { owner: 'local', workspace: '/p' };
const clock = manualClock(1_000_000);
const threads = createThreads({ store: createMemoryStore(), clock, random: seededRandom(), emit() {} });

async function say(thread: Thread, content: string, compaction?: Omit<Compaction, 'createdAt'>): Promise<Thread> {
  await clock.advance(1_000);
  const exchange = threads.newExchange();
  const timestamp = clock.now();
  const turn = { role: 'user' as const, content, timestamp, exchange, toolName: 'chat', tokens: 1 };
  const turns = [{ ...turn, seq: thread.seq + 1, files: [], images: [], citations: [] }];
  const made = compaction && { ...compaction, createdAt: timestamp };
  return threads.add(thread, exchange, { turns, status: 'done', compaction: made });
}
const fork = async (thread: Thread, upToSeq: number) =>
  threads.find((await threads.fork(thread, upToSeq, 'fork')).id, place);
const said = ({ turns }: Thread) => turns.map(({ content }) => content);

it('a thread is found by its id, however that is written', async () => {
  const { id } = await say(threads.start(place, 'chat'), 'one');
  for (const written of [id.toUpperCase(), ` "${id}"\n`, 'LAST', "'Last'"])
    expect((await threads.find(written, place)).id).toBe(id);
  for (const none of ['null', '', `${id} ${id}`, `${' '.repeat(60_000)}x y`])
    await expect(threads.find(none, place)).rejects.toThrow('Invalid continuation_id');
});

describe('a fork', () => {
  it('of a fork begins with no more than it was forked at, however far the fork between them goes', async () => {
    let root = threads.start(place, 'chat');
    for (const text of ['one', 'two', 'three', 'four']) root = await say(root, text);
    const middle = await say(await fork(root, 3), 'middle');
    expect(said(middle)).toEqual(['one', 'two', 'three', 'middle']);
    const early = await say(await fork(middle, 2), 'early');
    expect(said(await threads.find(early.id, place))).toEqual(['one', 'two', 'early']);
    expect(early.turns.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  it('keeps the summary that stood in the prompts up to its beginning, and no later one', async () => {
    let root = threads.start(place, 'chat');
    for (const text of ['one', 'two', 'three']) root = await say(root, text);
    root = await say(root, 'four', { window: 8_192, upToSeq: 2, summary: 'one and two', trims: [] });
    root = await say(root, 'five', { window: 8_192, upToSeq: 4, summary: 'all of it', trims: [] });
    const summaries = async (seq: number) => (await fork(root, seq)).compactions.map(({ summary }) => summary);
    expect(await summaries(5)).toEqual(['one and two', 'all of it']);
    expect(await summaries(4)).toEqual(['one and two']);
    expect(await summaries(3)).toEqual([]);
    const child = await say(await fork(root, 4), 'aside', {
      window: 8_192,
      upToSeq: 3,
      summary: 'the first three',
      trims: [],
    });
    const grandchild = await fork(child, child.seq);
    expect(grandchild.compactions.map(({ summary }) => summary)).toEqual(['one and two', 'the first three']);
  });

  it('goes on with the workflows of which no step came after its beginning', async () => {
    let root = await say(threads.start(place, 'chat'), 'one');
    for (const tool of ['planner', 'debug']) {
      const exchange = threads.newExchange();
      const turns = root.turns.map(turn => ({ ...turn, exchange, seq: root.seq + 1, toolName: tool }));
      root = await threads.add(root, exchange, {
        turns: turns.slice(0, 1),
        status: 'done',
        workflow: { tool, state: { tool } },
      });
    }
    expect((await fork(root, 1)).workflows).toEqual({});
    expect((await fork(root, 2)).workflows).toEqual({ planner: { tool: 'planner' } });
    const whole = await fork(root, 3);
    expect(whole.workflows).toEqual({ planner: { tool: 'planner' }, debug: { tool: 'debug' } });
    expect((await fork(await say(whole, 'more'), 4)).workflows).toEqual(whole.workflows);
  });
});
