import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../src/app/system-environment.ts';
import { threadId } from '../../src/core/ids.ts';
import { processMarks } from '../../src/storage/process-mark.ts';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const { clock, random } = systemEnvironment();
const id = threadId(random.uuid());

/** Another process that takes the thread for an hour. */
async function holder(file: string) {
  const source = (path: string) => JSON.stringify(fileURLToPath(new URL(`../../src/${path}`, import.meta.url)));
  const code = `
    import { createSqliteStore } from ${source('storage/sqlite/sqlite.ts')};
    import { systemEnvironment } from ${source('app/system-environment.ts')};
    const { clock } = systemEnvironment();
    const store = createSqliteStore({ file: ${JSON.stringify(file)}, clock, onWarning: () => {} });
    console.log(await store.lease(${JSON.stringify(id)}, 'other', 3_600_000, Date.now()));
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [told] = await once(child.stdout, 'data');
  expect(String(told).trim()).toBe('true');
  return child;
}

describe('a thread that another process holds', () => {
  it('is free at once when that process is killed, and not before', async () => {
    const home = await tempProject();
    const file = home.path('threads.sqlite');
    const child = await holder(file);
    const store = createSqliteStore({ file, clock, onWarning: () => {} });
    try {
      expect(await store.lease(id, 'mine', 6_000, clock.now())).toBe(false);
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      expect(await store.lease(id, 'mine', 6_000, clock.now())).toBe(true);
      expect(await store.lease(id, 'another', 6_000, clock.now())).toBe(false);
      await store.release(id, 'mine');
      expect(await store.lease(id, 'another', 6_000, clock.now())).toBe(true);
    } finally {
      child.kill('SIGKILL');
      await store.close();
      await home.dispose();
    }
  });

  it('stays held by one that lives when the clock is put back', async () => {
    const home = await tempProject();
    const file = home.path('threads.sqlite');
    const child = await holder(file);
    const store = createSqliteStore({ file, clock, onWarning: () => {} });
    try {
      expect(await store.lease(id, 'mine', 6_000, clock.now() - 3_600_000)).toBe(false);
    } finally {
      child.kill('SIGKILL');
      await store.close();
      await home.dispose();
    }
  });
});

describe('the mark of a process', () => {
  interface Fake {
    boot?: string;
    space?: string;
    /** Of the process 42, as the system tells it; absent: there is none. */
    stat?: string;
  }
  async function system({ boot = 'boot-1', space = 'pid:[1]', stat }: Fake): Promise<TempProject> {
    const folder = await tempProject({ 'sys/kernel/random/boot_id': `${boot}\n` });
    await mkdir(folder.path('self/ns'), { recursive: true });
    await symlink(space, folder.path('self/ns/pid'));
    await writeFile(folder.path('self/stat'), statOf(42, 'S', 1_000));
    if (stat) await folder.write('42/stat', stat);
    return folder;
  }
  const statOf = (pid: number, state: string, started: number) =>
    `${pid} (a) name (x) ${state} ${Array.from({ length: 18 }, () => '0').join(' ')} ${started} 0 0`;

  it.each<[string, Fake, 'running' | 'gone' | 'unknown']>([
    ['is running', { stat: statOf(42, 'S', 1_000) }, 'running'],
    ['is stopped', { stat: statOf(42, 'T', 1_000) }, 'running'],
    ['is gone', {}, 'gone'],
    ['ended and was not collected', { stat: statOf(42, 'Z', 1_000) }, 'gone'],
    ['left its number to a later one', { stat: statOf(42, 'S', 2_000) }, 'gone'],
    ['was of another boot or machine', { boot: 'boot-2', stat: statOf(42, 'S', 1_000) }, 'unknown'],
    ['is of another container', { space: 'pid:[2]' }, 'unknown'],
  ])('tells that it %s', async (_what, now, state) => {
    const [before, after] = [await system({}), await system(now)];
    const mark = processMarks(before.root).own;
    expect(mark).toContain('42 1000');
    expect(processMarks(after.root).stateOf(mark!)).toBe(state);
    await Promise.all([before.dispose(), after.dispose()]);
  });

  it('says nothing where the system tells nothing, or of what is no mark', async () => {
    const nothing = await tempProject();
    const marks = processMarks(nothing.root);
    expect(marks.own).toBeUndefined();
    expect(marks.stateOf('anything 1 2')).toBe('unknown');
    expect(processMarks().stateOf(random.uuid())).toBe('unknown');
    await nothing.dispose();
  });
});
