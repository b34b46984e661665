import { existsSync } from 'node:fs';
import { readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import type { RecentEvent } from '../../src/core/ports.ts';
import { createBreadcrumbs } from '../../src/observability/file-logs.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const projects: TempProject[] = [];
afterEach(async () => {
  await Promise.all(projects.splice(0).map(project => project.dispose()));
});

async function logs() {
  const project = await tempProject();
  projects.push(project);
  return { folder: project.path('home/logs'), file: project.path('home/logs/breadcrumbs.jsonl'), project };
}

const at = Date.UTC(2030, 0, 2, 3, 4, 5);
const note = (message: string): RecentEvent => ({ at, event: { type: 'warning', where: 'here', message } });

describe('breadcrumbs', () => {
  it('are one JSON object a line, with snake_case names and the time', async () => {
    const { folder, file } = await logs();
    const event: AppEvent = {
      type: 'model.attempt',
      reqId: 'r1',
      attempt: 2,
      tool: 'chat',
      provider: 'openai',
      model: 'm',
      elapsedMs: 7,
      outcome: 'ok',
      usage: { input: 1, output: 2, reasoning: 0, cacheRead: 3, cacheWrite: 0 },
      next: 'none',
    };
    await createBreadcrumbs({ folder }).write([{ at, event }, note('line\nbreak')]);
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
    expect(lines.map(line => JSON.parse(line))).toEqual([
      {
        ts: '2030-01-02T03:04:05.000Z',
        type: 'model.attempt',
        req_id: 'r1',
        attempt: 2,
        tool: 'chat',
        provider: 'openai',
        model: 'm',
        elapsed_ms: 7,
        outcome: 'ok',
        usage: { input: 1, output: 2, reasoning: 0, cache_read: 3, cache_write: 0 },
        next: 'none',
      },
      { ts: '2030-01-02T03:04:05.000Z', type: 'warning', where: 'here', message: 'line\nbreak' },
    ]);
  });

  it('are readable by their owner only, and make nothing before the first event', async () => {
    const { folder, file } = await logs();
    const sink = createBreadcrumbs({ folder });
    expect(existsSync(folder)).toBe(false);
    await sink.write([note('x')]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  it('go on in a new folder when somebody removed the old one', async () => {
    const { folder, file } = await logs();
    const sink = createBreadcrumbs({ folder });
    await sink.write([note('before')]);
    await rm(folder, { recursive: true });
    await sink.write([note('after')]);
    expect(await readFile(file, 'utf8')).toContain('after');
  });

  it('are put aside when the file is full, the oldest file goes', async () => {
    const { folder, file } = await logs();
    const sink = createBreadcrumbs({ folder, maxBytes: 200, keep: 2 });
    for (let index = 0; index < 12; index++) await sink.write([note(`number ${index} ${'x'.repeat(150)}`)]);
    expect((await readdir(folder)).sort()).toEqual(['breadcrumbs.jsonl', 'breadcrumbs.jsonl.1', 'breadcrumbs.jsonl.2']);
    expect(await readFile(file, 'utf8')).toContain('number 11 ');
    expect(await readFile(`${file}.1`, 'utf8')).toContain('number 10 ');
    expect(await readFile(`${file}.2`, 'utf8')).toContain('number 9 ');
  });

  it('of several writers in one file are all there while it is rotated', async () => {
    const { folder } = await logs();
    const write = async (writer: number) => {
      const sink = createBreadcrumbs({ folder, maxBytes: 2_000, keep: 1_000 });
      for (let index = 0; index < 60; index++) await sink.write([note(`<${writer}:${index}>`)]);
    };
    await Promise.all([0, 1, 2, 3].map(write));
    const files = await readdir(folder);
    const texts = await Promise.all(files.map(file => readFile(`${folder}/${file}`, 'utf8')));
    const found = texts.join('').match(/<\d:\d+>/g) ?? [];
    expect(files.length).toBeGreaterThan(3);
    expect(found).toHaveLength(240);
    expect(new Set(found).size).toBe(240);
  });

  it('go on in the full file while another process rotates, and clear a lock whose holder died', async () => {
    const { folder, file, project } = await logs();
    const sink = createBreadcrumbs({ folder, maxBytes: 10, keep: 2 });
    await sink.write([note('first')]);
    await project.write('home/logs/breadcrumbs.jsonl.lock', '');
    await sink.write([note('second')]);
    expect(await readFile(file, 'utf8')).toMatch(/first[\s\S]*second/);
    await utimes(`${file}.lock`, new Date(0), new Date(0));
    await sink.write([note('third')]);
    await sink.write([note('fourth')]);
    expect(await readFile(file, 'utf8')).not.toContain('third');
    expect(existsSync(`${file}.lock`)).toBe(false);
  });

  it('come back after their directory was removed', async () => {
    const { folder, file, project } = await logs();
    const sink = createBreadcrumbs({ folder });
    await sink.write([note('a')]);
    await project.remove('home');
    await sink.write([note('b')]);
    expect(await readFile(file, 'utf8')).toContain('"b"');
  });

  it('tell when they cannot be written', async () => {
    const { folder, project } = await logs();
    await project.write('home', '');
    await writeFile(project.path('home'), 'a file where the directory should be');
    await expect(createBreadcrumbs({ folder }).write([note('a')])).rejects.toThrow();
  });
});
