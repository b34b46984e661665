import { setImmediate as turn, setTimeout as waited } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { orAbort } from '../../../src/core/concurrency.ts';
import { type cachedContents, GoogleCaches } from '../../../src/providers/google/context-cache.ts';
import { manualClock } from '../../support/clock.ts';
import { createLocalState } from '../../support/local-state.ts';
import { waitUntil } from '../../support/wait-until.ts';

const text = Array.from({ length: 3_000 }, (_, line) => `Line ${line} of the history.`).join('\n');
const message = (role: string, words: string) => ({ role, parts: [{ text: words }] });
const prompt = {
  model: 'gemini-2.5-flash',
  thread: 'thread-1',
  systemInstruction: { parts: [{ text }] },
  contents: [message('user', 'What does it do?'), message('model', 'It keeps the gate.')],
};
const { signal } = new AbortController();

type Vendor = ReturnType<typeof cachedContents>;
/** A vendor that makes what it is asked for once `answer` says so. */
function heldVendor() {
  const held: (() => void)[] = [];
  const live = new Set<string>();
  let made = 0;
  const vendor: Vendor = {
    async create(_prompt, gone) {
      const name = `cachedContents/held${++made}`;
      live.add(name);
      const { promise, resolve } = Promise.withResolvers<void>();
      held.push(resolve);
      await orAbort(promise, gone);
      return { name, tokens: 9_000, keptMs: 3_600_000 };
    },
    renew: async () => 3_600_000,
    remove: async name => ({ removed: live.delete(name) }),
  };
  return {
    vendor,
    live,
    asked: () => made,
    isAsked: (times: number) => waitUntil(`it is asked ${times} times`, () => made >= times, { everyMs: 2 }),
    answer() {
      for (const resolve of held.splice(0)) resolve();
    },
  };
}

let clock: ReturnType<typeof manualClock>;
let held: ReturnType<typeof heldVendor>;
let caches: GoogleCaches;

beforeEach(() => {
  clock = manualClock();
  held = heldVendor();
  caches = new GoogleCaches({ vendor: held.vendor, clock, state: createLocalState(clock) });
  // The next prompt that begins like it is the second of its thread.
  caches.answered(prompt);
});

describe('a cache that is being made', () => {
  it('is waited for by other calls of its thread, which use it', async () => {
    const calls = [caches.forPrompt(prompt, signal), caches.forPrompt(prompt, signal)];
    await held.isAsked(1);
    await turn();
    held.answer();
    const [first, second] = await Promise.all(calls);
    expect(first).toMatchObject({ name: 'cachedContents/held1', written: 9_000 });
    expect(second).toEqual({ name: 'cachedContents/held1', messages: 2, written: 0, stored: 0 });
    expect(held.asked()).toBe(1);
    await caches.close();
    expect([...held.live]).toEqual([]);
  });

  it('is removed where its call ended meanwhile, and the next call does not wait for it', async () => {
    const call = new AbortController();
    const first = caches.forPrompt(prompt, call.signal);
    await held.isAsked(1);
    call.abort();
    expect(await first).toBeUndefined();
    const second = caches.forPrompt(prompt, signal);
    await held.isAsked(2);
    held.answer();
    expect(await second).toMatchObject({ name: 'cachedContents/held2' });
    await waitUntil('one is left', () => held.live.size === 1);
    expect([...held.live]).toEqual(['cachedContents/held2']);
  });

  it('is removed by a close, which waits 3 s for it at the most', async () => {
    const call = caches.forPrompt(prompt, signal);
    await held.isAsked(1);
    const closing = caches.close();
    await turn();
    held.answer();
    await closing;
    expect(await call).toBeUndefined();
    expect([...held.live]).toEqual([]);

    void caches.forPrompt(prompt, signal);
    await turn();
    expect(held.asked()).toBe(1);
  });

  it('is not waited for by a close once the vendor takes too long', async () => {
    void caches.forPrompt(prompt, signal);
    await held.isAsked(1);
    let isClosed = false;
    void caches.close().then(() => {
      isClosed = true;
    });
    await clock.advance(2_900);
    expect(isClosed).toBe(false);
    await clock.advance(200);
    expect(isClosed).toBe(true);
  });

  it('takes the place of the one before, also where its call ends while it is recorded', async () => {
    const state = createLocalState(clock);
    const recording = Promise.withResolvers<void>();
    const isRecorded = Promise.withResolvers<void>();
    let changes = 0;
    const slow: typeof state = {
      ...state,
      async change(...args) {
        if (++changes === 2) {
          recording.resolve();
          await isRecorded.promise;
        }
        return state.change(...args);
      },
    };
    caches = new GoogleCaches({ vendor: held.vendor, clock, state: slow });
    caches.answered(prompt);
    const first = caches.forPrompt(prompt, signal);
    await held.isAsked(1);
    held.answer();
    await first;
    const call = new AbortController();
    const contents = [...prompt.contents, message('user', text.repeat(3)), message('model', 'Yes.')];
    const second = caches.forPrompt({ ...prompt, contents }, call.signal);
    await held.isAsked(2);
    held.answer();
    await recording.promise;
    call.abort();
    expect(await second).toBeUndefined();
    isRecorded.resolve();
    await waitUntil('one is left', () => held.live.size === 1);
    expect([...held.live]).toEqual(['cachedContents/held2']);
  });
});

it('no call waits for the turns of many others', async () => {
  const vendor: Vendor = { ...held.vendor, renew: (_name, gone) => orAbort(new Promise<never>(() => {}), gone) };
  caches = new GoogleCaches({ vendor, clock, state: createLocalState(clock) });
  caches.answered(prompt);
  const made = caches.forPrompt(prompt, signal);
  await held.isAsked(1);
  held.answer();
  await made;
  await clock.advance(3_500_000);
  const calls = Array.from({ length: 4 }, () => caches.forPrompt(prompt, signal));
  await clock.advance(20_000);
  expect(await Promise.race([Promise.all(calls), waited(200)])).toHaveLength(4);
});
