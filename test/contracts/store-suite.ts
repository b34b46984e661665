import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FileRecord } from '../../src/core/file.ts';
import type { ThreadId } from '../../src/core/ids.ts';
import type { JsonObject } from '../../src/core/json.ts';
import type { AttemptRecord, Compaction, Thread } from '../../src/core/thread.ts';
import type { Store } from '../../src/storage/store.ts';
import {
  changeOf,
  hashOf,
  headOf,
  hour,
  jobOf,
  newExchangeId,
  newThreadId,
  start,
  threadWith,
  turnOf,
} from './store-fixtures.ts';

export interface OpenedStore {
  store: Store;
  /** Closes the store and opens another one on the same threads; absent where they end with the store. */
  reopen?: () => Promise<Store>;
  /** Without a `reopen`: threads end with the store, which is so on purpose. */
  lasts?: false;
  close: () => Promise<void>;
}

async function live(store: Store, id: ThreadId, now = start): Promise<Thread> {
  const found = await store.read(id, now);
  if (found.state !== 'live') throw new Error(`the thread is ${found.state}`);
  return found.value;
}

const refusal = (kind: string) => ({ kind: 'storage', details: { code: 'STORAGE', class: kind } });

/** What every store has to do. */
export function storeSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} as a store`, () => {
    let opened: OpenedStore;
    let store: Store;

    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(() => opened.close());

    describe('threads', () => {
      it('gives back what was stored, in every member', async () => {
        const head = headOf({
          parent: { thread: newThreadId(), seq: 4 },
          title: 'Zürich 東京 🦜',
          initialContext: { text: 'a\u0000b\n"c"', list: [1, null, true, { deep: 'é' }] },
        });
        const exchange = newExchangeId();
        const file: FileRecord = {
          path: '/home/ann/a.ts',
          form: 'range',
          size: 5,
          mtimeMs: 1.5,
          lines: 9,
          sha256: hashOf('disk'),
          base: hashOf('base'),
          shown: hashOf('shown'),
          range: { from: 2, to: 4 },
        };
        const turns = [
          turnOf(1, { exchange, content: 'Ünïcödé 🦜🏽 \u202e \u0000 end', files: [file] }),
          turnOf(2, {
            exchange,
            modelProvider: 'openai',
            modelName: 'gpt-x',
            modelMetadata: {
              effort: 'high',
              usage: { input: 1, output: 2, reasoning: 3, cacheRead: 4, cacheWrite: 5 },
              costUsd: 0.25,
            },
            images: [{ source: 'data:', mediaType: 'image/png', blob: hashOf('image') }],
            citations: [{ title: 'T', url: 'https://example.org', provider: 'openai' }],
          }),
        ];
        await store.create(head);
        const seq = await store.commit(
          head.id,
          changeOf(0, {
            turns,
            exchange: { id: exchange, status: 'done' },
            tokens: 12,
            costUsd: 0.5,
            title: 'New title',
          }),
        );
        expect(seq).toBe(2);
        const expected = {
          ...head,
          title: 'New title',
          updatedAt: start + 1000,
          totals: { tokens: 12, costUsd: 0.5 },
          seq: 2,
        };
        expect(await store.head(head.id, start)).toStrictEqual({ state: 'live', value: expected });
        expect(await live(store, head.id)).toStrictEqual({
          ...expected,
          turns: turns.map(turn => ({ ...turn, status: 'done' })),
          compactions: [],
          workflows: {},
        });
      });

      it('keeps turns of a megabyte', async () => {
        const text = 'Žluťoučký kůň 🐎\n'.repeat(55_000);
        const { id } = await threadWith(store, [text, 'short']);
        expect((await live(store, id)).turns.map(turn => turn.content)).toEqual([text, 'short']);
      });

      it('makes halves of surrogate pairs harmless', async () => {
        const { id } = await threadWith(store, ['broken \ud83e here', 'and \udd9c here']);
        expect((await live(store, id)).turns.map(turn => turn.content)).toEqual([
          'broken \ufffd here',
          'and \ufffd here',
        ]);
      });

      it('does not change what it stored when the caller changes his copy', async () => {
        const head = headOf({ initialContext: { list: ['mine'] } });
        await store.create(head);
        const turn = turnOf(1);
        await store.commit(head.id, changeOf(0, { turns: [turn] }));
        turn.content = 'changed';
        head.initialContext.list = [];
        const first = await live(store, head.id);
        first.turns.length = 0;
        first.initialContext.list = [];
        const again = await live(store, head.id);
        expect(again.turns[0]?.content).toBe('Turn number 1.');
        expect(again.initialContext).toEqual({ list: ['mine'] });
      });

      it('numbers the turns of a fork on from where it begins', async () => {
        const parent = await threadWith(store, ['a', 'b', 'c', 'd']);
        const child = headOf({ parent: { thread: parent.id, seq: 2 }, seq: 2 });
        await store.create(child);
        expect(await live(store, child.id)).toMatchObject({ parent: child.parent, seq: 2, turns: [] });
        expect(await store.commit(child.id, changeOf(2, { turns: [turnOf(3)] }))).toBe(3);
        expect((await live(store, child.id)).turns.map(turn => turn.seq)).toEqual([3]);
        expect((await live(store, parent.id)).seq).toBe(4);
      });

      it('refuses an id that is there already', async () => {
        const head = headOf();
        await store.create(head);
        await expect(store.create(head)).rejects.toMatchObject(refusal('conflict'));
      });

      it('refuses an id whose thread was removed', async () => {
        const head = headOf();
        await store.create(head);
        await store.remove(head.id, start);
        await expect(store.create(head)).rejects.toMatchObject(refusal('conflict'));
      });

      it('adds to the totals and keeps the title unless told', async () => {
        const head = headOf({ title: 'Kept' });
        await store.create(head);
        await store.commit(head.id, changeOf(0, { tokens: 10, costUsd: 0.25 }));
        await store.commit(head.id, changeOf(0, { tokens: 5, costUsd: 0.5 }));
        expect(await live(store, head.id)).toMatchObject({
          title: 'Kept',
          totals: { tokens: 15, costUsd: 0.75 },
          seq: 0,
        });
      });
    });

    describe('changes', () => {
      it('refuses one that was made on another state, and says where the thread stands', async () => {
        const { id } = await threadWith(store, ['a', 'b']);
        const late = store.commit(id, changeOf(1, { turns: [turnOf(2)] }));
        await expect(late).rejects.toMatchObject({ kind: 'storage', details: { class: 'conflict', data: { seq: 2 } } });
        await expect(store.commit(id, changeOf(3))).rejects.toMatchObject(refusal('conflict'));
        expect((await live(store, id)).turns.map(turn => turn.content)).toEqual(['a', 'b']);
      });

      it('take effect in the order in which they were asked for, awaited or not', async () => {
        const head = headOf();
        const answered: string[] = [];
        const first = changeOf(0, { turns: [turnOf(1)] });
        const second = changeOf(1, { turns: [turnOf(2)] });
        await Promise.all([
          store.create(head).then(() => answered.push('create')),
          store.commit(head.id, first).then(seq => answered.push(`seq ${seq}`)),
          store.commit(head.id, second).then(seq => answered.push(`seq ${seq}`)),
        ]);
        expect(answered).toEqual(['create', 'seq 1', 'seq 2']);
        expect((await live(store, head.id)).turns).toHaveLength(2);
      });

      it('refuses turns that leave a gap', async () => {
        const { id } = await threadWith(store, ['a', 'b']);
        await expect(store.commit(id, changeOf(2, { turns: [turnOf(4)] }))).rejects.toMatchObject({ kind: 'bug' });
        expect((await live(store, id)).seq).toBe(2);
      });

      it('leaves nothing of a change that it refuses', async () => {
        const { id } = await threadWith(store, ['a', 'b']);
        const before = await live(store, id);
        const change = changeOf(2, {
          turns: [turnOf(3), turnOf(5)],
          exchange: { id: newExchangeId(), status: 'done' },
          blobs: [{ sha256: hashOf('x'), text: 'x' }],
          workflow: { tool: 'debug', state: { step: 1 } },
          compaction: { window: 1, upToSeq: 1, summary: 's', trims: [], createdAt: start },
          title: 'changed',
          tokens: 5,
        });
        await expect(store.commit(id, change)).rejects.toThrow();
        expect(await live(store, id)).toStrictEqual(before);
        expect(await store.blobs([hashOf('x')])).toEqual(new Map());
      });

      it('lets exactly one of many changes on the same state win', async () => {
        const { id } = await threadWith(store, []);
        const changes = Array.from({ length: 50 }, (_, index) =>
          store.commit(id, changeOf(0, { turns: [turnOf(1, { content: `from ${index}` })] })),
        );
        const results = await Promise.allSettled(changes);
        const won = results.flatMap((result, index) => (result.status === 'fulfilled' ? [index] : []));
        expect(won).toHaveLength(1);
        for (const result of results) {
          if (result.status === 'rejected') expect(result.reason).toMatchObject(refusal('conflict'));
        }
        expect((await live(store, id)).turns.map(turn => turn.content)).toEqual([`from ${won[0]}`]);
      });

      it('takes every one of many changes that try again, in one row without a gap', async () => {
        const { id } = await threadWith(store, []);
        const add = async (name: string): Promise<void> => {
          for (;;) {
            const { seq } = await live(store, id);
            try {
              await store.commit(id, changeOf(seq, { turns: [turnOf(seq + 1, { content: name })] }));
              return;
            } catch (error) {
              expect(error).toMatchObject(refusal('conflict'));
            }
          }
        };
        const names = Array.from({ length: 50 }, (_, index) => `writer ${index}`);
        await Promise.all(names.map(add));
        const { turns } = await live(store, id);
        expect(turns.map(turn => turn.seq)).toEqual(names.map((_, index) => index + 1));
        expect(new Set(turns.map(turn => turn.content))).toEqual(new Set(names));
      });

      it('refuses threads that are unknown, removed or expired', async () => {
        const removed = await threadWith(store, []);
        await store.remove(removed.id, start);
        const expired = await threadWith(store, [], { expiresAt: start + 10 });
        for (const id of [newThreadId(), removed.id, expired.id]) {
          await expect(store.commit(id, changeOf(0))).rejects.toMatchObject(refusal('conflict'));
        }
        const late = changeOf(0, { now: start + 10 });
        const { id } = await threadWith(store, [], { expiresAt: start + 10 });
        await expect(store.commit(id, late)).rejects.toMatchObject(refusal('conflict'));
        expect(await store.commit(id, { ...late, now: start + 9 })).toBe(0);
      });
    });

    describe('exchanges', () => {
      it('are pending until their status is set, and can be set later', async () => {
        const { id } = await threadWith(store, []);
        const exchange = newExchangeId();
        await store.commit(id, changeOf(0, { turns: [turnOf(1, { exchange })] }));
        expect((await live(store, id)).turns[0]?.status).toBe('pending');
        for (const status of ['interrupted', 'failed', 'done'] as const) {
          await store.commit(id, changeOf(1, { exchange: { id: exchange, status } }));
          expect((await live(store, id)).turns[0]?.status).toBe(status);
        }
      });

      it('keep the attempts that they took, with each of their turns', async () => {
        const { id } = await threadWith(store, []);
        const exchange = newExchangeId();
        const failed: AttemptRecord = {
          provider: 'a',
          model: 'm',
          outcome: 'failed',
          class: 'auth',
          at: start,
          elapsedMs: 5,
          next: 'b:n',
        };
        const usage = { input: 9, output: 2, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
        const ok: AttemptRecord = {
          provider: 'b',
          model: 'n',
          outcome: 'ok',
          at: start + 9,
          elapsedMs: 4,
          usage,
          costUsd: 0.5,
          next: 'none',
        };
        const attempts = [failed, ok];
        await store.commit(id, changeOf(0, { turns: [turnOf(1, { exchange })] }));
        await store.commit(
          id,
          changeOf(1, { turns: [turnOf(2, { exchange })], exchange: { id: exchange, status: 'done', attempts } }),
        );
        expect((await live(store, id)).turns.map(turn => turn.attempts)).toEqual([attempts, attempts]);
      });

      it('pass their status to turns that join them', async () => {
        const { id } = await threadWith(store, []);
        const exchange = newExchangeId();
        await store.commit(
          id,
          changeOf(0, { turns: [turnOf(1, { exchange })], exchange: { id: exchange, status: 'done' } }),
        );
        await store.commit(id, changeOf(1, { turns: [turnOf(2, { exchange, content: 'a latecomer' })] }));
        expect((await live(store, id)).turns.map(turn => turn.status)).toEqual(['done', 'done']);
        const hits = await store.search({ owner: 'local', text: 'latecomer', limit: 5, now: start });
        expect(hits.map(hit => hit.seq)).toEqual([2]);
      });
    });

    describe('workflow states and compactions', () => {
      it('keeps one state a tool, replaces and removes it', async () => {
        const { id } = await threadWith(store, []);
        const set = (tool: string, state: { step: number } | null) =>
          store.commit(id, changeOf(0, { workflow: { tool, state } }));
        await set('debug', { step: 1 });
        await set('codereview', { step: 7 });
        await set('__proto__', { step: 9 });
        await set('debug', { step: 2 });
        expect(Object.entries((await live(store, id)).workflows).sort()).toEqual([
          ['__proto__', { step: 9 }],
          ['codereview', { step: 7 }],
          ['debug', { step: 2 }],
        ]);
        await set('debug', null);
        await set('never-there', null);
        expect(Object.keys((await live(store, id)).workflows).sort()).toEqual(['__proto__', 'codereview']);
      });

      it('keeps compactions in the order of their making', async () => {
        const { id } = await threadWith(store, ['a', 'b']);
        const made: Compaction[] = [200_000, 100_000].map((window, index) => ({
          window,
          upToSeq: index + 1,
          summary: `summary ${index}`,
          trims: [{ seq: 2, chars: 40 }, { seq: 1 }],
          createdAt: start + index,
        }));
        for (const compaction of made) await store.commit(id, changeOf(2, { compaction }));
        expect((await live(store, id)).compactions).toEqual(made);
      });
    });

    describe('blobs', () => {
      const big = { sha256: hashOf('big'), text: 'ř🦜\u0000\n'.repeat(100_000) };

      it('come back byte for byte; what is not there is missing from the answer', async () => {
        const { id } = await threadWith(store, []);
        const empty = { sha256: hashOf(''), text: '' };
        await store.commit(id, changeOf(0, { blobs: [big, empty] }));
        const asked = [big.sha256, empty.sha256, hashOf('nobody'), big.sha256];
        expect(await store.blobs(asked)).toEqual(
          new Map([
            [big.sha256, big.text],
            [empty.sha256, ''],
          ]),
        );
        expect(await store.blobs([])).toEqual(new Map());
      });

      it('keep their first text when they come again', async () => {
        const { id } = await threadWith(store, []);
        await store.commit(id, changeOf(0, { blobs: [big] }));
        await store.commit(id, changeOf(0, { blobs: [big, big] }));
        expect((await store.blobs([big.sha256])).get(big.sha256)).toBe(big.text);
      });

      it('stay while one thread refers to them, and go after the last', async () => {
        const shared = { sha256: hashOf('shared'), text: 'shared' };
        const own = { sha256: hashOf('own'), text: 'own' };
        const first = await threadWith(store, []);
        const second = await threadWith(store, []);
        await store.commit(first.id, changeOf(0, { blobs: [shared, own] }));
        const image = { source: 'a.png', mediaType: 'image/png', blob: shared.sha256 };
        // Refers to it by a turn alone: the text is there already.
        await store.commit(second.id, changeOf(0, { turns: [turnOf(1, { images: [image] })] }));
        await store.remove(first.id, start);
        await store.prune(start);
        expect(await store.blobs([shared.sha256, own.sha256])).toEqual(new Map([[shared.sha256, 'shared']]));
        await store.prune(start + 721 * hour);
        expect(await store.blobs([shared.sha256])).toEqual(new Map());
      });
    });

    describe('lists', () => {
      it('show the newest first, page by page, and stop at the limit', async () => {
        const heads = [];
        for (let index = 0; index < 7; index++) heads.push(await threadWith(store, [], { updatedAt: start + index }));
        const newest = heads.map(head => head.id).reverse();
        const query = { owner: 'local', limit: 3, now: start };
        const first = await store.list(query);
        expect(first.map(head => head.id)).toEqual(newest.slice(0, 3));
        const second = await store.list({ ...query, before: first.at(-1)?.updatedAt });
        expect(second.map(head => head.id)).toEqual(newest.slice(3, 6));
        const third = await store.list({ ...query, before: second.at(-1)?.updatedAt });
        expect(third.map(head => head.id)).toEqual(newest.slice(6));
        expect(await store.list({ ...query, limit: 0 })).toEqual([]);
      });

      it('go through threads of the same millisecond once each, page by page', async () => {
        const heads = await Promise.all(Array.from({ length: 7 }, () => threadWith(store, [], { updatedAt: start })));
        const found: string[] = [];
        for (let last: { updatedAt: number; id: ThreadId } | undefined; ; ) {
          const after = last && { before: last.updatedAt, beforeId: last.id };
          const page = await store.list({ owner: 'local', limit: 2, now: start, ...after });
          found.push(...page.map(({ id }) => id));
          last = page.at(-1);
          if (!last) break;
        }
        expect(found).toEqual(
          heads
            .map(({ id }) => id)
            .sort()
            .reverse(),
        );
      });

      it('move a thread to the front when it is used', async () => {
        const old = await threadWith(store, []);
        await threadWith(store, [], { updatedAt: start + 500 });
        await store.commit(old.id, changeOf(0));
        const [first] = await store.list({ owner: 'local', limit: 1, now: start });
        expect(first).toEqual({ ...old, updatedAt: start + 1000 });
      });

      it('show nothing of other owners and, when asked, of other workspaces', async () => {
        const mine = await threadWith(store, [], { owner: 'ann', workspace: '/a' });
        const elsewhere = await threadWith(store, [], { owner: 'ann', workspace: '/b', updatedAt: start + 1 });
        await threadWith(store, [], { owner: 'bob', workspace: '/a' });
        const query = { owner: 'ann', limit: 10, now: start };
        expect((await store.list(query)).map(head => head.id)).toEqual([elsewhere.id, mine.id]);
        expect((await store.list({ ...query, workspace: '/a' })).map(head => head.id)).toEqual([mine.id]);
        expect(await store.list({ ...query, workspace: '/' })).toEqual([]);
      });

      it('leave out threads that expired or were removed', async () => {
        const stays = await threadWith(store, []);
        await threadWith(store, [], { expiresAt: start + 10 });
        const removed = await threadWith(store, []);
        await store.remove(removed.id, start);
        expect((await store.list({ owner: 'local', limit: 10, now: start + 10 })).map(head => head.id)).toEqual([
          stays.id,
        ]);
      });
    });

    describe('search', () => {
      const find = async (
        text: string,
        changes: { owner?: string; workspace?: string; limit?: number; before?: number } = {},
      ) =>
        (await store.search({ owner: 'local', limit: 10, now: start, ...changes, text })).map(hit => ({
          id: hit.thread.id,
          seq: hit.seq,
          snippet: hit.snippet,
        }));

      it('finds threads by the beginnings of words, whatever their case and accents', async () => {
        const { id } = await threadWith(store, ['Why does the Caché break?', 'Because createStore() never awaits.']);
        for (const text of ['CACHE', 'caché brea', 'why', 'break?']) {
          expect(await find(text)).toMatchObject([{ id, seq: 1 }]);
        }
        for (const text of ['createst', 'awaits because']) expect(await find(text)).toMatchObject([{ id, seq: 2 }]);
        for (const text of ['ache', 'store', 'cache awaits', 'missing']) expect(await find(text)).toEqual([]);
      });

      it('finds words in scripts that are written without spaces', async () => {
        const { id } = await threadWith(store, ['東京に行きたい', 'Грибы и ягоды']);
        expect(await find('行き')).toMatchObject([{ id, seq: 1 }]);
        expect(await find('ЯГОД')).toMatchObject([{ id, seq: 2 }]);
      });

      it('takes quotes and operators as plain text', async () => {
        const { id } = await threadWith(store, ['say "hello" AND goodbye NOT here', 'x']);
        for (const text of [
          '"hello"',
          '"hel',
          "hello'; DROP TABLE turns;--",
          'hello AND goodbye',
          'goodbye NOT here',
          'NEAR(hello, 2)',
          'hel*',
          'hello OR',
          '(hello',
          'words : hello',
          '^say',
          '{hello}',
          '-hello',
          'hello + say',
        ]) {
          const wanted = /near|words|drop|\bor\b/i.test(text) ? [] : [{ id, seq: 1 }];
          expect(await find(text), text).toMatchObject(wanted);
        }
        for (const text of ['', '   ', '"', '***', '\u0000', '🦜'])
          expect(await find(text), JSON.stringify(text)).toEqual([]);
      });

      it('shows about 160 characters around the match', async () => {
        const filler = 'lorem ipsum dolor sit amet '.repeat(200);
        await threadWith(store, [`${filler}the needle 🧵 lies here. ${filler}`, 'x']);
        const [hit] = await find('needle');
        expect(hit?.snippet).toContain('the needle 🧵 lies here');
        expect(hit?.snippet.length).toBeLessThanOrEqual(170);
        expect(hit?.snippet).toMatch(/^….*…$/);
      });

      it('shows the best match of each thread, the newest thread first', async () => {
        const old = await threadWith(store, ['apple', 'pear', 'apple apple apple', 'apple pie']);
        const recent = await threadWith(store, ['one apple', 'x'], { updatedAt: start + 1 });
        expect(await find('apple')).toMatchObject([
          { id: recent.id, seq: 1 },
          { id: old.id, seq: 3 },
        ]);
        expect(await find('apple', { limit: 1 })).toMatchObject([{ id: recent.id }]);
        expect(await find('apple', { before: start + 1 })).toMatchObject([{ id: old.id }]);
      });

      it('looks at exchanges that are done, and at no others', async () => {
        const { id } = await threadWith(store, []);
        const exchange = newExchangeId();
        await store.commit(id, changeOf(0, { turns: [turnOf(1, { exchange, content: 'quince' })] }));
        expect(await find('quince')).toEqual([]);
        await store.commit(id, changeOf(1, { exchange: { id: exchange, status: 'done' } }));
        expect(await find('quince')).toMatchObject([{ id, seq: 1 }]);
        await store.commit(id, changeOf(1, { exchange: { id: exchange, status: 'failed' } }));
        expect(await find('quince')).toEqual([]);
      });

      it('finds nothing of other owners, other workspaces, and threads that are gone', async () => {
        await threadWith(store, ['plum', 'x'], { owner: 'bob' });
        const mine = await threadWith(store, ['plum', 'x'], { owner: 'ann', workspace: '/a' });
        const gone = await threadWith(store, ['plum', 'x'], { owner: 'ann', workspace: '/a' });
        await threadWith(store, ['plum', 'x'], {
          owner: 'ann',
          workspace: '/a',
          expiresAt: start + 1,
          updatedAt: start - 9,
        });
        await store.remove(gone.id, start);
        const query = { owner: 'ann', text: 'plum', limit: 10, now: start + 1 };
        expect((await store.search(query)).map(hit => hit.thread.id)).toEqual([mine.id]);
        expect((await store.search({ ...query, workspace: '/a' })).map(hit => hit.thread.id)).toEqual([mine.id]);
        expect(await store.search({ ...query, workspace: '/b' })).toEqual([]);
      });
    });

    describe('the end of a thread', () => {
      it('tells expired, deleted and unknown ids apart', async () => {
        const expired = await threadWith(store, ['a'], { expiresAt: start + 10 });
        const deleted = await threadWith(store, ['a']);
        await store.remove(deleted.id, start + 5);
        for (const ask of ['read', 'head'] as const) {
          expect((await store[ask](expired.id, start + 9)).state).toBe('live');
          expect(await store[ask](expired.id, start + 10)).toEqual({ state: 'expired', expiredAt: start + 10 });
          expect(await store[ask](deleted.id, start)).toEqual({ state: 'deleted', deletedAt: start + 5 });
          expect(await store[ask](newThreadId(), start)).toEqual({ state: 'unknown' });
        }
      });

      it('slides with every change', async () => {
        const { id } = await threadWith(store, [], { expiresAt: start + 5000 });
        await store.commit(id, changeOf(0, { expiresAt: start + 9000 }));
        expect((await store.read(id, start + 8999)).state).toBe('live');
        expect(await store.read(id, start + 9000)).toEqual({ state: 'expired', expiredAt: start + 9000 });
      });

      it('comes by removal once', async () => {
        const { id } = await threadWith(store, ['a']);
        expect(await store.remove(id, start)).toBe(true);
        expect(await store.remove(id, start)).toBe(false);
        expect(await store.remove(newThreadId(), start)).toBe(false);
        const expired = await threadWith(store, [], { expiresAt: start + 1 });
        expect(await store.remove(expired.id, start + 1)).toBe(false);
      });

      it('is remembered for 90 days after a prune', async () => {
        const stays = await threadWith(store, ['a'], { expiresAt: start + 91 * 24 * hour });
        const goes = await threadWith(store, ['a'], { expiresAt: start + hour });
        const deleted = await threadWith(store, ['a']);
        await store.remove(deleted.id, start);
        expect(await store.prune(start + hour)).toBe(1);
        expect(await store.prune(start + hour)).toBe(0);
        expect(await store.read(goes.id, start)).toEqual({ state: 'expired', expiredAt: start + hour });
        expect((await store.read(stays.id, start)).state).toBe('live');
        await store.prune(start + 89 * 24 * hour);
        expect((await store.read(goes.id, start)).state).toBe('expired');
        expect((await store.read(deleted.id, start)).state).toBe('deleted');
        await store.prune(start + 90 * 24 * hour + hour);
        expect(await store.read(goes.id, start)).toEqual({ state: 'unknown' });
        expect(await store.read(deleted.id, start)).toEqual({ state: 'unknown' });
        expect((await store.read(stays.id, start)).state).toBe('live');
      });

      it('comes to all that expired in one prune', async () => {
        for (let index = 0; index < 120; index++) await store.create(headOf({ expiresAt: start + 1 }));
        expect(await store.prune(start + 1)).toBe(120);
      });

      it('waits while a fork still begins with the thread', async () => {
        const parent = await threadWith(store, ['a', 'b'], { expiresAt: start + hour });
        const child = headOf({ parent: { thread: parent.id, seq: 2 }, seq: 2, expiresAt: start + 3 * hour });
        await store.create(child);
        expect(await store.prune(start + 2 * hour)).toBe(0);
        expect(await store.read(parent.id, start + 2 * hour)).toMatchObject({ state: 'expired' });
        expect((await live(store, parent.id, 0)).turns).toHaveLength(2);
        expect(await store.prune(start + 3 * hour)).toBe(2);
      });
    });

    describe('jobs', () => {
      const query = { owner: 'local', limit: 10, now: start };

      it('are given back in every member, and end once', async () => {
        const { id: thread } = await threadWith(store, []);
        const job = jobOf({ thread });
        await store.createJob(job);
        expect(await store.job(job.id, start)).toStrictEqual(job);
        const reply = { isError: false, document: { status: 'success', content: 'Zürich 🦜', list: [1, null] } };
        const end = { status: 'done' as const, reply, updatedAt: start + 5, expiresAt: start + hour };
        expect(await store.endJob(job.id, end)).toBe(true);
        expect(await store.job(job.id, start)).toStrictEqual({ ...job, ...end });
        expect(await store.endJob(job.id, { ...end, status: 'cancelled' })).toBe(false);
        expect(await store.job(job.id, start)).toStrictEqual({ ...job, ...end });
      });

      it('that others gave up are done all the same when their process brings the answer', async () => {
        const job = jobOf();
        await store.createJob(job);
        const end = { updatedAt: start + 5, expiresAt: start + hour };
        expect(await store.endJob(job.id, { ...end, status: 'interrupted' })).toBe(true);
        expect(await store.endJob(job.id, { ...end, status: 'failed' })).toBe(false);
        expect(await store.endJob(job.id, { ...end, status: 'done' })).toBe(true);
        expect(await store.endJob(job.id, { ...end, status: 'interrupted' })).toBe(false);
        expect(await store.job(job.id, start)).toMatchObject({ status: 'done' });
      });

      it('end in one way alone when many end them at once', async () => {
        const job = jobOf();
        await store.createJob(job);
        const statuses = ['done', 'failed', 'cancelled'] as const;
        const ends = await Promise.all(
          statuses.map(status => store.endJob(job.id, { status, updatedAt: start, expiresAt: job.expiresAt })),
        );
        expect(ends.filter(Boolean)).toHaveLength(1);
        expect((await store.job(job.id, start))?.status).toBe(statuses[ends.indexOf(true)]);
      });

      it('are listed to their owner, the newest first', async () => {
        const jobs = [1, 2, 3].map(at => jobOf({ createdAt: start + at }));
        for (const job of [...jobs, jobOf({ owner: 'ann' })]) await store.createJob(job);
        expect((await store.jobs(query)).map(job => job.id)).toEqual(jobs.map(job => job.id).reverse());
        expect((await store.jobs({ ...query, limit: 1 })).map(job => job.id)).toEqual([jobs[2]!.id]);
        expect(await store.jobs({ ...query, owner: 'ann' })).toHaveLength(1);
        // More than a store looks at in one step.
        await Promise.all(Array.from({ length: 60 }, () => store.createJob(jobOf({ owner: 'bob' }))));
        expect(await store.jobs({ ...query, owner: 'bob', limit: 100 })).toHaveLength(60);
      });

      it('are gone when they expired, and when their thread was removed', async () => {
        const { id: thread } = await threadWith(store, []);
        const [short, bound] = [jobOf({ expiresAt: start + 10 }), jobOf({ thread })];
        await store.createJob(short);
        await store.createJob(bound);
        expect(await store.job(short.id, start + 10)).toBeUndefined();
        await store.prune(start + 10);
        expect((await store.jobs(query)).map(job => job.id)).toEqual([bound.id]);
        await store.remove(thread, start);
        expect(await store.jobs(query)).toEqual([]);
        const late = { status: 'done' as const, updatedAt: start, expiresAt: start + hour };
        expect(await store.endJob(bound.id, late)).toBe(false);
      });

      it('refuse an id that is there already', async () => {
        const job = jobOf();
        await store.createJob(job);
        await expect(store.createJob(job)).rejects.toMatchObject(refusal('conflict'));
      });
    });

    describe('leases', () => {
      it('refuse changes of a holder from whom another one took the thread, until he gave it back', async () => {
        const { id } = await threadWith(store, ['a', 'b']);
        await store.lease(id, 'one', 1000, start);
        const byOne = (baseSeq: number, updatedAt: number) =>
          store.commit(id, changeOf(baseSeq, { holder: 'one', turns: [turnOf(baseSeq + 1)], updatedAt }));
        expect(await byOne(2, start + 1)).toBe(3);
        // It lapsed, and nobody took it.
        expect(await byOne(3, start + 1000)).toBe(4);
        await store.lease(id, 'two', 1000, start + 1000);
        await expect(byOne(4, start + 1500)).rejects.toMatchObject({
          ...refusal('conflict'),
          message: expect.stringContaining('taken over'),
          details: { retryable: true, next: expect.stringContaining('Resend') },
        });
        expect((await live(store, id)).turns).toHaveLength(4);
        const byTwo = { holder: 'two', turns: [turnOf(5)], updatedAt: start + 1500 };
        expect(await store.commit(id, changeOf(4, byTwo))).toBe(5);
        await store.release(id, 'two');
        await expect(byOne(4, start + 1600)).rejects.toMatchObject({ details: { class: 'conflict', retryable: true } });
        expect(await byOne(5, start + 1600)).toBe(6);
      });

      it('go to one holder at a time', async () => {
        const id = newThreadId();
        expect(await store.lease(id, 'one', 1000, start)).toBe(true);
        expect(await store.lease(id, 'two', 1000, start + 999)).toBe(false);
        expect(await store.lease(newThreadId(), 'two', 1000, start)).toBe(true);
      });

      it('can be renewed by their holder, and lapse', async () => {
        const id = newThreadId();
        await store.lease(id, 'one', 1000, start);
        expect(await store.lease(id, 'one', 1000, start + 500)).toBe(true);
        expect(await store.lease(id, 'two', 1000, start + 1499)).toBe(false);
        expect(await store.lease(id, 'two', 1000, start + 1500)).toBe(true);
        expect(await store.lease(id, 'one', 1000, start + 1501)).toBe(false);
      });

      it('are given back by their holder and by nobody else', async () => {
        const id = newThreadId();
        await store.lease(id, 'one', 1000, start);
        await store.release(id, 'two');
        expect(await store.lease(id, 'two', 1000, start)).toBe(false);
        await store.release(id, 'one');
        expect(await store.lease(id, 'two', 1000, start)).toBe(true);
      });

      it('go to exactly one of many that ask at once', async () => {
        const id = newThreadId();
        const asked = await Promise.all(Array.from({ length: 30 }, () => store.lease(id, randomUUID(), 1000, start)));
        expect(asked.filter(taken => taken)).toHaveLength(1);
      });
    });

    describe('facts', () => {
      const put = (key: string, version: number, value: JsonObject | undefined, expiresAt = start + 1000) =>
        store.swapFact({ key, version, value, expiresAt, now: start });

      it('are replaced by whoever saw them last, and by nobody else', async () => {
        expect(await store.fact('a', start)).toBeUndefined();
        expect(await put('a', 0, { n: 1 })).toBe(true);
        expect(await put('a', 0, { n: 2 })).toBe(false);
        const seen = (await store.fact('a', start))!;
        expect(seen.value).toStrictEqual({ n: 1 });
        expect(await put('a', seen.version, { n: 2 })).toBe(true);
        expect(await put('a', seen.version, { n: 3 })).toBe(false);
        expect(await put('b', seen.version, { n: 4 })).toBe(false);
        expect((await store.fact('a', start))?.value).toStrictEqual({ n: 2 });
        expect(await store.fact('b', start)).toBeUndefined();
      });

      it('are another one when they were removed and came again', async () => {
        await put('a', 0, { n: 1 });
        const { version } = (await store.fact('a', start))!;
        expect(await put('a', version, undefined)).toBe(true);
        expect(await store.fact('a', start)).toBeUndefined();
        expect(await put('a', 0, undefined)).toBe(true);
        await put('a', 0, { n: 1 });
        expect(await put('a', version, { n: 2 })).toBe(false);
      });

      it('end with their time, and make room for new ones', async () => {
        await put('a', 0, { n: 1 });
        const { version } = (await store.fact('a', start + 999))!;
        expect(await store.fact('a', start + 1000)).toBeUndefined();
        expect((await store.facts('a', start + 1000)).size).toBe(0);
        const late = { key: 'a', value: { n: 2 }, expiresAt: start + 5000, now: start + 1000 };
        expect(await store.swapFact({ ...late, version })).toBe(false);
        expect(await store.swapFact({ ...late, version: 0 })).toBe(true);
        await store.prune(start + 4999);
        expect((await store.fact('a', start + 1000))?.value).toStrictEqual({ n: 2 });
        await store.prune(start + 5000);
        expect(await store.fact('a', start + 1000)).toBeUndefined();
      });

      it('are listed by the beginning of their keys, whatever is in it', async () => {
        for (const key of ['a/1', 'a/2\u{10ffff}', 'a%', 'b/1', 'A/1']) await put(key, 0, { key });
        expect([...(await store.facts('a/', start)).keys()].sort()).toEqual(['a/1', 'a/2\u{10ffff}']);
        expect([...(await store.facts('a%', start)).keys()]).toEqual(['a%']);
        expect((await store.facts('', start)).size).toBe(5);
        expect((await store.facts('a/1', start)).get('a/1')?.value).toStrictEqual({ key: 'a/1' });
      });

      it('go to exactly one of many that change them at once', async () => {
        const taken = await Promise.all(Array.from({ length: 30 }, (_, n) => put('a', 0, { n })));
        expect(taken.filter(each => each)).toHaveLength(1);
      });
    });

    describe('the mark', () => {
      it('is another one after each change, and the same while nobody changes anything', async () => {
        const { id } = await threadWith(store, ['a']);
        const job = jobOf();
        const marks = [await store.mark()];
        for (const change of [
          () => store.create(headOf()),
          () => store.commit(id, changeOf(1, { turns: [turnOf(2)] })),
          () => store.createJob(job),
          () => store.endJob(job.id, { status: 'done', updatedAt: start + 1, expiresAt: start + hour }),
          () => store.remove(id, start),
        ]) {
          await change();
          const mark = await store.mark();
          expect(marks).not.toContain(mark);
          marks.push(mark);
        }
        await store.list({ owner: 'local', limit: 10, now: start });
        expect(await store.mark()).toBe(marks.at(-1));
      });
    });

    describe('closing', () => {
      it('finishes what was asked before', async () => {
        const head = headOf();
        const created = store.create(head);
        const committed = store.commit(head.id, changeOf(0, { turns: [turnOf(1)] }));
        await store.close();
        await expect(created).resolves.toBeUndefined();
        await expect(committed).resolves.toBe(1);
      });

      it('refuses every later use, and may happen twice', async () => {
        const { id } = await threadWith(store, ['a']);
        await store.close();
        await store.close();
        const uses = [
          () => store.create(headOf()),
          () => store.read(id, start),
          () => store.head(id, start),
          () => store.commit(id, changeOf(1)),
          () => store.blobs([]),
          () => store.list({ owner: 'local', limit: 1, now: start }),
          () => store.search({ owner: 'local', text: 'a', limit: 1, now: start }),
          () => store.remove(id, start),
          () => store.prune(start),
          () => store.createJob(jobOf()),
          () => store.job(jobOf().id, start),
          () => store.jobs({ owner: 'local', limit: 1, now: start }),
          () => store.endJob(jobOf().id, { status: 'done', updatedAt: start, expiresAt: start }),
          () => store.lease(id, 'one', 1, start),
          () => store.release(id, 'one'),
          () => store.fact('a', start),
          () => store.facts('a', start),
          () => store.swapFact({ key: 'a', version: 0, expiresAt: start, now: start }),
          () => store.mark(),
        ];
        for (const use of uses) {
          await expect(use()).rejects.toMatchObject({
            ...refusal('unavailable'),
            message: expect.stringContaining('closed'),
          });
        }
      });

      it('keeps everything for the next start, where threads outlive the process', async () => {
        const { id } = await threadWith(store, ['a', 'b']);
        const blob = { sha256: hashOf('blob'), text: 'blob' };
        await store.commit(id, changeOf(2, { blobs: [blob], workflow: { tool: 'debug', state: { step: 3 } } }));
        const removed = await threadWith(store, []);
        await store.remove(removed.id, start);
        const job = jobOf();
        await store.createJob(job);
        const before = await live(store, id);
        if (!opened.reopen) {
          expect(opened.lasts).toBe(false);
          return;
        }
        const again = await opened.reopen();
        expect(await live(again, id)).toStrictEqual(before);
        expect(await again.blobs([blob.sha256])).toEqual(new Map([[blob.sha256, 'blob']]));
        expect((await again.read(removed.id, start)).state).toBe('deleted');
        expect(await again.job(job.id, start)).toStrictEqual(job);
        expect(await again.search({ owner: 'local', text: 'b', limit: 5, now: start })).toHaveLength(1);
      });
    });
  });
}
