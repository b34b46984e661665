import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { changeOf, headOf, start, threadWith, turnOf } from '../../contracts/store-fixtures.ts';
import { watchLoop } from '../../support/loop.ts';
import { startSqliteProcess } from '../../support/sqlite-process.ts';
import { sqlitePlace } from '../../support/sqlite-temp.ts';

it('a file whose lock another process keeps is unavailable after ten seconds, by whom, then at once, until the lock falls', async () => {
  const place = await sqlitePlace();
  const store = place.open();
  const { id } = await threadWith(store, ['a']);
  const holder = startSqliteProcess('hold', place.file, '600000');
  await holder.said(line => line === 'held');
  const { pid } = holder.child;
  const refused = (isStopped: boolean) => ({
    kind: 'storage',
    message: expect.stringMatching(
      `^Process ${pid}${isStopped ? ', which is stopped,' : ''} has held the lock of .* for over 10 s`,
    ),
    details: {
      class: 'unavailable',
      retryable: true,
      data: { pid, isStopped },
      next: expect.stringMatching(isStopped ? `^Continue it with "kill -CONT ${pid}"` : '^Wait for it, or end it'),
    },
  });
  const damaged = await sqlitePlace();
  const before = damaged.open();
  const broken = await threadWith(before, ['a', 'words that are damaged']);
  await before.close();
  const bytes = readFileSync(damaged.file);
  bytes.write('WORDS', bytes.indexOf('words that'));
  writeFileSync(damaged.file, bytes);
  const other = startSqliteProcess('hold', damaged.file, '600000');
  await other.said(line => line === 'held');
  const found = damaged
    .open()
    .read(broken.id, start)
    .catch((error: unknown) => error);
  const watched = watchLoop();
  const change = changeOf(1, { turns: [turnOf(2)] });
  const began = performance.now();
  const tries = [store.commit(id, change), store.create(headOf()), store.remove(id, start)];
  for (const outcome of await Promise.allSettled(tries))
    expect(outcome).toMatchObject({ status: 'rejected', reason: refused(false) });
  expect(performance.now() - began).toBeGreaterThan(9_500);
  // A damaged file is not replaced below who has it locked; the thread is refused.
  expect(await found).toMatchObject({ details: { class: 'corrupt' } });
  expect(damaged.warnings).toEqual([expect.stringContaining('another program has it locked')]);
  expect(readdirSync(damaged.directory).filter(name => name.includes('.corrupt'))).toEqual([]);
  const loop = watched();
  expect(loop.longest).toBeLessThan(5_000);
  expect(loop.ticks).toBeGreaterThan(50);
  holder.child.kill('SIGSTOP');
  const again = performance.now();
  await expect.poll(() => store.commit(id, change).catch((error: unknown) => error)).toMatchObject(refused(true));
  expect(performance.now() - again).toBeLessThan(8_000);
  holder.child.kill('SIGKILL');
  await holder.ended;
  expect(await store.commit(id, change)).toBe(2);
  // The next lock is waited for as the first one was.
  const brief = startSqliteProcess('hold', place.file, '1500');
  await brief.said(line => line === 'held');
  expect(await store.commit(id, changeOf(2, { turns: [turnOf(3)] }))).toBe(3);
  await brief.ended;
  expect(place.warnings).toEqual([]);
  other.child.kill('SIGKILL');
  await other.ended;
  await Promise.all([place.dispose(), damaged.dispose()]);
});
