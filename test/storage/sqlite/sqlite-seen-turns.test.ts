import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAppError } from '../../../src/core/errors.ts';
import { changeOf, hashOf, newExchangeId, threadWith, turnOf } from '../../contracts/store-fixtures.ts';
import { liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';

describe('turns that were read before', () => {
  let place: SqlitePlace;
  beforeEach(async () => {
    place = await sqlitePlace();
  });
  afterEach(() => place.dispose());

  const texts = (count: number) => Array.from({ length: count }, (_, n) => `text ${n + 1}`);
  const inFile = (sql: string, ...values: (string | number)[]) => {
    const db = new DatabaseSync(place.file);
    try {
      return db.prepare(sql).run(...values).changes;
    } finally {
      db.close();
    }
  };

  it('are read together with what another process wrote since, and how its exchanges ended', async () => {
    const [reader, writer] = [place.open(), place.open()];
    const { id } = await threadWith(writer, texts(6));
    expect((await liveThread(reader, id)).turns).toHaveLength(6);
    const exchange = newExchangeId();
    for (const [at, status] of (['pending', 'interrupted', 'done'] as const).entries()) {
      const turns = at === 0 ? [turnOf(7, { exchange, content: 'the new one' })] : [];
      await writer.commit(id, changeOf(at === 0 ? 6 : 7, { turns, exchange: { id: exchange, status } }));
      const thread = await liveThread(reader, id);
      expect(thread.turns.map(turn => turn.content)).toEqual([...texts(6), 'the new one']);
      expect(thread.turns.map(turn => turn.status)).toEqual([...Array(6).fill('done'), status]);
      expect(thread).toEqual(await liveThread(place.open(), id));
    }
  });

  it('show also an old exchange that ends another way', async () => {
    const [reader, writer] = [place.open(), place.open()];
    const { id } = await threadWith(writer, texts(8));
    const [, , third] = (await liveThread(reader, id)).turns;
    await writer.commit(id, changeOf(8, { exchange: { id: third!.exchange, status: 'failed' } }));
    const { turns } = await liveThread(reader, id);
    expect(turns.map(({ status }) => status)).toEqual([
      'done',
      'done',
      'failed',
      'failed',
      'done',
      'done',
      'done',
      'done',
    ]);
  });

  it('can’t be changed by who got them', async () => {
    const store = place.open();
    const { id } = await threadWith(store, texts(2));
    const thread = await liveThread(store, id);
    expect(() => thread.turns[0]!.files.push({ path: '/x' } as never)).toThrow(TypeError);
    expect(() => Object.assign(thread.turns[0]!, { content: 'another' })).toThrow(TypeError);
    thread.turns.length = 0;
    expect((await liveThread(store, id)).turns.map(({ content }) => content)).toEqual(texts(2));
  });

  it('are verified once a process: one that rots on the disk later is served as it was, also by other processes', async () => {
    const store = place.open();
    const { id } = await threadWith(store, texts(4));
    const whole = await liveThread(store, id);
    const wrong = inFile(
      "UPDATE records SET body = replace(body, 'text 2', 'text 9') WHERE kind = 'turn' AND body LIKE '%text 2%'",
    );
    expect(wrong).toBe(1);
    expect(await liveThread(store, id)).toEqual(whole);
    expect(place.warnings).toEqual([]);
    // What it was before still stands in the log.
    expect(await liveThread(place.open(), id)).toEqual(whole);
    expect(place.warnings).toEqual([expect.stringContaining('1 threads were kept whole.')]);
  });

  it('are not served when the newest of them are gone from the file', async () => {
    const store = place.open();
    const { id } = await threadWith(store, texts(4));
    await liveThread(store, id);
    await store.commit(id, changeOf(4, { turns: [turnOf(5), turnOf(6)] }));
    inFile("DELETE FROM records WHERE n IN (SELECT n FROM records WHERE kind = 'turn' ORDER BY n DESC LIMIT 2)");
    await expect(store.read(id, 1)).rejects.toSatisfy(isAppError);
  });

  it('of a removed thread are gone', async () => {
    const [reader, writer] = [place.open(), place.open()];
    const { id } = await threadWith(writer, texts(2));
    const { createdAt } = await liveThread(reader, id);
    await writer.remove(id, createdAt);
    expect(await reader.read(id, createdAt)).toMatchObject({ state: 'deleted' });
  });

  it('leave the texts of files readable for as long as these are in the file', async () => {
    const store = place.open();
    const { id } = await threadWith(store, texts(2));
    const blob = { sha256: hashOf('a file'), text: 'a file' };
    const image = { source: 'data:', mediaType: 'image/png', blob: blob.sha256 };
    await store.commit(id, changeOf(2, { turns: [turnOf(3, { images: [image] })], blobs: [blob] }));
    for (let reads = 0; reads < 2; reads++)
      expect(await store.blobs([blob.sha256])).toEqual(new Map([[blob.sha256, blob.text]]));
    await store.remove(id, 1);
    expect(await store.blobs([blob.sha256])).toEqual(new Map());
  });
});
