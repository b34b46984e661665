import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import { start, threadWith } from '../../contracts/store-fixtures.ts';
import { realClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import { generatedThread } from './generated-thread.ts';
import { here, recordsOf, there, transferRig } from './transfer-rig.ts';

describe('a thread that is exported, imported and exported', () => {
  it('is the same file byte for byte, for 100 generated threads, from store to store', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'polylogue-transfer-'));
    const sqlite = createSqliteStore({
      file: join(folder, 'threads.sqlite'),
      clock: realClock(),
      onWarning: message => {
        throw new Error(message);
      },
    });
    const from = transferRig();
    const to = transferRig(sqlite);
    const random = seededRandom(42);
    let turns = 0;
    for (let index = 0; index < 100; index++) {
      const { id } = await generatedThread(from.store, random);
      const first = await from.exported(id);
      const { thread } = await to.imported(first);
      expect(thread).toMatchObject({ id, ...there });
      expect(await to.exported(id, 'jsonl', there)).toBe(first);
      turns += thread.seq;
    }
    expect(turns).toBeGreaterThan(500);
    await sqlite.close();
    await rm(folder, { recursive: true });
  });

  it('reads there as it read here, and renders to the same prompt', async () => {
    const from = transferRig();
    const to = transferRig();
    const { id } = await generatedThread(from.store, seededRandom(5));
    await to.imported(await from.exported(id));
    const mine = await from.threads.find(id, here);
    const theirs = await to.threads.find(id, there);
    expect(theirs.turns.length).toBeGreaterThan(3);
    expect(theirs.turns).toEqual(mine.turns);
    expect(theirs.compactions).toEqual(mine.compactions);
    expect(theirs.workflows).toEqual(mine.workflows);
  });

  it('comes back by its file when it was removed or expired, and never over one that is there', async () => {
    const rig = transferRig();
    const { id } = await threadWith(rig.store, ['a', 'b']);
    const file = await rig.exported(id);
    await expect(rig.imported(file, { place: here })).rejects.toMatchObject({
      details: { class: 'exists', next: expect.stringContaining('--as-new') },
    });
    await rig.store.remove(id, start);
    await rig.imported(file, { place: here });
    expect(await rig.exported(id)).toBe(file);
    await rig.clock.advance(31 * 24 * 3_600_000);
    await expect(rig.threads.find(id, here)).rejects.toMatchObject({ details: { code: 'THREAD_EXPIRED' } });
    await rig.imported(file, { place: here });
    expect(await rig.exported(id)).toBe(file);
  });

  it('comes beside the one that is there, as a new one, with all but its id', async () => {
    const rig = transferRig();
    const { id } = await generatedThread(rig.store, seededRandom(5));
    const file = await rig.exported(id);
    const { thread } = await rig.imported(file, { asNew: true, place: here });
    expect(thread.id).not.toBe(id);
    const copy = recordsOf(await rig.exported(thread.id));
    const [header, head, ...rest] = recordsOf(file);
    expect(copy[0]).toEqual(header);
    expect(copy[1]).toEqual({ ...head, head: { ...Object(head?.head), id: thread.id } });
    expect(copy.slice(2)).toEqual(rest);
  });

  it('that is a fork has the turns it begins with, and is whole where its original is not known', async () => {
    const rig = transferRig();
    const parent = await threadWith(rig.store, ['a', 'b', 'c', 'd']);
    const whole = await rig.threads.find(parent.id, here);
    const child = await rig.threads.fork(whole, 2, 'Another way');
    const fork = await rig.threads.find(child.id, here);
    const exchange = rig.threads.newExchange();
    const turn = { ...whole.turns[2]!, seq: 3, content: 'else', exchange };
    await rig.threads.add(fork, exchange, { turns: [turn], status: 'done' });

    const file = await rig.exported(child.id);
    const turnLines = (text: string) => recordsOf(text).filter(({ kind }) => kind === 'turn');
    expect(turnLines(file).slice(0, 2)).toEqual(turnLines(await rig.exported(parent.id)).slice(0, 2));
    const elsewhere = transferRig();
    await elsewhere.imported(file);
    const there_ = await elsewhere.threads.find(child.id, there);
    expect(there_.turns.map(({ content }) => content)).toEqual(['a', 'b', 'else']);
    expect(there_.parent).toBeUndefined();
    expect(await elsewhere.exported(child.id, 'jsonl', there)).toBe(file);
  });

  it('with a question that nobody answered yet has it as interrupted', async () => {
    const rig = transferRig();
    const thread = rig.threads.start(here, 'chat');
    const exchange = rig.threads.newExchange();
    const { id } = await threadWith(rig.store, ['a']);
    const turn = { ...(await rig.threads.find(id, here)).turns[0]!, exchange };
    await rig.threads.add(thread, exchange, { turns: [turn], status: 'pending' });
    const file = await rig.exported(thread.id);
    expect(recordsOf(file)[2]).toMatchObject({ turn: { status: 'interrupted' } });
    await rig.store.remove(thread.id, start);
    await rig.imported(file, { place: here });
    expect(await rig.exported(thread.id)).toBe(file);
  });

  it('does without texts that the store lost, and says how many', async () => {
    const from = transferRig();
    const { id } = await generatedThread(from.store, seededRandom(11));
    const lost = (await from.exported(id)).split('"kind":"blob"').length - 1;
    expect(lost).toBeGreaterThan(1);
    Object.assign(from.store, { blobs: async () => new Map() });
    const file = await from.exported(id);
    const { missing, blobs } = await transferRig().imported(file);
    expect({ missing, blobs }).toEqual({ missing: lost, blobs: 0 });
  });
});
