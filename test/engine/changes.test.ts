import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { type Changes, createChanges } from '../../src/engine/host.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import type { Store } from '../../src/storage/store.ts';
import { changeOf, headOf, hour, jobOf, start, threadWith, turnOf } from '../contracts/store-fixtures.ts';
import { type ManualClock, manualClock, realClock } from '../support/clock.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

let home: TempProject;
let clock: ManualClock;
/** The store of this process, and the one of another process on the same file. */
let mine: Store;
let theirs: Store;
let changes: Changes;
let events: AppEvent[];

beforeEach(async () => {
  home = await tempProject();
  const file = home.path('threads.sqlite');
  const open = () => createSqliteStore({ file, clock: realClock(), onWarning: () => {} });
  [mine, theirs] = [open(), open()];
  clock = manualClock(start);
  events = [];
  changes = createChanges({ store: mine, clock, emit: event => void events.push(event) });
});

afterEach(async () => {
  await Promise.all([mine.close(), theirs.close()]);
  await home.dispose();
});

async function listening(owner = 'local') {
  const heard: string[] = [];
  const stop = new AbortController();
  await changes.watch(owner, path => void heard.push(path), stop.signal);
  return { heard, stop: () => stop.abort() };
}

/** Lets the poll come round once, and waits until it has looked. */
async function aSecond(): Promise<void> {
  await clock.advance(1_000);
  // Joins the look that is under way.
  const stop = new AbortController();
  await changes.watch('nobody', () => {}, stop.signal);
  stop.abort();
}

describe('changes by another process', () => {
  it('are told to who watches, once each, and nothing else is', async () => {
    const [one, other] = [await threadWith(theirs, ['a']), await threadWith(theirs, ['b'])];
    const { heard } = await listening();
    await theirs.commit(one.id, changeOf(1, { turns: [turnOf(2)] }));
    await aSecond();
    expect(heard).toEqual([`threads/${one.id}`]);
    await aSecond();
    expect(heard).toHaveLength(1);
    const job = jobOf();
    await theirs.createJob(job);
    await aSecond();
    await theirs.endJob(job.id, { status: 'done', updatedAt: start + 5, expiresAt: start + hour });
    await theirs.remove(other.id, start);
    await aSecond();
    expect(heard.slice(1)).toEqual([`jobs/${job.id}`, `jobs/${job.id}`, `threads/${other.id}`]);
    // A lease is no change that anybody reads.
    await theirs.lease(one.id, 'them', 1_000, start);
    await aSecond();
    expect(heard).toHaveLength(4);
  });

  it('are told of the watcher’s own threads alone', async () => {
    const [ann, bob] = [await listening('ann'), await listening('bob')];
    const head = headOf({ owner: 'ann' });
    await theirs.create(head);
    await aSecond();
    expect(ann.heard).toEqual([`threads/${head.id}`]);
    expect(bob.heard).toEqual([]);
  });

  it('are told at once where this process made them, and then not again', async () => {
    const { heard } = await listening();
    const { id } = await threadWith(mine, ['a']);
    changes.look();
    await expect.poll(() => heard).toEqual([`threads/${id}`]);
    await aSecond();
    expect(heard).toHaveLength(1);
  });

  it('are told to nobody who stopped watching', async () => {
    const [stays, goes] = [await listening(), await listening()];
    goes.stop();
    await theirs.create(headOf());
    await aSecond();
    expect([stays.heard.length, goes.heard.length]).toEqual([1, 0]);
  });
});

describe('the store', () => {
  /** A store that counts who looks at it, and how. */
  function counted() {
    const store = createMemoryStore();
    const counts = { mark: 0, list: 0 };
    const watched: Store = {
      ...store,
      mark() {
        counts.mark++;
        return store.mark();
      },
      list(query) {
        counts.list++;
        return store.list(query);
      },
    };
    return { store: watched, counts };
  }

  it('is looked at only while somebody watches, and read only after a change', async () => {
    const { store, counts } = counted();
    changes = createChanges({ store, clock, emit: () => {} });
    changes.look();
    await clock.advance(10_000);
    expect([counts.mark, counts.list, clock.pending()]).toEqual([0, 0, 0]);
    const { stop } = await listening();
    await clock.advance(5_000);
    expect(counts.mark).toBe(6);
    expect(counts.list).toBe(1);
    stop();
    await clock.advance(10_000);
    expect([counts.mark, clock.pending()]).toEqual([6, 0]);
  });

  it('is looked at again after a failure, which is said once', async () => {
    const { store } = counted();
    let failing = true;
    const failed = () => Promise.reject(new Error('the disk is away'));
    const sometimes = { ...store, mark: () => (failing ? failed() : store.mark()) };
    changes = createChanges({ store: sometimes, clock, emit: event => void events.push(event) });
    const { heard } = await listening();
    await clock.advance(3_000);
    expect(events).toEqual([{ type: 'warning', where: 'resources', message: 'Error: the disk is away' }]);
    failing = false;
    await clock.advance(1_000);
    const head = headOf();
    await store.create(head);
    await clock.advance(1_000);
    expect(heard).toEqual([`threads/${head.id}`]);
  });
});
